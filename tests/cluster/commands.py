#!/usr/bin/env python3
"""`duet-rpc cluster` against a real server: making a queue, changing it, and bringing it to another version.

The second version of the schema is made up here (DUET_RPC_TEST_MIGRATIONS, in builds with the methods of tests).

Usage: commands.py --program PATH
"""

import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
import suite  # noqa: E402
from project import ProjectTestCase  # noqa: E402

SECOND = """
-- Made up: a column, an index that is built beside all others, a function; and one that only the first version used.
ALTER TABLE @schema@.task ADD COLUMN extra integer;
--@ alone
CREATE INDEX CONCURRENTLY task_extra ON @schema@.task(extra);
--@ transaction
CREATE FUNCTION @schema@.hello_v2() RETURNS text LANGUAGE sql AS $$ SELECT 'hello' $$;
--@ finish
DROP FUNCTION @schema@.hello_v2();
"""

CHANGES = (["set", "keep_days=3"], ["drain", "there"], ["undrain", "there"], ["forget", "there"])
OWNERS = (["migrate"], ["adopt", "--queue", "run"])

ONE = None  # the server of all tests here


def setUpModule():
    global ONE
    server.skip_unless_installed()
    ONE = server.Server()
    ONE.__enter__()


def tearDownModule():
    ONE.__exit__()


class ClusterTestCase(ProjectTestCase):
    """Each test has a database of its own."""

    databases = 0

    def setUp(self):
        super().setUp()
        ClusterTestCase.databases += 1
        self.database = ONE.make_database(f"work{ClusterTestCase.databases}")
        self.schema = f"queue{ClusterTestCase.databases}"  # roles belong to the whole server
        self.use(ONE.url(self.database))

    def use(self, store, project="site"):
        self.project.write_user_settings(
            f'store = "{store}"\n[cluster]\nproject = "{project}"\nschema = "{self.schema}"\nname = "here"\n')

    def cluster(self, *words, **options):
        return self.project.run("cluster", *words, **options)

    def well(self, *words, **options):
        result = self.cluster(*words, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def sql(self, text):
        return ONE.sql(text.replace("@schema@", self.schema), self.database)

    def version(self):
        return int(self.sql("SELECT version FROM @schema@.meta")[0][0])

    def add_worker(self, name, protocol=1):
        new = self.sql("SELECT gen_random_uuid()")[0][0]
        answer = self.sql(f"SELECT @schema@.attach_v1('{name}', NULL, '{{}}', '{new}', 'm', 90000, 600000, '{{gpu}}', '{{claude}}',"
                          f" '{{claude}}', 3, true, '0.2.0', {protocol})")[0][0]
        return json.loads(answer)["worker"]


class WithoutAStore(ProjectTestCase):
    def test_each_command_names_the_setting(self):
        for words in (["init"], ["init", "--sql"], ["migrate"], ["adopt", "--queue", "run"], ["set", "keep_days=3"], ["drain"],
                      ["undrain", "x"], ["forget", "x"], ["status"]):
            with self.subTest(words):
                self.assert_refused(self.project.run("cluster", *words), 1, "`store`", "DUET_RPC_STORE", "postgresql://")

    def test_a_store_that_is_none_is_refused_unseen(self):
        for store in ("sqlite", "postgresql://u:s3/cret@h/d"):
            result = self.project.run("cluster", "init", env={"DUET_RPC_STORE": store})
            self.assert_refused(result, 1, "DUET_RPC_STORE must be a PostgreSQL URL")
            self.assertNotIn("cret", result.err)

    def test_a_password_is_shown_by_nothing(self):
        self.project.write_user_settings(
            'store = "postgresql://u:c4nary@127.0.0.1:1/d"\n[cluster]\nproject = "site"\ninsecure = true\n')
        for words in (["cluster", "init"], ["cluster", "drain"], ["doctor"], ["doctor", "--json"], ["cluster", "init", "--sql"]):
            result = self.project.run(*words)
            self.assertNotIn("c4nary", result.out + result.err, words)


class Making(ClusterTestCase):
    def test_init_makes_a_queue_once(self):
        self.assertIn("made the queue of 'site'", self.well("init").out)
        self.assertEqual(self.version(), 1)
        self.assertIn("there already", self.well("init").out)
        self.use(ONE.url(self.database), project="other")
        self.assert_refused(self.cluster("init"), 1, "has the queue of the project 'site'")

    def test_it_warns_of_another_queue_with_the_same_roles(self):
        self.assertEqual(self.well("init").err, "")
        other = ONE.make_database(f"{self.database}_too")
        self.use(ONE.url(other))
        text = self.well("init", "--sql").out
        for err in (self.well("init").err, self.well("init").err):
            self.assertRegex(err, f"^warning: .* in the database {self.database} .*{self.schema}_worker")
        self.use(ONE.url(self.database))
        self.assertIn(f"in the database {other} ", self.well("init").err)
        done = subprocess.run(["psql", "-X", "-q", "-f", "-", ONE.conninfo(ONE.make_database(f"{other}_too"))], input=text.encode(), timeout=60,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        self.assertIn(f"WARNING:  a queue in the database {self.database}, {other} has".encode(), done.stderr)

    def test_who_works_for_it_is_told_that_it_is_there(self):
        self.well("init")
        ONE.sql(f"CREATE ROLE {self.schema}_person LOGIN")
        ONE.sql(f"GRANT {self.schema}_worker TO {self.schema}_person")
        self.use(ONE.url(self.database, user=f"{self.schema}_person"))
        self.assertIn("there already", self.well("init").out)
        self.use(ONE.url(self.database, user=f"{self.schema}_person"), project="other")
        self.assert_refused(self.cluster("init"), 1, "has the queue of the project 'site'")

    def test_two_at_once_make_one(self):
        both = [self.project.popen("cluster", "init") for _ in range(2)]
        outs = [process.communicate(timeout=60) for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0], outs)
        self.assertEqual(self.sql("SELECT count(*) FROM @schema@.meta"), [["1"]])

    def test_sql_is_for_psql(self):
        text = self.well("init", "--sql").out
        self.assertEqual(self.sql(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{self.schema}'"), [["0"]])
        done = subprocess.run(["psql", "-X", "-q", "-f", "-", ONE.conninfo(self.database)], input=text.encode(), timeout=60,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.version(), 1)
        self.assertIn("there already", self.well("init").out)

    def test_who_may_not_is_told_so(self):
        ONE.sql(f"CREATE ROLE {self.schema}_nobody LOGIN")
        self.use(ONE.url(self.database, user=f"{self.schema}_nobody"))
        self.assert_refused(self.cluster("init"), 1, "permission denied")

    def test_a_server_that_is_not_there_is_named(self):
        self.use("postgresql://duet@127.0.0.1:1/d")
        self.assert_refused(self.cluster("init", "--timeout", "5s"), 1, "cannot be reached", "127.0.0.1")


    def test_sql_of_a_queue_that_is_there_says_so(self):
        self.well("init")
        self.assertRegex(self.well("init", "--sql").out, "^-- .* there already.*\n$")
        self.use(ONE.url(self.database), project="other")
        self.assert_refused(self.cluster("init", "--sql"), 1, "has the queue of the project 'site'")
        self.use("postgresql://duet@127.0.0.1:1/d")
        self.assertIn("CREATE SCHEMA", self.well("init", "--sql").out)


class Starting(ClusterTestCase):
    """What does not pass by itself is exit code 1, and says what to do."""

    def refused(self, *texts):
        self.assert_refused(self.project.run("daemon", "start"), 1, *texts)

    def test_without_a_queue_it_says_what_makes_one(self):
        self.refused(f'schema "{self.schema}" does not exist', "cluster init")

    def test_a_role_without_a_part_in_it_is_told_which(self):
        self.well("init")
        ONE.sql(f"CREATE ROLE {self.schema}_guest LOGIN")
        self.use(ONE.url(self.database, user=f"{self.schema}_guest"))
        self.refused("permission denied", f"{self.schema}_worker")

    def test_a_store_that_is_not_safe_is_refused_in_the_same_words_by_all(self):
        self.use("postgresql://duet@h1/x?sslmode=disable")
        said = [self.project.run(*words).err for words in (["cluster", "init"], ["daemon", "start"], ["daemon", "restart"])]
        self.assertRegex(said[0], "^duet-rpc: store: for a server elsewhere")
        self.assertEqual(set(said), {said[0]})

    def test_who_is_not_let_in_is_told_at_once(self):
        self.use(ONE.url(self.database, user="nobody_knows"))
        self.refused('role "nobody_knows" does not exist')
        self.use(ONE.url("no_such_database"))
        self.refused('database "no_such_database" does not exist')

    def test_a_wrong_password_and_none_at_all(self):
        conf = os.path.join(ONE.data, "pg_hba.conf")
        with open(conf, encoding="utf-8") as file:
            before = file.read()

        def write(text):
            with open(conf, "w", encoding="utf-8") as file:
                file.write(text)
            ONE.sql("SELECT pg_reload_conf()")
        ONE.sql("CREATE ROLE locked LOGIN PASSWORD 'open sesame'")
        self.addCleanup(write, before)
        write("local all locked scram-sha-256\n" + before)
        url = ONE.url(self.database, user="locked")
        server.eventually("it asks for a password", lambda: self.project.run("cluster", "drain", env={"DUET_RPC_STORE": url}).err.count("password"))
        self.use(url)
        self.refused("no password supplied")
        self.use(url.replace("locked@", "locked:c4nary@"))
        self.refused("password authentication failed")
        self.assertNotIn("c4nary", self.project.log())


class Changing(ClusterTestCase):
    def setUp(self):
        super().setUp()
        self.well("init")

    def remember(self, **changes):
        """What a daemon of this project has seen of its queue before."""
        hello = json.loads(self.sql("SELECT @schema@.hello_v1()")[0][0])
        memory = {"queue": hello["queue"], "place": "here", "worker": 0, "system": hello["system"],
                  "timeline": hello["serverTimeline"], "newestEventMs": hello["newestEventMs"], **changes}
        os.makedirs(self.project.state, mode=0o700, exist_ok=True)
        with open(os.path.join(self.project.state, "cluster"), "w", encoding="utf-8") as file:
            json.dump(memory, file)

    def assert_nothing_changes(self, commands, *texts):
        before = self.sql("SELECT * FROM @schema@.meta"), self.sql("SELECT name, state, draining FROM @schema@.worker ORDER BY id")
        for words in commands:
            with self.subTest(words):
                self.assert_refused(self.cluster(*words), 1, *texts)
        self.assertEqual(before, (self.sql("SELECT * FROM @schema@.meta"),
                                  self.sql("SELECT name, state, draining FROM @schema@.worker ORDER BY id")))

    def test_the_queue_of_another_project_is_left_alone(self):
        self.add_worker("there")
        self.use(ONE.url(self.database), project="other")
        self.assert_nothing_changes([*CHANGES, *OWNERS], "'site'", "'other'")

    def test_an_old_primary_is_left_alone(self):
        self.add_worker("there")
        self.remember(timeline=9)
        self.assert_nothing_changes([*CHANGES, *OWNERS], "old primary")

    def test_a_copy_that_nobody_adopted_is_left_alone(self):
        self.add_worker("there")
        self.sql("UPDATE @schema@.meta SET system = 1")
        self.assert_nothing_changes(CHANGES, "cluster adopt")

    def test_an_old_backup_is_left_alone_until_it_is_adopted(self):
        self.add_worker("there")
        self.remember(newestEventMs=4_000_000_000_000)
        self.assert_nothing_changes(CHANGES, "cluster adopt")
        self.well("adopt", "--queue", "run")
        self.assert_refused(self.cluster("drain", "there"), 1, "no worker 'there'")

    def test_a_queue_that_is_this_servers_is_not_adopted(self):
        self.add_worker("there")
        self.assert_nothing_changes([["adopt", "--queue", "run"], ["adopt", "--queue", "cancel", "--json"]], "nothing to adopt")

    def test_set_changes_the_queues_settings(self):
        self.assertEqual(self.well("set", "keep_days=7", "keep_output=1G").out,
                         "keep_days is 7 now\nkeep_output is 1073741824 now\n")
        self.assertEqual(self.sql("SELECT keep_days, keep_output, keep_tasks FROM @schema@.meta"), [["7", "1073741824", "10000"]])
        self.assertEqual(self.well("set", "keep_tasks=5", "--json").json(), {"keep_tasks": 5})

    def test_set_refuses_what_makes_no_sense_and_changes_nothing(self):
        for words, text in ((["keep_days=0"], "from 1 to 36500"), (["keep_days=2G"], "from 1 to 36500"),
                            (["keep_dais=3"], "did you mean 'keep_days'"), (["version=2"], "a queue has no setting"),
                            (["keep_days=3", "keep_tasks=none"], "keep_tasks is 'none'")):
            with self.subTest(words):
                self.assert_refused(self.cluster("set", *words), 1, text)
        self.assertEqual(self.sql("SELECT keep_days FROM @schema@.meta"), [["30"]])

    def test_drain_and_undrain_name_a_worker_or_mean_this_one(self):
        self.assert_refused(self.cluster("drain"), 1, "no worker 'here'")
        self.add_worker("here")
        self.add_worker("there")
        self.assertIn("worker here drains", self.well("drain").out)
        self.assertIn("worker there drains", self.well("drain", "there").out)
        self.assertIn("already", self.well("drain", "there").out)
        self.assertIn("takes tasks again", self.well("undrain", "there").out)
        self.assertEqual(self.sql("SELECT name, draining FROM @schema@.worker ORDER BY name"), [["here", "t"], ["there", "f"]])

    def test_who_is_no_admin_is_told_so(self):
        ONE.sql(f"CREATE ROLE {self.schema}_person LOGIN")
        ONE.sql(f"GRANT {self.schema}_worker TO {self.schema}_person")
        self.use(ONE.url(self.database, user=f"{self.schema}_person"))
        for words in (["set", "keep_days=3"], ["drain", "x"], ["forget", "x"]):
            self.assert_refused(self.cluster(*words), 1, "permission denied", "may not do this")
        self.assert_refused(self.cluster("adopt", "--queue", "run"), 1, "permission denied", "may not do this")
        ONE.sql(f"GRANT {self.schema}_admin TO {self.schema}_person")
        self.well("set", "keep_days=3")
        self.sql("UPDATE @schema@.meta SET system = 1")
        again = {"DUET_RPC_STORE": ONE.url(self.database)}
        self.well("adopt", "--queue", "run", env=again)

    def test_forget_is_for_workers_that_are_not_live(self):
        self.add_worker("there")
        is_over = threading.Event()

        def beat():
            while not is_over.wait(0.5):
                self.sql("UPDATE @schema@.worker SET beat = beat + 1")
        beats = threading.Thread(target=beat)
        beats.start()
        refused = self.cluster("forget", "there")
        is_over.set()
        beats.join()
        self.assertEqual(refused.code, 1, refused)
        self.assertRegex(refused.err, "watched for 90 s\n.*worker there is live")
        self.sql("UPDATE @schema@.worker SET state = 2")
        self.assertIn("forgotten", self.well("forget", "there").out)
        self.assert_refused(self.cluster("forget", "there"), 1, "no worker 'there'")

    def test_a_worker_that_nobody_is_left_to_find_silent_is_forgotten_when_its_beat_has_not_moved_for_a_lease(self):
        self.add_worker("there")
        self.sql("UPDATE @schema@.worker SET lease_ms = 2000")
        done = self.well("forget", "there")
        self.assertIn("forgotten", done.out)
        self.assertIn("watched for 2 s", done.err)

    def test_adopt_takes_a_copy_over(self):
        self.assert_refused(self.cluster("adopt"), 1, "--queue", "run or cancel")
        self.sql("UPDATE @schema@.meta SET system = 1")
        self.assertIn("adopt_v1('cancel')", self.well("adopt", "--queue", "cancel", "--sql").out)
        self.assertEqual(self.sql("SELECT system FROM @schema@.meta"), [["1"]])
        self.well("adopt", "--queue", "run")
        self.assertNotEqual(self.sql("SELECT system FROM @schema@.meta"), [["1"]])


class Migrating(ClusterTestCase):
    def setUp(self):
        super().setUp()
        self.well("init")
        self.assertIn("nothing to do", self.well("migrate").out)
        self.folder = os.path.join(self.project.place.name, "migrations")
        os.makedirs(self.folder)
        with open(os.path.join(self.folder, "0002_made_up.sql"), "w", encoding="utf-8") as file:
            file.write(SECOND)
        self.env = {"DUET_RPC_TEST_MIGRATIONS": self.folder}
        if "task_extra" not in self.cluster("migrate", "--sql", env=self.env).out:
            self.skipTest("this program was not built for tests")

    def assert_second(self):
        self.assertEqual(self.version(), 2)
        self.assertEqual(self.sql("SELECT @schema@.hello_v2()"), [["hello"]])
        self.assertEqual(self.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = '@schema@.task_extra'::regclass"), [["t"]])
        self.assertEqual(self.sql("SELECT step FROM @schema@.migration ORDER BY step"), [["1"], ["2"], ["3"]])

    def test_it_goes_to_the_next_version_and_finishes(self):
        self.add_worker("old", protocol=1)
        self.well("migrate", env=self.env)
        self.assert_second()
        self.assertIn("nothing to do", self.well("migrate", env=self.env).out)
        refused = self.cluster("migrate", "--finish", env=self.env)
        self.assertEqual(refused.code, 1)
        self.assertIn("old", refused.err)
        self.sql("UPDATE @schema@.worker SET state = 3")
        self.well("migrate", "--finish", env=self.env)
        self.assertEqual(self.sql("SELECT oldest FROM @schema@.meta"), [["2"]])
        with self.assertRaises(server.SqlError):
            self.sql("SELECT @schema@.hello_v2()")
        self.assertIn("nothing to finish", self.well("migrate", "--finish", env=self.env).out)

    def test_sql_does_the_same(self):
        text = self.well("migrate", "--sql", env=self.env).out
        self.assertEqual(self.version(), 1)
        done = subprocess.run(["psql", "-X", "-q", "-f", "-", ONE.conninfo(self.database)], input=text.encode(), timeout=60,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_second()

    def test_two_at_once_do_it_once(self):
        both = [self.project.popen("cluster", "migrate", env=self.env) for _ in range(2)]
        outs = [process.communicate(timeout=120) for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0], outs)
        self.assert_second()

    def test_it_waits_for_a_lock_and_nobody_longer_than_5_s_for_it(self):
        self.assertIn("SET LOCAL lock_timeout = '5s'", self.well("migrate", "--sql", env=self.env).out)
        with server.Session(ONE.conninfo(self.database)) as holder, server.Session(ONE.conninfo(self.database)) as other:
            holder.ask("BEGIN")
            holder.ask(f"SELECT count(*) FROM {self.schema}.task")
            with self.project.popen("cluster", "migrate", env=self.env) as process:
                server.eventually("it waits for the table", lambda: self.sql(
                    "SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"))
                other.ask(f"SELECT count(*) FROM {self.schema}.task")  # which only the holder's end would end if it had no limit
                self.assertIsNone(process.poll(), "it goes on trying")
                holder.ask("COMMIT")
                self.assertEqual(process.wait(60), 0, process.stderr.read())
        self.assert_second()

    def test_killed_at_any_moment_it_is_run_again(self):
        for delay in (0.0, 0.02, 0.04, 0.06, 0.08, 0.12):
            with self.project.popen("cluster", "migrate", env=self.env) as process:
                time.sleep(delay)  # where it is then does not matter: each of them is a moment
                process.kill()
        self.well("migrate", env=self.env)
        self.assert_second()

    def test_an_index_that_was_given_up_half_way_is_built_anew(self):
        with server.Session(ONE.conninfo(self.database)) as holder:
            holder.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.ask(f"SELECT 1 FROM {self.schema}.meta")
            with self.project.popen("cluster", "migrate", env=self.env) as process:
                server.eventually("the index is there and not valid", lambda: self.sql(
                    "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE relname = 'task_extra' AND NOT indisvalid"))
                process.kill()
            self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%'")
            holder.ask("COMMIT")
        self.assertEqual(self.version(), 1)
        self.well("migrate", env=self.env)
        self.assert_second()


if __name__ == "__main__":
    suite.main()
