#!/usr/bin/env python3
"""What scripts need no guards for: a daemon that runs already, or does not; and what a stop says while it waits."""

import json
import os
import re
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase, held  # noqa: E402
from terminal import Terminal  # noqa: E402


class GuardTestCase(ProjectTestCase):
    def run_well(self, *words, **options):
        result = self.project.run(*words, **options)
        self.assertEqual(result.code, 0, result)
        self.note_daemon()
        return result

    def note_daemon(self):
        if pid := self.project.lock_holder():
            self.project.pids.add(pid)

    def submit(self, prompt):
        task = self.run_well("task", "submit", "--agent", "shell", "--", prompt).out.strip()
        eventually(lambda: self.state_of(task) == "running", what="it runs")
        return task

    def state_of(self, task):
        return self.project.call("task.get", params={"taskId": task})["result"]["state"]


class Starts(GuardTestCase):
    def test_if_needed(self):
        self.assertRegex(self.run_well("daemon", "start", "--if-needed").out, r"^started, pid \d+\n$")
        pid = self.project.pid()
        self.assertEqual(self.run_well("daemon", "start", "--if-needed").out, f"already running, pid {pid}\n")
        self.assertEqual(self.run_well("daemon", "start", "--if-needed", "--json").json(),
                         {"started": False, "pid": pid})
        self.assertEqual(self.run_well("daemon", "start", "--if-needed", "--foreground", "--json").json()["pid"], pid)
        self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid}")

    def test_all_at_once(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.project.run("daemon", "start", "--if-needed")))
                   for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.note_daemon()
        self.assertEqual([result.code for result in results], [0] * 6, results)
        self.assertEqual(sum(result.out.startswith("started") for result in results), 1, results)

    def test_a_start_that_fails_still_fails(self):
        self.project.write_settings("nonsense = 1\n")
        self.assert_refused(self.project.run("daemon", "start", "--if-needed"), 1, "nonsense")
        self.assert_refused(self.project.run("task", "list", "--start"), 1, "nonsense")

    def test_any_command_starts_one(self):
        self.assertEqual(self.run_well("task", "list", "--start").out, "no tasks\n")
        pid = self.project.pid()
        self.assertEqual(json.loads(self.run_well("call", "daemon.status", "--start").out)["pid"], pid)
        self.run_well("daemon", "stop")
        self.assertIn("running", self.run_well("daemon", "status", "--start").out)

    def test_at_another_socket(self):
        path = os.path.join(self.project.place.name, "s")
        self.run_well("call", "ping", "--start", "--socket", path)
        self.assertTrue(os.path.exists(path))
        self.run_well("call", "ping", "--start", "--socket", path)
        self.run_well("daemon", "stop", "--socket", path)

    def test_by_the_users_settings(self):
        self.project.write_user_settings("[daemon]\nautostart = true\n")
        self.assert_refused(self.project.run("daemon", "status"), 3, "no daemon is running")
        self.assert_refused(self.project.run("daemon", "stop"), 3, "no daemon is running")
        self.assertEqual(self.run_well("task", "list").out, "no tasks\n")
        pid = self.project.pid()
        self.assertEqual(self.run_well("call", "daemon.status").json()["pid"], pid)

    def test_not_by_a_projects(self):
        self.project.needs_no_trust = False
        self.project.write_settings("[daemon]\nautostart = true\n")
        self.assert_refused(self.project.run("task", "list"), 3, "no daemon is running")

    def test_commands_that_need_none(self):
        for words in (("daemon", "stop"), ("daemon", "restart"), ("daemon", "logs"), ("doctor",),
                      ("lsp", "check", "x")):
            with self.subTest(words):
                for result in (self.project.run(*words, "--start"), self.project.run("--start", *words)):
                    self.assertEqual(result.code, 1, result)
                    self.assertIn("--start", result.err)
                self.assertIsNone(self.project.lock_holder())


class Idle(GuardTestCase):
    IDLE = 0.3

    def start_idle(self):
        """One that would end soon, but for a task that is held: so no start has to be quicker than that."""
        self.project.start()
        task = self.run_well("task", "submit", "--agent", "shell", "--delay", "1h", "true").out.strip()
        self.run_well("daemon", "stop")
        return task, self.project.start("--idle", f"{int(self.IDLE * 1000)}ms", "--started-by", "a test")

    @store.only_sqlite("of a shared queue only what runs here keeps a daemon")
    def test_it_ends_when_nobody_uses_it_any_more(self):
        task, pid = self.start_idle()
        begun = time.monotonic()
        eventually(lambda: time.monotonic() > begun + 4 * self.IDLE, what="time passes")
        self.assertTrue(self.project.is_running(pid), "a queued task keeps it")
        with self.project.connect() as client:
            self.assertEqual(client.call("daemon.status")["result"]["startedBy"], "a test")
            client.call("task.cancel", params={"taskId": task})
            begun = time.monotonic()
            eventually(lambda: client.call("ping")["result"]["pong"] and time.monotonic() > begun + 4 * self.IDLE,
                       what="time passes")
            self.assertTrue(self.project.is_running(pid), "so does a client")
        self.project.wait_gone(pid)
        self.assertIn('stopping reason="idle"', self.project.log())
        self.assert_refused(self.project.run("daemon", "status"), 3, "no daemon is running")

    def test_a_rule_that_is_on_keeps_it(self):
        self.project.write_settings('[[rules]]\nid = "r"\ntrigger = { source = "task", type = "task.failed" }\n'
                                    'action = { type = "notify" }\n')
        _, pid = self.start_idle()
        with self.project.connect() as client:
            self.assertEqual(client.call("daemon.status")["result"]["subsystems"]["automation"]["ruleCount"], 1)
            client.call("task.cancel", params={"taskId": "task-1"})
        begun = time.monotonic()
        eventually(lambda: time.monotonic() > begun + 4 * self.IDLE, what="time passes")
        self.assertTrue(self.project.is_running(pid))
        self.run_well("automation", "disable", "r")
        self.project.wait_gone(pid)

    def test_nobody_said_so(self):
        self.project.start()
        self.assertNotIn("startedBy", self.project.call("daemon.status")["result"])
        refused = self.project.run("daemon", "start", "--idle", "0")
        self.assertEqual((refused.code, "--idle" in refused.err), (1, True), refused)


class Stops(GuardTestCase):
    def test_if_running(self):
        self.assertEqual(self.run_well("daemon", "stop", "--if-running").out, "no daemon is running\n")
        self.assertEqual(self.run_well("daemon", "stop", "--if-running", "--json").json(), {"stopped": False})
        pid = self.project.start()
        self.assertEqual(self.run_well("daemon", "stop", "--if-running").out, f"stopped, pid {pid}\n")
        self.assert_refused(self.project.run("daemon", "stop"), 3, "no daemon is running")

    def test_a_daemon_that_hangs_is_not_none(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSTOP)
        try:
            self.assert_refused(self.project.run("daemon", "stop", "--if-running", "--timeout", "2s"), 4, "in time")
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_tasks_may_go_on(self):
        self.project.start()
        marker = os.path.join(self.project.place.name, "marker")
        task = self.submit(f"until [ -e '{marker}' ]; do sleep 0.05; done; echo whole")
        result = self.run_well("daemon", "stop", "--leave-tasks")
        self.assertRegex(result.out, rf"^stopped, pid \d+; {task} goes on\n$")
        open(marker, "w", encoding="ascii").close()
        self.assertEqual(self.run_well("task", "wait", "--start", task).code, 0)
        self.assertEqual(self.run_well("task", "output", task).out, "whole\n")
        self.assertEqual(self.run_well("daemon", "stop", "--leave-tasks", "--json").json()["left"], [])

    def test_whoever_listens_is_told_that_it_is_the_end(self):
        self.project.start()
        with self.project.connect() as client:
            self.run_well("daemon", "stop", "--leave-tasks")
            stopping = [message for message in client.ends() if message["method"] == "event.daemonStopping"]
        self.assertNotIn("restarting", stopping[0]["params"])

    def test_a_drain_waits_for_what_runs(self):
        self.project.write_settings("max_running = 1\n")
        self.project.start()
        marker = os.path.join(self.project.place.name, "marker")
        task = self.submit(f"until [ -e '{marker}' ]; do sleep 0.05; done")
        later = self.run_well("task", "submit", "--agent", "shell", "true").out.strip()
        with self.project.popen("daemon", "stop", "--drain") as stop:
            eventually(lambda: "error" in self.project.call("task.submit", params={"prompt": "x", "agent": "shell"}),
                       what="nothing new is taken")
            self.assertEqual(self.state_of(task), "running")
            open(marker, "w", encoding="ascii").close()
            self.assertEqual(stop.wait(PATIENCE), 0)
        self.project.start()
        self.assertEqual(self.state_of(task), "completed")
        self.assertEqual(self.run_well("task", "wait", later).code, 0)  # it has begun only now

    def test_a_drain_is_visible_and_the_next_start_waits_for_its_end(self):
        self.project.start()
        marker = os.path.join(self.project.place.name, "marker")
        task = self.submit(f"until [ -e '{marker}' ]; do sleep 0.05; done")
        self.assertNotIn("stopping", self.project.call("daemon.status")["result"])
        with self.project.popen("daemon", "stop", "--drain") as stop:
            self.assertEqual(stop.stderr.readline().decode(), f"duet-rpc: waiting for {task}\n")
            self.assertTrue(self.project.call("daemon.status")["result"]["stopping"])
            self.assertRegex(self.run_well("daemon", "status").out, rf"daemon +stopping, pid \d+.*\nwaits for +{task}\n")
            stop.send_signal(signal.SIGINT)
            self.assertIn("the daemon stops all the same", stop.communicate(timeout=PATIENCE)[1].decode())
            self.assertEqual(stop.returncode, -signal.SIGINT)
        with self.project.popen("daemon", "start", "--if-needed") as start:
            self.assertEqual(start.stderr.readline().decode(), f"duet-rpc: waiting for {task}\n")
            open(marker, "w", encoding="ascii").close()
            self.assertRegex(start.communicate(timeout=PATIENCE)[0].decode(), r"^started, pid \d+\n$")
        self.note_daemon()
        self.assertEqual(self.state_of(task), "completed")

    def test_a_drain_with_an_end(self):
        self.project.start()
        task = self.submit("sleep 60")
        self.run_well("daemon", "stop", "--drain", "--timeout", "3s")
        self.project.start()
        self.assertEqual(self.state_of(task), "failed")

    def test_one_of_three(self):
        for two in (("--force", "--leave-tasks"), ("--force", "--drain"), ("--drain", "--leave-tasks")):
            self.assert_refused(self.project.run("daemon", "stop", *two), 1, *two)

    def test_says_what_it_waits_for(self):
        pid = self.project.start()
        task = self.submit("trap '' TERM; sleep 60")
        with self.project.popen("daemon", "stop", "--timeout", "5s") as stop:
            self.assertEqual(stop.stderr.readline().decode(), f"duet-rpc: waiting for {task}\n")
            with held(pid):  # or it might stop in time
                out, err = stop.communicate(timeout=PATIENCE)
        self.assertEqual((stop.returncode, out), (4, b""))
        self.assertIn("is still stopping", err.decode())
        self.project.wait_gone(pid)

    def test_a_daemon_that_does_not_answer_is_not_said_to_wait_for_its_last_answers(self):
        pid = self.project.start()
        self.submit("trap '' TERM; sleep 60")
        with self.project.popen("daemon", "stop", "--timeout", "4s", "--trace") as stop:
            for line in stop.stderr:
                if b'"stopping":true' in line:
                    break
            with held(pid):
                out, err = stop.communicate(timeout=PATIENCE)
        self.assertEqual((stop.returncode, out), (4, b""))
        self.assertNotIn("waiting for its", err.decode())
        self.project.wait_gone(pid)

    def test_every_second_on_a_terminal(self):
        self.project.start()
        marker = os.path.join(self.project.place.name, "marker")
        task = self.submit(f"until [ -e '{marker}' ]; do sleep 0.05; done")
        told = rf"\r\x1b\[Kwaiting for {task}, \d+s so far"
        with Terminal() as terminal:
            with self.project.popen("daemon", "stop", stderr=terminal.slave) as stop:
                terminal.screen.wait_until(lambda data: len(re.findall(told.encode(), data)) >= 2, PATIENCE)
                open(marker, "w", encoding="ascii").close()
                stop.communicate(timeout=PATIENCE)
            os.write(terminal.slave, b"[end]")
            terminal.screen.wait_until(lambda data: b"[end]" in data, PATIENCE)
            shown = terminal.screen.text().removesuffix("[end]")
        self.assertEqual(stop.returncode, 0)
        self.assertGreaterEqual(len(re.findall(told, shown)), 2, shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)


class Log(GuardTestCase):
    """What the daemon's log says of tasks, and of requests that were wrong."""

    def log_with(self, text):
        """The log, once TEXT is in it: a thread of its own writes it."""
        def log():
            lines = self.run_well("daemon", "logs", "-n", "100").out
            return lines if text in lines else None
        return eventually(log, what=text)

    def test_tasks_from_their_beginning_to_their_end(self):
        self.project.start()
        for prompt, code in (("echo secret-output", 0), ("exit 3", 3), ("kill -9 $$", 137)):
            result = self.project.run("task", "submit", "--agent", "shell", "--follow", "--", prompt)
            self.assertEqual(result.code, code, result)
        log = self.log_with('task failed task="task-3"')
        for text in (r'info  task accepted task="task-1" agent="shell"\n', r'info  task started task="task-1" .* pid=\d+\n',
                     r'info  task completed task="task-1" .* exit=0\n',
                     r'info  task failed task="task-2" .* exit=3 reason="exit"\n',
                     r'info  task failed task="task-3" .* signal="SIGKILL" reason="signal"\n'):
            self.assertRegex(log, text)
        self.assertNotIn("secret-output", log)

    def test_which_param_was_wrong(self):
        self.project.start()
        self.project.call("task.submit", params={"prompt": ["my-secret"]})
        self.project.call("task.submit", params={"prompt": "x", "priority": "my-secret"})
        log = self.log_with('param="priority"')
        self.assertIn('warn  Invalid params method="task.submit" param="prompt" id=1\n', log)
        self.assertNotIn("my-secret", log)


if __name__ == "__main__":
    suite.main()
