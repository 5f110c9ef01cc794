#!/usr/bin/env python3
"""Rules and a daemon that is killed: each event of a task sets a rule off once, and what was approved is done once."""

import os
import signal
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from rule_project import RuleTestCase, shell  # noqa: E402

ROUNDS = 30


class Kills(RuleTestCase):
    SETTINGS = ("[agents.quiet]\ncommand = ['true']\n",
                "[[rules]]\nid = 'ended'\ntrigger = { type = 'task.completed' }\n"
                "conditions = [ { field = 'payload.agent', operator = 'eq', value = 'shell' } ]\n"
                "action = { type = 'agent', agent = 'quiet', prompt = 'about {{payload.taskId}}' }")

    def kill_when_told(self):
        """Submits a task, and kills the daemon when it tells that it is completed."""
        with self.project.connect() as client:
            client.send('{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"true","agent":"shell"}}')
            wanted = None
            while True:
                message = client.next_message()
                if "result" in message:
                    wanted = message["result"]["taskId"]
                elif message["method"] == "event.taskCompleted" and message["params"]["taskId"] == wanted:
                    self.project.kill(self.pid, signal.SIGKILL)
                    return wanted

    def test_every_completed_task_has_exactly_one_firing(self):
        self.settings(*self.SETTINGS)
        completed = []
        for _ in range(ROUNDS):
            self.pid = self.project.start()
            completed.append(self.kill_when_told())
        self.start()
        eventually(lambda: len(self.recent("ended")) >= ROUNDS, what="a firing for each task")
        self.stays(ROUNDS, "ended", outcome=None)
        fired = self.recent("ended", "fired")
        self.assertGreaterEqual(len(fired), 10, "more are held back by the rate limit")
        about = [self.call("task.get", taskId=entry["taskId"])["result"]["prompt"] for entry in fired]
        self.assertEqual(len(set(about)), len(about), "two tasks about one event")
        self.assertLessEqual(set(about), {f"about {id}" for id in completed})
        tasks = self.call("task.list", limit=200)["result"]
        self.assertEqual(len([task for task in tasks if task["agent"] == "quiet"]), len(fired))

    def test_an_approval_that_was_answered_holds(self):
        self.start(shell("careful", "source = 'watch', pattern = 'a'", "echo done", "requires_approval = true"))
        self.write("a")
        [entry] = self.await_held("approval")
        self.assertEqual(self.call("automation.approve", id=entry["id"])["result"], {"approved": True})
        self.project.kill(self.pid, signal.SIGKILL)
        self.start()
        self.assertEqual(self.call("automation.approve", id=entry["id"])["error"]["code"], -32602)
        [fired] = self.await_firings(1)
        self.assertEqual(self.result_of(fired), "done\n")
        self.assertEqual(len(self.call("task.list")["result"]), 1)


class Told(RuleTestCase):
    @unittest.skipUnless(store.SHARED, "with a shared queue: the daemon's own store has no events for long")
    def test_what_the_queue_has_been_told_is_not_kept_here(self):
        self.start(shell("rule", "source = 'watch', pattern = 'a'", "true"))
        for number in range(20):
            self.assertIn("result", self.call("automation.enable" if number % 2 else "automation.disable", ruleId="rule"))
        self.assertIn("result", self.call("task.submit", prompt="true", agent="shell"))

        def events():
            with sqlite3.connect(os.path.join(self.project.state, "tasks.db")) as database:
                return database.execute("SELECT count(*) FROM event").fetchone()[0]
        eventually(lambda: events() <= 1, what="only the last one is left")


class Refused(RuleTestCase):
    def test_a_rule_on_the_start_that_is_refused_lets_the_daemon_start(self):
        self.settings("[[rules]]\nid = 'hello'\ntrigger = { source = 'daemon' }\n"
                      "action = { type = 'agent', prompt = 'hello' }")
        self.start(env={"PATH": "/nowhere"})
        [held] = self.await_held("Subsystem unavailable: no agent", "hello")
        self.assertEqual(held["outcome"], "held")

    def test_approved_work_is_done_when_the_queue_has_room(self):
        self.start("max_running = 1\nqueue_capacity = 1",
                   shell("careful", "source = 'watch', pattern = 'a'", "echo done", "requires_approval = true"))
        self.write("a")
        [entry] = self.await_held("approval")
        self.assertIn("result", self.call("task.submit", prompt="while [ ! -e go ]; do sleep 0.1; done", agent="shell"))

        def counts():
            status = self.call("queue.status")["result"]
            return status["queued"], status["running"]
        eventually(lambda: counts() == (0, 1), what="the queue is known to have room")
        self.assertIn("result", self.call("task.submit", prompt="true", agent="shell"))
        eventually(lambda: counts() == (1, 1), what="the queue is known to be full")
        self.assertEqual(self.call("automation.approve", id=entry["id"])["result"], {"approved": True})
        self.await_held("approved: Queue full")
        self.project.kill(self.pid, signal.SIGKILL)
        self.start()
        self.await_held("approved: Queue full")
        self.write("go")
        [fired] = self.await_firings(1)
        self.assertEqual((fired["id"], self.result_of(fired)), (entry["id"], "done\n"))

    def test_a_file_name_does_not_become_a_command_when_the_default_agent_changes(self):
        rule = ("[[rules]]\nid = 'look'\ntrigger = { source = 'watch', pattern = 'in/*' }\n"
                "action = { type = 'agent', prompt = '%s' }\nrequires_approval = true\n")
        reader = "[agents.reader]\ncommand = ['echo', '{prompt}']\n"
        self.start("default_agent = 'reader'", reader, rule % "look at {{payload.path}}")
        self.write("in/$(touch pwned)")
        [entry] = self.await_held("approval")
        self.settings("default_agent = 'shell'", reader, rule % "ls")
        os.kill(self.pid, signal.SIGHUP)
        eventually(lambda: "read again" in self.project.run("daemon", "logs").out)
        self.assertEqual(self.call("automation.approve", id=entry["id"])["result"], {"approved": True})
        [fired] = self.await_firings(1)
        self.assertEqual(self.result_of(fired), "look at in/$(touch pwned)\n")
        self.assertFalse(os.path.exists(self.path("pwned")))


class Names(RuleTestCase):
    def test_bytes_that_are_not_utf8_reach_the_environment_as_they_are(self):
        self.start(shell("name", "type = 'file.create', pattern = 'in/*'", 'printf %s "$DUET_PATH" | od -An -tx1'))
        os.makedirs(self.path("in"))
        with open(os.fsencode(self.path("in")) + b"/\xff\xc3", "wb"):
            pass
        [entry] = self.await_firings(1)
        self.assertEqual(self.result_of(entry).split(), ["69", "6e", "2f", "ff", "c3"])


if __name__ == "__main__":
    suite.main()
