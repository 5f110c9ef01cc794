#!/usr/bin/env python3
"""Every role against every function and table of the queue, from the server's own catalogues: `sql_roles.py [unittest options]`."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import Caller, Worker  # noqa: E402

READS = {"hello_v1", "read_task_v1", "read_tasks_v1", "read_request_v1", "read_events_v1", "read_events_state_v1", "read_stats_v1", "read_queue_v1",
         "read_output_v1", "read_output_state_v1", "read_explain_v1", "read_status_v1", "read_handle_v1", "read_known_v1", "read_running_v1",
         "read_outputs_v1"}
CLIENT = READS | {"attach_v1", "beat_v1", "submit_v1", "cancel_v1", "hold_v1", "edit_v1", "requeue_v1", "remove_v1", "pause_v1", "release_v1", "handle_v1",
                  "tell_v1", "number_v1", "wake_v1", "nudge_v1", "leave_v1", "renew_v1", "recover_v1"}
MAY_CALL = {"duet_watcher": READS, "duet_client": CLIENT, "duet_admin": CLIENT | {"set_v1", "drain_v1", "forget_v1"},
            "duet_worker": CLIENT | {"claim_v1", "report_v1", "sweep_v1", "silence_v1", "lose_v1", "wait_v1"}, "nobody_special": set()}
OWNER_ONLY = {"found_v1", "adopt_v1"}
SERVER = None


def setUpModule():
    global SERVER
    SERVER = server.Server().__enter__()
    SERVER.make_database("work")
    # Not a superuser, as on a server that somebody else runs.
    SERVER.script("CREATE ROLE founder LOGIN CREATEROLE; GRANT CREATE ON DATABASE work TO founder;")
    server.install(SERVER, "work", user="founder")
    SERVER.script("CREATE ROLE nobody_special NOLOGIN;" + "".join(
        f"CREATE ROLE login_{role} LOGIN; GRANT {role} TO login_{role};" for role in MAY_CALL))


def tearDownModule():
    SERVER.__exit__()


class Roles(unittest.TestCase):
    def setUp(self):
        self.owner = Caller(SERVER, "work")

    def tearDown(self):
        self.owner.close()

    def column(self, text):
        return [row[0] for row in self.owner.ask(text)]

    def test_each_role_may_call_what_it_is_for_and_nothing_else(self):
        for role, expected in MAY_CALL.items():
            allowed = set(self.column(f"SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'duet'::regnamespace"
                                      f" AND has_function_privilege('login_{role}', oid, 'EXECUTE')"))
            self.assertEqual(allowed, expected, role)

    def test_every_function_of_the_protocol_is_somebodys(self):
        functions = set(self.column("SELECT proname FROM pg_proc WHERE pronamespace = 'duet'::regnamespace AND proname LIKE '%\\_v1'"))
        self.assertEqual(functions, set().union(*MAY_CALL.values()) | OWNER_ONLY)

    def test_no_role_has_a_right_on_a_table_a_column_or_a_sequence(self):
        for role in MAY_CALL:
            for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"):
                self.assertEqual(self.column(f"SELECT relname FROM pg_class WHERE relnamespace = 'duet'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')"
                                             f" AND has_table_privilege('login_{role}', oid, '{right}')"), [], (role, right))
            for right in ("USAGE", "SELECT", "UPDATE"):
                self.assertEqual(self.column(f"SELECT relname FROM pg_class WHERE relnamespace = 'duet'::regnamespace "
                                             f" AND CASE WHEN relkind = 'S' THEN has_sequence_privilege('login_{role}', oid, '{right}') END"), [], (role, right))
            self.assertEqual(self.column(f"SELECT 1 WHERE has_any_column_privilege('login_{role}', 'duet.request', 'SELECT')"), [], role)

    def test_no_role_may_create_anything_and_public_may_do_nothing(self):
        for role in MAY_CALL:
            self.assertEqual(self.owner.one(f"SELECT has_schema_privilege('login_{role}', 'duet', 'CREATE')"), "f")
            self.assertEqual(self.owner.one(f"SELECT has_schema_privilege('login_{role}', 'duet', 'USAGE')"), "f" if role == "nobody_special" else "t")
        self.assertEqual(self.column("SELECT proname FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
                                     " WHERE p.pronamespace = 'duet'::regnamespace AND a.grantee = 0"), [])
        self.assertEqual(self.column("SELECT relname FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'duet'::regnamespace AND a.grantee = 0"), [])

    def test_every_function_that_can_be_called_is_fixed_in_its_search_path_and_the_owners(self):
        rows = self.owner.ask("SELECT proname, prosecdef, lanname, pg_get_userbyid(proowner), array_to_string(proconfig, ' ') FROM pg_proc p JOIN pg_language l"
                              " ON l.oid = p.prolang WHERE pronamespace = 'duet'::regnamespace AND proname LIKE '%\\_v1'")
        for name, definer, language, owner, settings in rows:
            self.assertEqual((definer, language, owner), ("t", "plpgsql", "duet_owner"), name)
            self.assertTrue(settings.startswith("search_path=pg_catalog, pg_temp"), (name, settings))

    def test_the_roles_cannot_log_in_and_have_their_timeouts(self):
        rows = self.owner.ask("SELECT rolname, rolcanlogin, rolsuper, rolcreaterole, array_to_string(rolconfig, ' ') FROM pg_roles WHERE rolname LIKE 'duet\\_%'"
                              " ORDER BY 1")
        self.assertEqual([row[0] for row in rows], ["duet_admin", "duet_client", "duet_owner", "duet_watcher", "duet_worker"])
        for row in rows:
            self.assertEqual(row[1:], ["f", "f", "f", "statement_timeout=30s lock_timeout=5s idle_in_transaction_session_timeout=10s"], row[0])

    def test_a_refused_call_is_refused_by_the_server(self):
        caller = Caller(SERVER, "work", "login_duet_watcher")
        self.addCleanup(caller.close)
        caller.call("hello_v1")
        for text in ("SELECT duet.set_v1('keep_days', '1')", "SELECT * FROM duet.task", "SELECT nextval('duet.fence')", "CREATE TABLE duet.mine(n int)",
                     "SELECT duet.guard(1, gen_random_uuid())"):
            with self.assertRaises(server.SqlError) as caught:
                caller.ask(text)
            self.assertEqual(caught.exception.code, "42501", text)

    def test_a_client_runs_nothing_and_a_worker_does(self):
        with self.assertRaises(server.SqlError) as caught:
            Worker(SERVER, "work", "client", user="login_duet_client")
        self.assertEqual((caught.exception.code, caught.exception.message), ("DU003", '{"refused":"role"}'))
        client = Worker(SERVER, "work", "client", user="login_duet_client", run=False)
        worker = Worker(SERVER, "work", "worker", user="login_duet_worker")
        self.addCleanup(client.close)
        self.addCleanup(worker.close)
        id = client.submit(env='{"SECRET":"canary"}')
        self.assertEqual(client.task(id).submitted_by, "login_duet_client")
        client.do("beat_v1", True, 9, None, None, None, None, None)
        self.assertEqual(self.owner.one(f"SELECT slots || ' ' || EXISTS (SELECT FROM duet.waiter a WHERE a.worker = w.id) FROM duet.worker w WHERE id = {client.id}"), "0 false")
        self.assertEqual(worker.run_one().id, id)
        self.assertEqual(client.do_json("remove_v1", [id], None, None, "request")["removed"], [id])

    def test_nobody_but_a_claim_sees_env(self):
        worker = Worker(SERVER, "work", "sees", user="login_duet_worker")
        self.addCleanup(worker.close)
        id = worker.submit(env='{"SECRET":"canary"}')
        texts = [str(worker.call(name, id)) for name in ("read_task_v1", "read_request_v1", "read_explain_v1")]
        texts += [str(worker.call("read_tasks_v1", {})), str(worker.events()), str(worker.call("read_status_v1")), str(worker.beat())]
        for text in texts:
            self.assertNotIn("canary", text)
        self.assertIn("canary", worker.claim()[0].env)

    def test_what_is_acknowledged_is_durable_whatever_is_set_for_the_role(self):
        SERVER.sql("ALTER ROLE login_duet_worker SET synchronous_commit = off")
        self.addCleanup(SERVER.sql, "ALTER ROLE login_duet_worker RESET synchronous_commit")
        worker = Worker(SERVER, "work", "careless", user="login_duet_worker")
        self.addCleanup(worker.close)
        self.assertEqual(worker.one("SHOW synchronous_commit"), "off")
        before = worker.submit()
        claim, = worker.claim()
        calls = [worker.submit, lambda: worker.submit_all({}, {}), lambda: worker.submit(key="k"), worker.claim, lambda: worker.start(claim),
                 lambda: worker.end(claim)]
        calls += [lambda name=name, more=more: worker.do(name, *more) for name, more in (
            ("hold_v1", [before + 1, True]), ("edit_v1", [before + 1, {"priority": 1}]), ("cancel_v1", [before + 1]), ("requeue_v1", [before + 1]),
            ("handle_v1", [before, "h"]), ("remove_v1", [[before], None, None, "request"]), ("pause_v1", ["g", True]), ("release_v1", ["a"]),
            ("tell_v1", [1, "notice", "{}"]))]
        for number, call in enumerate(calls):
            for setting, kept in (("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")):
                worker.ask(f"SET synchronous_commit = {setting}")
                worker.ask("BEGIN")
                call()
                self.assertEqual(worker.one("SHOW synchronous_commit"), kept, (number, setting))
                worker.ask("ROLLBACK")

    def test_who_would_see_what_is_old_is_refused_and_told_the_cure(self):
        worker = Worker(SERVER, "work", "old-eyes", user="login_duet_worker")
        self.addCleanup(worker.close)
        before = worker.submit()
        claim, = worker.claim()
        for isolation, is_refused in (("repeatable read", True), ("serializable", True), ("read uncommitted", False), ("read committed", False)):
            SERVER.sql(f"ALTER ROLE login_duet_worker SET default_transaction_isolation = '{isolation}'")
            self.addCleanup(SERVER.sql, "ALTER ROLE login_duet_worker RESET default_transaction_isolation")
            late = Caller(SERVER, "work", user="login_duet_worker")
            self.addCleanup(late.close)
            for function, more in (("hello_v1", []), ("claim_v1", [worker.id, worker.incarnation, 0, [], [], None]), ("hold_v1", [
                    worker.id, worker.incarnation, before, True]), ("cancel_v1", [worker.id, worker.incarnation, before])):
                with self.subTest((isolation, function)):
                    if not is_refused:
                        late.call(function, *more)
                        continue
                    with self.assertRaises(server.SqlError) as caught:
                        late.call(function, *more)
                    self.assertEqual(caught.exception.code, "DU002")
                    self.assertIn("ALTER ROLE login_duet_worker SET default_transaction_isolation = 'read committed'", caught.exception.message)
            worker.ask(f"SET default_transaction_isolation = '{isolation}'")
            for call in (worker.submit, lambda: worker.submit_all({}, {}), lambda: worker.start(claim)):
                if not is_refused:
                    call()
                    continue
                with self.assertRaises(server.SqlError) as caught:
                    call()
                self.assertEqual(caught.exception.code, "DU002")

    def test_an_acknowledged_task_is_there_after_a_crash_whatever_is_set_for_the_role(self):
        with server.Server(fsync=True, settings={"wal_writer_delay": "10s"}) as one:
            one.make_database("work")
            server.install(one, "work")
            one.sql("ALTER ROLE tester SET synchronous_commit = off")
            worker = Worker(one, "work")
            self.addCleanup(worker.close)
            ids = [worker.submit(), worker.submit(key="k")]
            one.kill()
            one.start()
            self.assertEqual(one.sql("SELECT id FROM duet.task ORDER BY id", "work"), [[str(id)] for id in ids])

    def test_no_second_function_of_a_name(self):
        self.assertEqual(self.column("SELECT proname FROM pg_proc WHERE pronamespace = 'duet'::regnamespace GROUP BY 1 HAVING count(*) > 1"), [])


if __name__ == "__main__":
    server.skip_unless_installed()
    unittest.main(verbosity=2)
