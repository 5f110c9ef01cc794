#!/usr/bin/env python3
"""One daemon for a project, whatever happens: simultaneous starts, kills, files that lie about who runs.

    one_daemon.py --program PATH --rounds 50
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually, request  # noqa: E402
from project import Connection, ProjectTestCase, held  # noqa: E402

STARTERS = 20
LANGUAGE_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fakes", "language_server.py")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class SimultaneousStarts(ProjectTestCase):
    def race(self):
        """Starts many at once; returns the pid of the one daemon, having checked what the others said."""
        starters = [self.project.popen("daemon", "start") for _ in range(STARTERS)]
        results = []
        for starter in starters:
            out, err = starter.communicate(timeout=2 * PATIENCE)
            results.append((starter.returncode, out.decode(), err.decode()))
        started = [out for code, out, err in results if code == 0]
        self.assertEqual(len(started), 1, results)
        pid = int(re.fullmatch(r"started, pid (\d+)\n", started[0]).group(1))
        self.project.pids.add(pid)
        for code, out, err in results:
            if code != 0:
                self.assertEqual((code, out), (1, ""), results)
                self.assertIn(f"already running, pid {pid}", err)
        self.assertEqual(self.project.pid(), pid)
        self.assertEqual(self.project.lock_holder(), pid)
        return pid

    def test_over_a_stale_socket(self):
        for _ in range(int(suite.option("rounds") or 5)):
            pid = self.race()
            self.project.kill(pid)
            self.assertTrue(os.path.exists(self.project.socket), "a killed daemon leaves its socket")

    def test_in_a_fresh_project(self):
        self.race()


class FromATask(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.write_settings('default_agent = "shell"\n')

    def write_settings(self, text):
        self.project.write_user_settings(text)

    def restart(self, **options):
        """As a task asks for it."""
        return self.project.popen("daemon", "restart", env={"DUET_TASK_ID": "task-1"}, **options)

    def start_with_a_slow_end(self):
        """A daemon that takes seconds to stop: its language server ignores that it should."""
        server = [sys.executable, "-B", LANGUAGE_SERVER, "--ignore", "shutdown", "--ignore", "exit", "--ignore", "TERM"]
        self.write_settings(f"default_agent = 'shell'\n[lsp.slow]\ncommand = {json.dumps(server)}\nfiles = ['*.slow']\n")
        pid = self.project.start()
        answer = self.project.call("lsp.request", params={"server": "slow", "method": "fake/echo", "params": [1]})
        self.assertEqual(answer.get("result"), [1], answer)
        return pid

    def test_a_restart_outlives_the_task_that_asked_for_it(self):
        pid = self.project.start()
        before = self.project.call("daemon.status")["result"]["started_at"]
        command = f"{suite.program()} daemon restart; echo $?"
        task = self.project.run("task", "submit", "--json", command).json()["taskId"]
        self.assertEqual(self.project.run("task", "wait", task).code, 0)
        self.assertEqual(self.project.run("task", "output", task).out, f"restarted, pid {pid}\n0\n")
        status = self.project.call("daemon.status")["result"]
        self.assertEqual((status["pid"], status["health"]), (pid, "healthy"))
        self.assertNotEqual(status["started_at"], before)
        self.assertNotIn("last_end", status)
        eventually(lambda: self.project.log().count("listening") == 2, what="the log tells of both")
        self.assertEqual(self.project.run("task", "submit", "--follow", "echo $DUET_TASK_ID").out.strip(), "task-2")
        self.assertEqual(self.project.run("daemon", "stop").code, 0)

    def test_a_restart_with_settings_that_are_wrong_is_refused(self):
        pid = self.project.start()
        self.write_settings("max_runing = 3\n")
        for env in ({"DUET_TASK_ID": "task-1"}, {}):
            self.assert_refused(self.project.run("daemon", "restart", env=env), 1, r"config\.toml:1:1: .*max_runing")
        self.assertEqual(self.project.pid(), pid)
        self.assertEqual(self.project.run("task", "submit", "--follow", "echo up").out, "up\n")

    def test_settings_that_turn_wrong_in_the_last_moment_are_told_in_the_log(self):
        pid = self.start_with_a_slow_end()
        with self.restart() as restart:
            eventually(lambda: "stopping" in self.project.log(), what="it stops")
            with held(pid):
                self.write_settings("max_runing = 3\n")
            self.project.wait_gone(pid)
            restart.kill()
        self.assertRegex(self.project.log(), r"(?m)^\S+ error the daemon has ended reason=.*config\.toml:1:1: .*max_runing")

    def test_a_program_that_cannot_be_executed_leaves_the_daemon_as_it_was(self):
        pid = self.project.start()
        copy = os.path.join(self.project.root, "duet-rpc")
        shutil.copy(suite.program(), copy)
        stdin, its_end = os.pipe()
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(asking.close)
        child = os.fork()
        if child == 0:  # whoever connects is asked for its program
            asking.connect(self.project.socket)
            os.set_inheritable(asking.fileno(), True)
            os.dup2(stdin, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(copy, [copy, "call", "ping", "-", "--project", self.project.root])
        os.close(stdin)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.close, its_end)
        eventually(lambda: os.readlink(f"/proc/{child}/exe") == copy, what="the copy runs")
        os.chmod(copy, 0o400)
        asking.send(request("daemon.stop", "stop", params={"restart": True}).encode() + b"\n")
        eventually(lambda: self.project.log().count("listening") == 2, what="it is back")
        self.assertEqual(self.project.pid(), pid)
        self.assert_logged("error cannot go on as the program of .* reason=.Permission denied")

    def test_a_restart_that_a_script_asks_for_does_not_make_a_daemon_of_its_interpreter(self):
        pid = self.project.start()
        self.assertEqual(self.project.call("daemon.stop", params={"restart": True})["result"], {"stopping": True})
        eventually(lambda: self.project.log().count("listening") == 2, what="it is back")
        self.assertEqual(self.project.pid(), pid)

    def test_a_project_that_was_moved_is_restarted_where_it_is(self):
        pid = self.project.start()
        moved = os.path.join(self.project.place.name, "moved")
        os.rename(self.project.root, moved)
        self.addCleanup(lambda: os.path.exists(moved) and os.rename(moved, self.project.root))
        result = self.project.run("daemon", "restart", env={"DUET_TASK_ID": "task-1"}, cwd=moved)
        self.assertEqual((result.code, result.out), (0, f"restarted, pid {pid}\n"), result)
        self.assertFalse(os.path.exists(self.project.root))
        self.assertEqual(self.project.run("daemon", "stop", cwd=moved).code, 0)

    def stopped_while_it_restarts(self, stop):
        pid = self.start_with_a_slow_end()
        task = self.project.run("task", "submit", "echo $$ >pid; exec sleep 1000").out.strip() if stop == "force" else None
        if task:
            eventually(lambda: os.path.exists(os.path.join(self.project.root, "pid")), what="the task runs")
        with self.project.connect() as client, self.restart() as restart:
            client.call("ping")
            eventually(lambda: "info  stopping reason" in self.project.log(), what="it stops")
            with held(pid):
                if stop == "force":
                    client.send(request("daemon.stop", params={"force": True}))
                else:
                    os.kill(pid, stop)
            self.project.wait_gone(pid)
            restart.kill()
        self.assertIsNone(self.project.reachable())
        self.assertIn("stopping for good", self.project.log())
        return task

    def test_a_signal_while_it_restarts_is_a_stop(self):
        self.stopped_while_it_restarts(signal.SIGTERM)

    def test_a_stop_while_it_restarts_ends_the_tasks_too(self):
        task = self.stopped_while_it_restarts("force")
        self.assertFalse(self.project.is_running(int(read(os.path.join(self.project.root, "pid")))))
        self.project.start()
        self.assertEqual(self.project.run("task", "get", task, "--json").json()["state"], "failed")

    def test_a_start_outlives_the_task_that_made_it(self):
        first = self.project.start()
        command = f"kill -9 {first}; {suite.program()} daemon start; echo $?"
        task = self.project.run("task", "submit", "--json", command).json()["taskId"]
        second = eventually(lambda: (pid := self.project.reachable()) != first and pid, what="another daemon")
        self.project.pids.add(second)
        self.assertEqual(self.project.run("task", "wait", task).code, 0)
        self.assertEqual(self.project.run("task", "output", task).out, f"started, pid {second}\n0\n")
        eventually(lambda: self.parent_name(second) != "duet-keeper", what="the keeper has ended")
        self.assertEqual(self.project.pid(), second)
        self.assertEqual(self.project.run("task", "submit", "--follow", "echo $DUET_TASK_ID").out.strip(), "task-2")

    @staticmethod
    def parent_name(pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            parent = file.read().rpartition(")")[2].split()[1]
        with open(f"/proc/{parent}/comm", encoding="ascii") as file:
            return file.read().strip()


class AfterAKill(ProjectTestCase):
    def test_the_next_start_needs_no_help(self):
        for _ in range(3):
            self.project.kill(self.project.start())
        pid = self.project.start()
        self.assert_answers_from(pid)
        with open(os.path.join(self.project.state, "daemon.pid"), encoding="ascii") as file:
            self.assertEqual(file.read(), f"{pid}\n")

    def test_not_even_that_somebody_waits(self):
        """A process that was killed holds its lock until it is gone; whoever starts at once waits for that."""
        for _ in range(10):
            os.kill(self.project.start(), signal.SIGKILL)
        self.assert_answers_from(self.project.start())

    def assert_answers_from(self, pid):
        self.assertEqual(self.project.pid(), pid)

    def test_a_client_says_that_nobody_runs(self):
        self.project.kill(self.project.start())
        for words in (("daemon", "status"), ("call", "ping"), ("events",), ("daemon", "stop")):
            self.assert_refused(self.project.run(*words), 3, "no daemon is running", "daemon start")


class TheLockIsTheTruth(ProjectTestCase):
    def bystander(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def write(self, name, text):
        os.makedirs(self.project.state, mode=0o700, exist_ok=True)
        with open(os.path.join(self.project.state, name), "w", encoding="ascii") as file:
            file.write(text)

    def test_a_foreign_pid_in_the_pid_file_is_never_signalled(self):
        bystander = self.bystander()
        self.write("daemon.pid", f"{bystander.pid}\n")
        for words in (("stop",), ("stop", "--force"), ("status",)):
            self.assertEqual(self.project.run("daemon", *words).code, 3)
        pid = self.project.start()
        self.write("daemon.pid", f"{bystander.pid}\n")
        self.assertEqual(self.project.run("daemon", "restart").code, 0)
        self.project.wait_gone(pid)
        self.write("daemon.pid", f"{bystander.pid}\n")
        self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
        self.assertIsNone(bystander.poll(), "the process of that number was signalled")

    def test_rubbish_in_the_pid_file_matters_to_nobody(self):
        for text in ("", "0\n", "-1\n", "999999999999999999999\n", "x" * 5000):
            self.write("daemon.pid", text)
            pid = self.project.start()
            self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid}")
            self.project.kill(pid)

    def test_the_pid_that_is_named_is_the_holder_of_the_lock(self):
        pid = self.project.start()
        for text in (f"{self.bystander().pid}\n", "1\n", ""):
            self.write("daemon.pid", text)
            self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid};")

    def test_a_socket_that_somebody_else_listens_on_is_left_alone(self):
        os.makedirs(self.project.state, mode=0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(self.project.socket)
            other.listen()
            inode = os.stat(self.project.socket).st_ino
            self.assert_refused(self.project.run("daemon", "start"), 1, "daemon.sock", "service manager", "--socket")
            self.assertEqual(os.stat(self.project.socket).st_ino, inode)

    def test_two_projects_have_two_daemons(self):
        other = self.new_project()
        first, second = self.project.start(), other.start()
        self.assertNotEqual(first, second)
        self.assertEqual([self.project.pid(), other.pid()], [first, second])

    def test_a_client_in_a_subfolder_finds_the_daemon(self):
        pid = self.project.start()
        deep = os.path.join(self.project.root, "a", "b", "c")
        os.makedirs(deep)
        self.assertEqual(self.project.run("call", "daemon.status", cwd=deep).json()["pid"], pid)


class Lifecycle(ProjectTestCase):
    def test_start_returns_when_a_ping_is_answered(self):
        for _ in range(5):
            pid = self.project.start()
            self.assertEqual(self.project.pid(), pid)
            self.assertEqual(self.project.run("daemon", "stop").code, 0)

    def test_stop_returns_when_the_daemon_is_gone(self):
        pid = self.project.start()
        result = self.project.run("daemon", "stop")
        self.assertEqual((result.code, result.out), (0, f"stopped, pid {pid}\n"))
        self.assertFalse(self.project.is_running(pid))
        self.assertEqual(sorted(set(os.listdir(self.project.state)) & {"daemon.sock", "daemon.pid", "daemon.lock"}),
                         ["daemon.lock"])

    def test_signals_are_a_graceful_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            pid = self.project.start()
            with self.project.connect() as client:
                client.call("ping")
                self.project.kill(pid, number)
                reasons = [message["params"]["reason"] for message in client.ends()]
            self.assertEqual(reasons, [number.name])
            self.project.wait_gone(pid)
            self.assertFalse(os.path.exists(self.project.socket))
            self.assertFalse(os.path.exists(os.path.join(self.project.state, "daemon.pid")))
            self.assertIn("stopped", self.project.log().splitlines()[-1])

    def test_hangup_drops_nobody(self):
        pid = self.project.start()
        with self.project.connect() as client:
            client.call("ping")
            for _ in range(3):
                self.project.kill(pid, signal.SIGHUP)
                self.assertTrue(client.call("ping")["result"]["pong"])
        self.assertEqual(self.project.pid(), pid)

    def test_restart_with_and_without_a_daemon(self):
        self.assertRegex(self.project.run("daemon", "restart").out, r"\Astarted, pid \d+\n\Z")
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        first = self.project.run("daemon", "restart", "--json")
        self.assertEqual(first.code, 0, first)
        second = self.project.run("daemon", "restart", "--json")
        self.assertEqual(second.code, 0, second)
        self.assertNotEqual(first.json()["pid"], second.json()["pid"])
        self.assertFalse(self.project.is_running(first.json()["pid"]))
        self.assertEqual(self.project.pid(), second.json()["pid"])

    def test_stop_answers_those_who_wait(self):
        """The one who asks for the stop gets its answer, and so does whoever asked before."""
        pid = self.project.start()
        with self.project.connect() as early, self.project.connect() as client:
            early.call("ping")
            client.call("ping")
            requests = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in range(1000)]
            early.send_bytes(b"".join(json.dumps(entry).encode() + b"\n" for entry in requests))
            answers = [early.answer(id) for id in range(1000)]
            self.assertEqual(client.call("daemon.stop", id="stop")["result"], {"stopping": True})
            self.assertEqual(len(answers), 1000)
            client.ends()
            early.ends()
        self.project.wait_gone(pid)

    def test_no_work_is_taken_after_the_stop_was_answered(self):
        pid = self.project.start()
        task = {"prompt": "true", "agent": "shell"}
        with self.project.connect() as client:
            lines = [request("daemon.stop", "stop"), request("task.submit", "submit", params=task),
                     request("chat.send", "chat", params={"message": "hello"})]
            client.send("\n".join(lines))
            self.assertEqual(client.answer("stop")[0]["result"], {"stopping": True})
            for id in ("submit", "chat"):
                self.assertEqual(client.answer(id)[0]["error"]["code"], -32003)
        self.project.wait_gone(pid)

    def test_who_waits_for_a_task_that_will_not_end_is_told(self):
        pid = self.project.start()
        task = {"prompt": "exec sleep 100", "agent": "shell"}
        tasks = [self.project.call("task.submit", params=task)["result"]["taskId"] for _ in range(4)]  # three may run
        running, queued = tasks[0], tasks[-1]
        with self.project.connect() as first, self.project.connect() as second:
            first.send(request("task.wait", "wait", params={"taskId": running}))
            second.send(request("task.wait", "wait", params={"taskId": queued}))
            eventually(lambda: self.project.call("task.get", params={"taskId": running})["result"]["state"] == "running",
                       what="the task runs")
            self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
            self.assertEqual(first.answer("wait")[0]["result"]["state"], "failed")
            self.assertEqual(second.answer("wait")[0]["error"]["code"], -32003)
        self.project.wait_gone(pid)
        self.assertNotIn("did not read", self.project.log(), "nobody was waited for")

    def test_clients_that_do_not_read_do_not_hold_up_a_stop(self):
        pid = self.project.start()
        with self.project.connect() as deaf:
            deaf.socket.settimeout(0.5)
            try:
                while True:
                    deaf.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n' * 1000)
            except TimeoutError:
                pass
            self.assertEqual(self.project.run("daemon", "stop", patience=PATIENCE).code, 0)
        self.assertFalse(self.project.is_running(pid))

    def test_the_detached_daemon_keeps_nothing_of_ours(self):
        read_end, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        pid = self.project.start(pass_fds=[write_end])
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            os.set_blocking(pipe.fileno(), False)
            self.assertEqual(pipe.read(), b"", "somebody still holds the pipe")
        self.assertEqual(os.getsid(pid), pid, "a session of its own")
        kinds = [os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)]
        self.assertEqual(kinds[:2], ["/dev/null", "/dev/null"])
        self.assertEqual(kinds[2], os.path.join(self.project.state, "daemon.log"))

    def test_the_folder_it_was_started_in_may_go(self):
        folder = os.path.join(self.project.root, "gone")
        os.mkdir(folder)
        pid = self.project.start(cwd=folder)
        self.assertFalse(os.readlink(f"/proc/{pid}/cwd").endswith("/gone"), "it holds that folder")
        os.rmdir(folder)
        self.assert_answers()

    def test_a_project_that_is_moved_stays_reachable(self):
        pid = self.project.start()
        moved = os.path.join(self.project.place.name, "moved")
        os.rename(self.project.root, moved)
        self.addCleanup(lambda: os.path.exists(moved) and os.rename(moved, self.project.root))
        with Connection(os.path.join(moved, ".aiwg/daemon/daemon.sock")) as client:
            self.assertEqual(client.call("daemon.status")["result"]["pid"], pid)
        result = self.project.run("daemon", "stop", cwd=moved)
        self.assertEqual(result.code, 0, result)

    def test_the_log_goes_with_a_project_that_is_moved(self):
        pid = self.project.start()
        moved = os.path.join(self.project.place.name, "moved")
        os.rename(self.project.root, moved)
        os.makedirs(self.project.state, mode=0o700)
        log = os.path.join(moved, ".aiwg/daemon/daemon.log")
        time.sleep(0.3)  # so often it is looked at whether the file is still in its place
        self.project.kill(pid, signal.SIGHUP)
        eventually(lambda: read(log).count("read again") == 1, what="a line in it")
        os.truncate(log, 10_000_000)
        time.sleep(0.3)
        self.project.kill(pid, signal.SIGHUP)
        # In between there is none of that name.
        eventually(lambda: os.path.exists(log + ".1") and os.path.exists(log) and "read again" in read(log),
                   what="it is rotated")
        self.assertEqual(self.project.run("daemon", "stop", cwd=moved).code, 0)
        self.assertEqual(os.listdir(self.project.state), [])

    def test_foreground_logs_to_stderr_and_ends_with_a_signal(self):
        with self.project.popen("daemon", "start", "--foreground") as daemon:
            self.project.pids.add(daemon.pid)
            eventually(self.project.reachable, what="the daemon answers")
            self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {daemon.pid}")
            daemon.terminate()
            out, err = daemon.communicate(timeout=PATIENCE)
        self.assertEqual((daemon.returncode, out), (0, b""))
        self.assertIn(b"listening", err)

    def test_foreground_refuses_when_one_runs(self):
        pid = self.project.start()
        self.assert_refused(self.project.run("daemon", "start", "--foreground"), 1, f"already running, pid {pid};")


if __name__ == "__main__":
    suite.main()
