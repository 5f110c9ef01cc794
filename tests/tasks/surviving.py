#!/usr/bin/env python3
"""A running task survives its daemon: killed, stopped for a restart, or away until after the end."""

import datetime
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

LINES = 20
# Goes on until it is let go, so that it runs however slow the machine is.
TALKER = (f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.1; done; "
          "until [ -e go ]; do sleep 0.05; done; exit 7")
OUTPUT = "".join(f"line {number}\n" for number in range(LINES))


def utc(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


class SurvivingTestCase(TaskTestCase):
    def begin(self, prompt=TALKER, **params):
        """A task that is running: its id and pid."""
        id = self.submit(prompt, **params)
        record = eventually(lambda: (task := self.get(id))["state"] == "running" and task, what="a running task")
        return id, record["pid"]

    def let_go(self):
        with open(self.path("go"), "w", encoding="ascii"):
            pass

    def kill_daemon(self):
        self.project.kill(self.pid)

    def start_again(self):
        self.pid = self.project.start()
        self.connect()

    def output(self, id):
        answer = self.call("task.output", taskId=id)["result"]
        return answer["data"], answer["done"]

    def assert_went_on(self, id, pid):
        self.let_go()
        record = self.wait(id)
        self.assertEqual((record["state"], record["exitCode"], record["error"]["reason"], record["pid"],
                          record["attempts"]), ("failed", 7, "exit", pid, 1), record)
        self.assertEqual(self.output(id), (OUTPUT, True))
        self.assertEqual(record["result"], OUTPUT)
        return record


class IoResult(SurvivingTestCase):
    def test_a_task_runs_where_its_project_is_now(self):
        root, moved = self.project.root, os.path.join(self.project.place.name, "moved")
        self.assertEqual(self.wait(self.submit("pwd"))["result"], os.path.realpath(root) + "\n")
        os.rename(root, moved)
        self.addCleanup(os.rename, moved, root)
        record = self.wait(self.submit("pwd; echo here > mark"))
        self.assertEqual((record["state"], record["result"]), ("completed", os.path.realpath(moved) + "\n"), record)
        self.assertTrue(os.path.exists(os.path.join(moved, "mark")))
        self.assertFalse(os.path.exists(root))


class Killed(SurvivingTestCase):
    def test_a_task_goes_on_under_the_next_daemon(self):
        id, pid = self.begin()
        for _ in range(3):
            self.kill_daemon()
            time.sleep(0.15)  # lines that nobody reads at once
            self.start_again()
            self.assertEqual((self.get(id)["state"], self.get(id)["pid"]), ("running", pid))
        self.assert_went_on(id, pid)

    def test_a_task_that_ends_without_a_daemon_has_its_true_end(self):
        id, pid = self.begin()
        self.kill_daemon()
        let_go = time.time()
        self.let_go()
        self.project.wait_gone(pid)
        time.sleep(4)
        started_again = time.time()
        self.start_again()
        record = self.assert_went_on(id, pid)
        self.assertGreater(utc(record["completedAt"]), let_go - 0.1, record)
        self.assertLess(utc(record["completedAt"]), started_again - 1, "not when it was heard of")

    def test_its_time_limit_holds_without_a_daemon(self):
        id = self.submit("echo $$ > begun; mv begun pid; exec sleep 60", timeoutSeconds=5)
        eventually(lambda: os.path.exists(self.path("pid")), what="a task that has begun")
        with open(self.path("pid"), encoding="ascii") as file:
            pid = int(file.read())
        self.kill_daemon()
        self.project.wait_gone(pid)
        self.start_again()
        record = self.wait(id)
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "timeout"))

    def test_a_cancel_that_was_answered_is_carried_out_by_the_next_daemon(self):
        id, pid = self.begin("trap '' TERM; while :; do sleep 0.05; done")
        self.assertEqual(self.call("task.cancel", taskId=id)["result"], {"cancelled": True})
        self.kill_daemon()
        self.start_again()
        self.assertEqual(self.wait(id)["state"], "cancelled")
        self.assertFalse(self.project.is_running(pid))

    def test_what_waited_runs_afterwards(self):
        first, pid = self.begin()
        later = [self.submit(f"echo {number}", after=[first]) for number in range(3)]
        retried = self.submit("test -e again || { touch again; exit 1; }", retries=1)
        self.kill_daemon()
        self.start_again()
        self.assert_went_on(first, pid)
        self.assertEqual([self.wait(id)["error"]["reason"] for id in later], ["dependency"] * 3)
        self.assertEqual((self.wait(retried)["state"], self.get(retried)["attempts"]), ("completed", 2))


class Restarted(SurvivingTestCase):
    def test_a_restart_leaves_running_tasks_running(self):
        id, pid = self.begin()
        for _ in range(2):
            restarted = self.project.run("daemon", "restart", "--json")
            self.assertEqual(restarted.code, 0, restarted)
            self.connect()
            self.assertNotEqual(self.project.pid(), self.pid)
            self.pid = self.project.pid()
            self.project.pids.add(self.pid)
            self.assertEqual(self.get(id)["pid"], pid)
        self.assert_went_on(id, pid)


    def test_who_waits_is_answered_before_the_daemon_goes(self):
        id, pid = self.begin()
        queued = self.submit("true", after=[id])
        with self.project.connect() as on_running, self.project.connect() as on_queued:
            on_running.send(request("task.wait", 1, params={"taskId": id}))
            on_queued.send(request("task.wait", 2, params={"taskId": queued}))
            self.call("task.get", taskId=id)  # and they are being waited for
            self.assertEqual(self.project.run("daemon", "restart").code, 0)
            for number, connection in ((1, on_running), (2, on_queued)):
                error = connection.answer(number)[0]["error"]
                self.assertEqual((error["code"], error["data"]["subsystem"]), (-32003, "supervisor"))
        self.connect()
        self.pid = self.project.pid()
        self.project.pids.add(self.pid)
        self.assertNotIn("let go", self.project.log())
        self.assertNotIn("last answers", self.project.log())
        self.assert_went_on(id, pid)


class KeeperKilled(SurvivingTestCase):
    HARD = "echo begun; setsid sleep 60 & setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 60"

    def assert_lost(self, id, pid):
        record = self.wait(id)
        self.assertEqual((record["state"], record["error"]["reason"], record["exitCode"], record["signal"]),
                         ("failed", "lost", None, None), record)
        self.assertFalse(self.project.is_running(pid))
        self.assertEqual(self.output(id)[0], "begun\n")

    def begin(self, prompt=HARD, **params):
        id, pid = super().begin(prompt, **params)
        eventually(lambda: self.output(id)[0] == "begun\n", what="its first line")
        return id, pid

    def test_under_a_daemon(self):
        id, pid = self.begin()
        os.kill(parent_of(pid), signal.SIGKILL)
        self.assert_lost(id, pid)
        self.assertEqual(self.wait(self.submit("true"))["state"], "completed")

    def test_with_the_daemon(self):
        id, pid = self.begin()
        keeper = parent_of(pid)
        self.kill_daemon()
        os.kill(keeper, signal.SIGKILL)
        self.start_again()
        self.assert_lost(id, pid)

    def test_retries_are_for_lost_tasks_too(self):
        id, pid = self.begin("test -e again || { touch again; echo begun; sleep 60; }", retries=1)
        os.kill(parent_of(pid), signal.SIGKILL)
        record = self.wait(id)
        self.assertEqual((record["state"], record["attempts"]), ("completed", 2), record)


if __name__ == "__main__":
    suite.main()
