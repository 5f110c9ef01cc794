#!/usr/bin/env python3
"""What people are to decide, no task may: neither itself nor through what it starts."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402
from rule_project import RuleTestCase, shell  # noqa: E402

# Sends the request of its first argument to the socket of its second one and prints the answer to it.
ASK = r"""
import json, os, socket, sys
request, path = sys.argv[1:3]
connection = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(path))
connection.connect(os.path.basename(path))
connection.sendall(request.encode() + b"\n")
for line in connection.makefile():
    if "id" in json.loads(line):
        print(line, flush=True)
        break
"""

# The same from a grandchild in a session of its own whose parents are gone; writes the answer to a file.
ASK_LATER = r"""
import os, sys, time
sys.stdout = open(sys.argv.pop(), "w")
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
while os.getppid() in (1, int(sys.argv[3])): time.sleep(0.01)
""" + ASK


class FromATask(RuleTestCase):
    def setUp(self):
        super().setUp()
        self.start(shell("careful", "pattern = '*.c'", "echo approved", "requires_approval = true"))
        self.write("a.c")
        self.firing = self.await_held("approval")[0]["id"]

    def in_task(self, *words):
        """A task that runs WORDS as they are; its record."""
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        id = self.call("task.submit", prompt=quoted, agent="shell")["result"]["taskId"]
        return self.call("task.wait", taskId=id, timeoutSeconds=50)["result"]

    def request(self, method, **params):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def assert_refusal(self, answer):
        error = answer["error"]
        self.assertEqual((error["code"], error["data"]["reason"]), (-32003, "from-a-task"), error)

    def requests(self):
        yield self.request("automation.approve", id=self.firing)
        yield self.request("automation.deny", id=self.firing)
        yield self.request("automation.fire", ruleId="careful")
        yield self.request("automation.disable")
        yield self.request("automation.enable", ruleId="careful")

    def test_is_refused_through_the_socket(self):
        for request in self.requests():
            record = self.in_task(sys.executable, "-c", ASK, request, self.project.socket)
            self.assert_refusal(json.loads(record["result"]))
        self.assertEqual(self.await_held("approval")[0]["id"], self.firing)

    def test_is_refused_on_the_command_line(self):
        for words in (("approve", self.firing), ("disable",), ("enable", "careful")):
            record = self.in_task(self.project.program, "automation", *words, "--project", self.project.root)
            self.assertEqual(record["exitCode"], 1, record)
            output = self.call("task.output", taskId=record["id"])["result"]["data"]
            self.assertIn("for people to decide", output)

    def test_is_refused_through_a_child_of_a_child_in_the_background(self):
        answer = self.path("answer.txt")
        request = self.request("automation.approve", id=self.firing)
        words = " ".join("'" + word.replace("'", "'\\''") + "'"
                         for word in (sys.executable, "-c", ASK_LATER, request, self.project.socket))
        script = f"{words} $$ '{answer}'; while [ ! -s '{answer}' ]; do sleep 0.05; done"
        id = self.call("task.submit", prompt=script, agent="shell")["result"]["taskId"]
        record = self.call("task.wait", taskId=id, timeoutSeconds=50)["result"]
        self.assertEqual(record["state"], "completed", record)
        with open(answer, encoding="utf-8") as file:
            self.assert_refusal(json.loads(file.read()))

    def test_is_nobody_who_asks_from_outside(self):
        self.assertEqual(self.call("automation.approve", id=self.firing)["result"], {"approved": True})
        self.assertIn("approved", self.result_of(self.await_firings(1, "careful")[0]))


class OutOfSight(ProjectTestCase):
    def test_is_refused_since_nobody_can_tell(self):
        """The daemon is in a PID namespace, as in a container, and who asks is outside of it."""
        namespace = ("--pid", "--fork", "--kill-child", "--mount-proc")
        if self.project.run(*namespace, "true", program="unshare").code != 0:
            self.skipTest("no PID namespaces here")
        with self.project.popen(*namespace, self.project.program, "daemon", "start", "--foreground",
                                program="unshare") as process:
            eventually(self.project.reachable, what="the daemon answers")
            error = self.project.call("automation.disable")["error"]
            self.assertEqual((error["code"], error["data"]["reason"]), (-32003, "from-a-task"), error)
            self.assertIn("outside of the daemon's container", error["message"])
            self.assertIn("result", self.project.call("daemon.stop"))
            process.communicate(timeout=PATIENCE)


if __name__ == "__main__":
    suite.main()
