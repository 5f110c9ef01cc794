#!/usr/bin/env python3
"""Commands that wait for tasks, or end them, while others remove and restart those tasks."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402


class EndsTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.start()

    def submit(self, script, **params):
        answer = self.project.call("task.submit", params={"prompt": script, "agent": "shell", **params})
        return answer["result"]["taskId"]

    def gated(self, name, rest):
        """A task that goes on when it is let."""
        os.mkfifo(os.path.join(self.project.root, name))
        return self.submit(f"read line < {name}; {rest}")

    def let_go(self, name):
        with open(os.path.join(self.project.root, name), "w", encoding="ascii") as gate:
            gate.write("go\n")

    def wait_ended(self, id):
        return self.project.call("task.wait", params={"taskId": id})["result"]

    def clean(self, left):
        """LEFT is how many there are then. What is left of a task's processes may keep it a moment."""
        def is_clean():
            self.project.call("task.clean")
            return self.project.call("task.stats")["result"]["total"] == left
        eventually(is_clean, what="ended tasks removed")

    def restart(self, id):
        answer = self.project.call("task.restart", params={"taskId": id, "inPlace": True})
        self.assertEqual(answer["result"]["taskId"], id, answer)

    def begin(self, *words):
        """The program with what it asks on its stderr."""
        process = self.project.popen(*words, "--trace")
        self.addCleanup(process.kill)
        return process

    def heard(self, process, text):
        """Reads its trace up to a line that has TEXT."""
        for line in process.stderr:
            if text.encode() in line:
                return
        self.fail(f"{text} is not in the trace")

    def finished(self, process):
        out, _ = process.communicate(timeout=PATIENCE)
        return out.decode(), process.returncode


class Removed(EndsTestCase):
    def test_a_wait_knows_how_tasks_ended_that_are_gone(self):
        gate, meanwhile = self.gated("gate", "true"), self.gated("meanwhile", "exit 9")
        before = self.submit("exit 7")
        self.wait_ended(before)
        process = self.begin("task", "wait", gate, before, meanwhile)
        self.heard(process, '"task.wait"')
        self.let_go("meanwhile")
        self.wait_ended(meanwhile)
        self.clean(1)
        self.let_go("gate")
        self.assertEqual(self.finished(process), (f"{gate} completed\n{before} failed: exited with code 7\n"
                                                  f"{meanwhile} failed: exited with code 9\n", 7))

    def test_who_follows_several_knows_it_too(self):
        gate, before = self.gated("gate", "true"), self.submit("echo words; exit 7")
        self.wait_ended(before)
        process = self.begin("task", "output", "-f", gate, before)
        self.heard(process, '"outputDropped"')  # a record has come
        self.clean(1)
        self.let_go("gate")
        self.assertEqual(self.finished(process), (f"{before} | words\n", 7))

    def test_a_cancel_of_more_tasks_than_are_kept_is_none_that_failed(self):
        self.project.write_user_settings("keep_tasks = 3\n")
        self.project.run("daemon", "reload")
        self.project.call("queue.pause")
        ids = [self.submit("true") for _ in range(9)]
        result = self.project.run("task", "cancel", "--all")
        self.assertEqual((sorted(result.out.splitlines()), result.code), ([f"{id} cancelled" for id in ids], 0), result)
        eventually(lambda: self.project.call("task.stats")["result"]["total"] < 9, what="not all of them are kept")


class Unfinished(EndsTestCase):
    def test_a_line_without_its_end_is_shown_when_the_time_is_over(self):
        id, other = self.submit("printf 'Password: '; exec sleep 60"), self.submit("exec sleep 60")
        eventually(lambda: self.project.run("task", "output", id).out, what="its words")
        result = self.project.run("task", "output", "-f", id, other, "--timeout", "4s")
        self.assertEqual((result.out, result.code), (f"{id} | Password: \n", 124), result)
        self.assert_refused(self.project.run("task", "output", "-f", id, "--json"), 123, "does not go with --json")
        self.project.run("task", "cancel", "--all")


class Restarted(EndsTestCase):
    def test_who_follows_several_follows_one_that_runs_again(self):
        again = self.gated("again", "echo run; test -e ran || { touch ran; exit 4; }")
        gate = self.gated("gate", "true")
        process = self.begin("task", "output", "-f", again, gate)
        self.heard(process, '"events.subscribe"')
        self.let_go("again")
        self.heard(process, '"outputDropped"')  # a record has come
        self.restart(again)
        self.let_go("again")
        self.assertEqual(self.wait_ended(again)["attempts"], 2)
        self.let_go("gate")
        self.assertEqual(self.finished(process), (f"{again} | run\n" * 2, 0))

    def test_what_a_task_wrote_before_its_restart_is_not_printed_again(self):
        id = self.submit("echo run $(ls | wc -l); touch ran")
        self.wait_ended(id)
        result = self.project.run("task", "restart", id, "--in-place", "--follow")
        self.assertEqual((result.out, result.code), ("run 1\n", 0), result)
        self.assertEqual(self.project.run("task", "output", id).out, "run 0\nrun 1\n")


if __name__ == "__main__":
    suite.main()
