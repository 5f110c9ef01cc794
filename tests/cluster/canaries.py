#!/usr/bin/env python3
"""A password of the store and a value of a task's environment: where they are needed, and nowhere else.

Usage: canaries.py --program PATH [unittest options]
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from fleet import Fleet, read_file  # noqa: E402


class Secrets(suite.TestCase):
    PASSWORD, VALUE = "canary-password-4711", "canary-value-0815"

    def setUp(self):
        self.fleet = Fleet(suite.program()).__enter__()
        self.addCleanup(self.fleet.__exit__)

    def test_a_task_is_told_who_it_is_and_nothing_of_the_store(self):
        one = self.fleet.worker("one", start=False)
        one.write_user_settings(one.text.replace(f'store = "{self.fleet.url()}"\n', ""))
        secret = self.fleet.url().replace("tester@", f"tester:{self.PASSWORD}@")
        one.start(env={"DUET_RPC_STORE": secret, "PGPASSWORD": self.PASSWORD, "PGPASSFILE": f"/nowhere/{self.PASSWORD}"})
        go = one.path("go")
        id = one.submit(f"env; until [ -e {go} ]; do sleep 0.05; done", env={"CANARY": self.VALUE})
        record = one.runs(id)
        eventually(lambda: "CANARY=" in one.output(id), what="its environment")
        names = dict(line.split("=", 1) for line in one.output(id).splitlines() if "=" in line)
        self.assertEqual(names["DUET_TASK_WORKER"], "one")
        self.assertEqual(names["DUET_TASK_FENCE"], self.fleet.sql("SELECT fence FROM duet.task")[0][0])
        self.assertEqual({"DUET_RPC_STORE", "PGPASSWORD", "PGPASSFILE"} & set(names), set())
        keepers = one.keepers()
        self.assertNotEqual(keepers, [])
        password, value = self.PASSWORD.encode(), self.VALUE.encode()
        for pid in [*keepers, record["pid"]]:
            self.assertNotIn(password, read_file(f"/proc/{pid}/environ") + read_file(f"/proc/{pid}/cmdline"), pid)
        for pid in [one.lock_holder(), *keepers]:
            self.assertNotIn(value, read_file(f"/proc/{pid}/environ") + read_file(f"/proc/{pid}/cmdline"), pid)
        self.assertNotIn(password, read_file(f"/proc/{one.lock_holder()}/cmdline"))
        with open(go, "w", encoding="ascii"):
            pass
        one.wait(id)
        said = "".join(json.dumps(one.ok(method, **params)) for method, params in (
            ("daemon.status", {}), ("cluster.status", {}), ("task.get", {"taskId": id}), ("task.list", {}), ("task.explain", {"taskId": id})))
        said += str(one.run("cluster", "status")) + str(one.run("doctor", env={"DUET_RPC_STORE": secret}))
        said = said.replace(json.dumps(one.output(id))[1:-1], "").encode()
        self.assertNotIn(password, said)
        record = one.get(id)
        record.pop("result")
        self.assertNotIn(value, json.dumps(record).encode())
        self.assertNotIn(password, one.log().encode())
        self.assertNotIn(value, one.log().encode())
        self.assertEqual(self.fleet.sql("SELECT count(*) FROM duet.request WHERE env IS NOT NULL"), [["0"]], "erased at the end")
        for folder, _, files in os.walk(one.state):
            for file in files:
                data = read_file(os.path.join(folder, file))
                self.assertNotIn(password, data, file)
                if not file.endswith(".out"):
                    self.assertNotIn(value, data, file)

    def test_a_malformed_store_is_not_shown(self):
        one = self.fleet.worker("one", start=False)
        for url in (f"postgresql://tester:{self.PASSWORD}@[broken/work", f"postgresql://tester:{self.PASSWORD}@host:port/work"):
            result = one.run("daemon", "start", env={"DUET_RPC_STORE": url})
            self.assertNotEqual(result.code, 0, result)
            self.assertNotIn("canary", result.out + result.err)
            self.assertNotIn(b"canary", read_file(os.path.join(one.state, "daemon.log")))


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
