#!/usr/bin/env python3
"""Daemons of the last release while the schema goes to the next version, by a migration that is made up.

Usage: upgrades.py --program PATH [unittest options]

What `cluster migrate` does without daemons is in commands.py. The program must be built for tests.
"""

import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import Failure, eventually  # noqa: E402
from fleet import Fleet, start_time  # noqa: E402
from scenario import appends, let_go, lines  # noqa: E402

SECOND = """
-- Made up: what is new stands beside what the first version uses.
ALTER TABLE @schema@.task ADD COLUMN extra integer;
ALTER TABLE @schema@.worker ADD COLUMN extra integer;
--@ alone
CREATE INDEX CONCURRENTLY task_extra ON @schema@.task(extra);
--@ alone
CREATE INDEX CONCURRENTLY event_extra ON @schema@.event(kind);
--@ transaction
CREATE FUNCTION @schema@.hello_v2() RETURNS text LANGUAGE sql AS $$ SELECT 'hello' $$;
--@ finish
DROP FUNCTION @schema@.read_stats_v1();
"""


class Load:
    """Submits one after the other at two workers, and knows what was refused."""

    def __init__(self, workers, path):
        self.workers, self.path = workers, path
        self.taken, self.refused, self.over = {}, [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.over.wait(0.05):
            number += 1
            try:
                answer = self.workers[number % 2].ask("task.submit", prompt=f"echo {number} >> {self.path}")
            except (OSError, Failure) as problem:
                answer = {"error": str(problem)}
            if "result" in answer:
                self.taken[number] = answer["result"]["taskId"]
            else:
                self.refused.append(answer)

    def end(self):
        self.over.set()
        self.thread.join()


class Upgrades(suite.TestCase):
    def setUp(self):
        self.fleet = Fleet(suite.program()).__enter__()
        self.addCleanup(self.fleet.__exit__)
        self.one, self.two = (self.fleet.worker(name, slots=4) for name in ("one", "two"))
        folder = self.one.path("migrations")
        os.makedirs(folder)
        with open(os.path.join(folder, "0002_made_up.sql"), "w", encoding="utf-8") as file:
            file.write(SECOND)
        self.env = {"DUET_RPC_TEST_MIGRATIONS": folder}
        if "task_extra" not in self.one.run("cluster", "migrate", "--sql", env=self.env).out:
            self.skipTest("this program was not built for tests")

    def version(self):
        return self.fleet.sql("SELECT version, oldest FROM duet.meta")[0]

    def migrate(self, *words):
        return self.one.popen("cluster", "migrate", *words, env=self.env)

    def migrate_with_kills(self):
        """Each is killed a little later than the one before; at last two run at once to the end."""
        delay = 0.0
        while self.version()[0] == "1" and delay < 1.5:
            with self.migrate() as process:
                try:
                    process.wait(delay)
                except subprocess.TimeoutExpired:
                    process.kill()
            delay += 0.03
        with self.migrate() as first, self.migrate() as second:
            outs = [process.communicate(timeout=120) for process in (first, second)]
        self.assertEqual((first.returncode, second.returncode), (0, 0), outs)

    def test_daemons_of_the_last_release_go_on(self):
        one, two = self.one, self.two
        path, marks = two.path("stays"), one.path("marks")
        id = one.submit(appends(path), onLost="retry", needs=["name=two"])
        record = one.runs(id)
        pids = [worker.lock_holder() for worker in (one, two)]
        load = Load((one, two), marks)
        eventually(lambda: len(load.taken) > 10, what="some load")
        self.migrate_with_kills()
        self.assertEqual(self.version(), ["2", "1"])
        self.assertEqual(self.fleet.sql("SELECT count(*) FROM pg_index WHERE NOT indisvalid"), [["0"]])
        known = len(load.taken)
        eventually(lambda: len(load.taken) > known + 10, what="it goes on")
        load.end()
        self.assertEqual(load.refused, [])
        for task in load.taken.values():
            self.assertEqual(two.wait(task)["state"], "completed")
        self.assertEqual(sorted(lines(marks)), sorted(map(str, load.taken)))
        self.assertEqual([worker.lock_holder() for worker in (one, two)], pids, "the same daemons")
        self.finish(id, record, path)

    def finish(self, id, record, path):
        one, two = self.one, self.two
        refused = self.one.run("cluster", "migrate", "--finish", env=self.env)
        self.assertNotEqual(refused.code, 0)
        self.assertRegex(refused.err, "one.*two")
        two.kill_daemon()
        two.start()  # its protocol is still served
        self.assertEqual(self.fleet.sql("SELECT protocol FROM duet.worker ORDER BY name"), [["1"], ["1"]])
        self.assertTrue(start_time(record["pid"]))
        let_go(path)
        self.assertEqual((one.wait(id)["attempts"], len(lines(path))), (1, 2))
        two.run("daemon", "stop")
        refused = one.run("cluster", "migrate", "--finish", env=self.env)
        self.assertNotEqual(refused.code, 0)
        self.assertNotIn("two", refused.err)
        one.run("daemon", "stop")
        done = one.run("cluster", "migrate", "--finish", env=self.env)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.version(), ["2", "2"])
        late = two.run("daemon", "start")
        self.assertNotEqual(late.code, 0)
        self.assertRegex(late.err, "version 2 .*protocol 2 .*speaks 1")

    def test_a_daemon_that_is_newer_than_the_schema_names_the_command(self):
        self.one.run("daemon", "stop")
        self.fleet.sql("UPDATE duet.meta SET version = 0")
        refused = self.one.run("daemon", "start")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("cluster migrate", refused.err)


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
