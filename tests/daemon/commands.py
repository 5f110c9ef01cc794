#!/usr/bin/env python3
"""What a person can do wrong with the daemon's commands, and what they then say: one line, with what to do next."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import NOBODY, ProjectTestCase  # noqa: E402

USUAL_PATIENCE = 30  # seconds that a command waits for an answer when nobody says how long

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


class WithoutADaemon(ProjectTestCase):
    def test_every_command_says_how_to_start_one(self):
        for words in (("daemon", "status"), ("daemon", "stop"), ("daemon", "stop", "--force"), ("call", "ping"),
                      ("events",), ("task", "list"), ("task", "submit", "x"), ("automation", "status"),
                      ("chat", "send", "x")):
            with self.subTest(words):
                self.assert_refused(self.project.run(*words), 3, re.escape(self.project.root),
                                    "'duet-rpc daemon start'")

    def test_and_by_the_other_name_too(self):
        self.assert_refused(self.project.run("daemon", "status", program=self.aiwg()), 3, "^aiwg: ",
                            "'aiwg daemon start'")

    def aiwg(self):
        path = os.path.join(self.project.place.name, "aiwg")
        if not os.path.lexists(path):
            os.symlink(suite.program(), path)
        return path

    def test_its_words_are_the_same(self):
        aiwg = self.aiwg()
        self.assertEqual(self.project.run("daemon", "start", program=aiwg).code, 0)
        self.project.pids.add(self.project.pid())
        self.assertIn("running", self.project.run("daemon", "status", program=aiwg).out)
        self.project.write_user_settings('default_agent = "echo"\n[agents.echo]\ncommand = ["echo", "{prompt}"]\n')
        os.kill(self.project.pid(), signal.SIGHUP)
        submitted = eventually(lambda: self.submit(aiwg), what="the settings are read again")
        self.assertIn("task-", submitted.out)
        self.assertIn("Fix tests", self.project.run("task", "list", program=aiwg).out)
        self.assertEqual(self.project.run("daemon", "stop", program=aiwg).code, 0)

    def submit(self, program):
        result = self.project.run("task", "submit", "Fix tests", program=program)
        return result if result.code == 0 else None

    def test_logs_without_a_log(self):
        self.assert_refused(self.project.run("daemon", "logs"), 1, "there is no log", "daemon start")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_who_listens_counts_and_not_whose_file_it_is(self):
        path = os.path.join(self.project.place.name, "s")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            os.seteuid(NOBODY - 1)
            listener.listen()
            os.seteuid(0)
            os.chown(path, NOBODY, NOBODY)
            result = self.project.run_as_nobody("call", "ping", "--socket", path, "--timeout", "30s", cwd="/")
            self.assert_refused(result, 1, "is that of another user, and answers that user only")
            with listener.accept()[0] as connection:
                self.assertEqual(connection.recv(100), b"", "nothing was asked")

    def test_a_socket_where_nobody_listens(self):
        path = os.path.join(self.project.place.name, "s")
        self.assert_refused(self.project.run("call", "ping", "--socket", path), 3, re.escape(path))
        with open(path, "w", encoding="ascii"):
            self.assert_refused(self.project.run("call", "ping", "--socket", path), 3, re.escape(path))
        self.assertIn("--socket", self.project.run("call", "ping", "--socket", "").err)

    def test_a_project_that_is_none(self):
        self.assert_refused(self.project.run("daemon", "start", "--project", "/nowhere"), 1, "/nowhere", "--project")
        self.assert_refused(self.project.run("call", "ping", "--project", "/etc/passwd"), 1, "--project")

    def test_a_working_directory_that_is_gone(self):
        folder = os.path.join(self.project.root, "gone")
        os.mkdir(folder)

        def leave():
            os.chdir(folder)
            os.rmdir(folder)
        self.assert_refused(self.project.run("daemon", "start", preexec_fn=leave), 1, "working directory", "--project")


class StartsThatFail(ProjectTestCase):
    """The reason is told by `start` itself, though the daemon is detached; nothing runs afterwards."""

    def assert_no_start(self, *texts, **options):
        self.assert_refused(self.project.run("daemon", "start", **options), 1, *texts)
        self.assertIsNone(self.project.lock_holder())
        self.assertFalse(os.path.exists(os.path.join(self.project.state, "daemon.pid")))

    def test_a_file_where_the_folder_should_be(self):
        with open(os.path.join(self.project.root, ".aiwg"), "w", encoding="ascii"):
            pass
        self.assert_no_start(r"\.aiwg", "Not a directory")

    def test_a_file_where_the_state_should_be(self):
        os.mkdir(os.path.join(self.project.root, ".aiwg"))
        with open(self.project.state, "w", encoding="ascii"):
            pass
        self.assert_no_start(r"\.aiwg/daemon", "Not a directory")

    def test_a_folder_where_the_lock_should_be(self):
        os.makedirs(os.path.join(self.project.state, "daemon.lock"))
        self.assert_no_start("daemon.lock", "Is a directory", "move it away")

    def test_a_link_where_the_lock_should_be(self):
        os.makedirs(self.project.state)
        os.symlink("/etc/passwd", os.path.join(self.project.state, "daemon.lock"))
        self.assert_no_start("daemon.lock", "move it away")

    def test_a_folder_where_the_log_should_be(self):
        os.makedirs(os.path.join(self.project.state, "daemon.log"))
        self.assert_no_start("daemon.log", "Is a directory", "move it away")

    def test_a_file_where_the_socket_should_be(self):
        os.makedirs(self.project.state)
        with open(self.project.socket, "w", encoding="ascii"):
            pass
        self.assert_no_start("daemon.sock", "move it away")

    def test_settings_that_are_wrong(self):
        self.project.write_settings("max_running = 3\nmax_runing = 3\n")
        self.assert_no_start(r"\.duet-rpc\.toml", "2", "max_runing", "max_running")

    def test_settings_that_are_not_there(self):
        self.assert_no_start("/nowhere.toml", env={"DUET_RPC_CONFIG": "/nowhere.toml"})

    def run_on_small_disk(self, options, *words):
        """Runs the program in a project on a disk of its own. A daemon that it starts is stopped."""
        script = ('mount -t tmpfs -o "$1" none "$0" && mkdir "$0/.aiwg" || exit 99; shift; "$@"; code=$?;'
                  ' [ "$code" = 0 ] && "$1" daemon stop --force --project "$0"; exit "$code"')
        result = self.project.run("--mount", "sh", "-c", script, self.project.root, options, suite.program(), *words,
                                  "--project", self.project.root, program="unshare")
        if result.code in (1, 99) and any(each in result.err + result.out for each in ("mount", "unshare")):
            self.skipTest(f"may not mount: {result}")
        return result

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_a_full_disk_is_worth_another_try(self):
        for words in (["start"], ["start", "--foreground"]):
            result = self.run_on_small_disk("nr_inodes=2", "daemon", *words)
            self.assert_refused(result, 75, r"\.aiwg/daemon", "No space left", "make room")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_however_small_the_disk_a_start_works_or_is_worth_another_try(self):
        codes = {self.run_on_small_disk("nr_inodes=2", "daemon", "start").code}
        for limit in [f"nr_inodes={count}" for count in range(3, 16)] + [f"size={4 << size}k" for size in range(9)]:
            with self.subTest(limit=limit):
                result = self.run_on_small_disk(limit, "daemon", "start")
                codes.add(result.code)
                if result.code != 0:
                    self.assert_refused(result, 75, "make room")
        self.assertEqual(codes, {0, 75})

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_a_project_we_may_not_write(self):
        result = self.project.run_as_nobody("daemon", "start", "--project", self.project.root, cwd="/")
        self.assert_refused(result, 1, r"\.aiwg", "Permission denied")


class Doctor(ProjectTestCase):
    def verdicts(self, **options):
        result = self.project.run("doctor", "--json", **options)
        found = {each["subject"]: each["verdict"] for each in result.json()["findings"]}
        self.assertEqual(result.code, 1 if "wrong" in found.values() else 0, result)
        return found

    def settings(self, text):
        self.project.write_settings(text)

    def test_tells_of_a_daemon_its_socket_and_its_store(self):
        self.settings('default_agent = "shell"\n')
        self.project.start()
        found = self.verdicts()
        for subject in ("settings", "default agent", "daemon", "socket", "store"):
            self.assertEqual(found[subject], "good", found)

    def test_a_default_agent_that_is_not_installed_is_wrong(self):
        self.settings('default_agent = "claude"\n')
        self.assertEqual(self.verdicts(env={"PATH": "/nowhere"})["default agent"], "wrong")

    def test_what_keeps_a_daemon_from_starting(self):
        self.assertEqual(self.verdicts()["place"], "good")
        os.makedirs(self.project.state)
        with open(self.project.socket, "w", encoding="ascii"):
            pass
        self.assertEqual(self.verdicts()["place"], "wrong")

    def test_a_language_server_that_is_not_installed_is_wrong(self):
        self.settings('[lsp.mine]\ncommand = ["no-such-server"]\nfiles = ["*.mine"]\n')
        self.assertEqual(self.verdicts()["language server mine"], "wrong")

    def test_a_daemon_that_hangs_is_given_up_soon(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            result = self.project.run("doctor")
            self.assertLess(time.monotonic() - begun, USUAL_PATIENCE)
            self.assertRegex(result.out, rf"(?m)^daemon +wrong +pid {pid}: the daemon did not answer")
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_goes_on_where_the_lock_cannot_be_opened(self):
        os.makedirs(os.path.join(self.project.state, "daemon.lock"))
        found = self.verdicts()
        self.assertEqual((found["settings"], found["daemon"]), ("good", "wrong"))


class Calls(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.pid = self.project.start()

    def call(self, *words, **options):
        return self.project.run("call", *words, **options)

    def test_print_the_result_as_it_came(self):
        result = self.call("ping")
        self.assertEqual(result.code, 0)
        self.assertRegex(result.out, r'^\{"pong":true,"timestamp":"[^"]+Z"\}\n$')
        self.assertEqual(self.call("ping", "--json").out[:12], '{"pong":true')

    def test_params_from_the_command_line_and_from_stdin(self):
        for words, given in ((["{}"], None), (["[]"], None), (["null"], None), (["-"], b'{"a":1}'), (["-"], b" \n"),
                             (["-"], b"")):
            self.assertEqual(self.call("ping", *words, input=given).code, 0)
        self.assertIn("next", self.call("events.subscribe", "-", input=b'{\n  "since":\r\n 1\n}\n').json())
        self.assertEqual(self.call("events.subscribe", "-", input=b'{"since":1}').code, 0)

    def test_params_that_cannot_be(self):
        self.assert_refused(self.call("ping", "{"), 1, "not JSON", "'.*'")
        self.assert_refused(self.call("ping", "3"), 1, "neither an object nor an array")
        self.assert_refused(self.call("ping", "{} {}"), 1, "not JSON")
        self.assert_refused(self.call("ping", '{},"id":7'), 1, "not JSON")
        self.assert_refused(self.call("ping", "-", input=b"\xff"), 1, "not JSON")

    def test_params_from_a_pipe_that_does_not_block(self):
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        with self.project.popen("call", "task.get", "-", stdin=read_end) as process, open(write_end, "wb") as pipe:
            os.close(read_end)
            eventually(lambda: process.poll() is not None or self.waits(process.pid), what="it waits")
            self.assertIsNone(process.poll(), "it did not wait")
            pipe.write(b'{"taskId":"task-99"}')
            pipe.close()
            self.assertIn(b"task-99", process.communicate(timeout=PATIENCE)[1])

    @staticmethod
    def waits(pid):
        """It is the program, no longer the copy of this process that it begins as, and sleeps."""
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, state = re.match(r"\d+ \((.*)\) (\S)", file.read()).groups()
        return (name, state) == (os.path.basename(suite.program())[:15], "S")

    def test_params_without_end(self):
        with open("/dev/zero", "rb") as endless:
            self.assert_refused(self.call("ping", "-", stdin=endless), 1, "stdin", "10 MiB")

    def test_params_that_are_too_much(self):
        result = self.call("ping", "-", input=b'["' + b"x" * 11_000_000 + b'"]')
        self.assert_refused(result, 1, "10 MiB")  # 4 if it waited for an answer, which cannot come
        self.assert_refused(self.call("ping", "-", input=b"[" * 600 + b"]" * 600), 1, "too-deep")

    def test_refusals_of_the_daemon(self):
        self.assert_refused(self.call("nope"), 1, "nope: Method not found", "listMethods")
        self.assert_refused(self.call("daemon.stop", '{"force":1}'), 1, "force", "boolean", "number")
        self.assert_refused(self.call("task.get", '{"taskId":"task-99"}'), 1, "-32000")

    def test_words_that_are_missing_or_too_many(self):
        self.assertEqual(self.call().code, 1)
        self.assertIn("METHOD", self.call().err)
        self.assertEqual(self.call("ping", "{}", "more").code, 1)

    def test_durations_that_are_none(self):
        for bad in ("x", "-1", "1y", ""):
            result = self.call("ping", "--timeout", bad)
            self.assertEqual(result.code, 1, result)
            self.assertIn("timeout", result.err)

    def test_a_result_nobody_can_write_down(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([suite.program(), "call", "ping"], cwd=self.project.root, stdout=full,
                                    stderr=subprocess.PIPE, env=self.project.environment(), check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"No space left on device", result.stderr)

    def test_events_that_are_none(self):
        self.assert_refused(self.project.run("events", "--kind", "taskExploded"), 1, "taskExploded", "taskFailed")
        with self.project.popen("events", "--since", "99999") as events:
            self.assertRegex(events.stderr.readline().decode(), r"event 99999 has not happened yet; the next one is \d+$")
            self.assertIsNone(events.poll())
            events.terminate()
            self.assertEqual(events.communicate(timeout=PATIENCE)[0], b"")
        self.assertEqual(self.project.run("events", "--since", "x").code, 1)
        self.assertEqual(self.project.run("events", "--since", "-1").code, 1)

    def test_the_process_is_named_by_the_program(self):
        pid = self.project.call("daemon.status")["result"]["pid"]
        with open(f"/proc/{pid}/comm", encoding="ascii") as name:
            self.assertEqual(name.read(), "duet-rpc\n")

    def test_logs(self):
        # Lines of the log share writes, and so may come after the start was told.
        shown = lambda: self.project.run("daemon", "logs").out  # noqa: E731
        lines = eventually(lambda: "listening" in (out := shown()) and out, what="the last line").splitlines()
        self.assertIn("duet-rpc started", lines[0])
        self.assertEqual(self.project.run("daemon", "logs", "-n", "1").out.splitlines(), lines[-1:])
        self.assertEqual(self.project.run("daemon", "logs", "-n", "0").out, "")
        self.assertEqual(self.project.run("daemon", "logs", "-n", "-1").code, 1)

    @staticmethod
    def watches_files(pid):
        try:
            return any("inotify" in os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd"))
        except OSError:  # one was closed meanwhile
            return False

    def test_logs_as_json(self):
        eventually(lambda: "listening socket" in self.project.log(), what="the last line of the start is written")
        lines = self.project.run("daemon", "logs").out.splitlines()
        objects = [json.loads(line) for line in self.project.run("daemon", "logs", "--json").out.splitlines()]
        self.assertEqual([each["time"] for each in objects], [line.split()[0] for line in lines])
        self.assertIn("duet-rpc started", objects[0]["message"])

    def test_logs_are_followed_over_a_rotation(self):
        log = os.path.join(self.project.state, "daemon.log")
        # The log is written behind the daemon's back, and may come after the answer that it has started.
        eventually(lambda: "listening" in self.project.log(), what="the last line of the start is written")
        with self.project.popen("daemon", "logs", "-f", "-n", "0") as follower:
            eventually(lambda: self.watches_files(follower.pid), what="it waits for changes")
            self.call("first")
            self.assertIn(b"first", follower.stdout.readline())
            os.rename(log, log + ".1")
            with open(log, "w", encoding="ascii") as file:
                file.write("a new file\n")
            self.assertEqual(follower.stdout.readline(), b"a new file\n")
            follower.terminate()

    def test_another_version_is_named(self):
        with open(os.path.join(self.project.state, "daemon.version"), "w", encoding="ascii") as file:
            file.write("0.0.1\n")
        result = self.call("ping")
        self.assertEqual(result.code, 0)
        self.assertRegex(result.err, "version 0.0.1.*'duet-rpc daemon restart'")
        self.assertEqual(result.err.count("\n"), 1)
        self.project.pids.add(self.project.run("daemon", "restart", "--json").json()["pid"])
        self.assertEqual(self.call("ping").err, "")

    def test_the_trace_shows_both_directions(self):
        for words, env in ((["--trace"], None), ([], {"AIWG_IPC_DEBUG": "1"})):
            result = self.call("ping", *words, env=env)
            self.assertEqual(result.code, 0)
            self.assertRegex(result.err, r' sent .*"method":"ping"')
            self.assertRegex(result.err, r' received .*"pong":true')
            self.assertEqual(result.out.count("\n"), 1)
        for value in ("0", ""):
            self.assertEqual(self.call("ping", env={"AIWG_IPC_DEBUG": value}).err, "")

    def test_the_trace_hides_environments(self):
        params = json.dumps({"prompt": "true", "agent": "shell", "env": {"TOKEN": "hunter2"}})
        result = self.call("task.submit", params, "--trace")
        self.assertEqual(result.code, 0, result)
        self.assertIn("TOKEN", result.err)
        self.assertNotIn("hunter2", result.err + result.out)

    def test_the_trace_of_a_detached_daemon_is_in_its_log(self):
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.project.start(env={"AIWG_IPC_DEBUG": "1"})
        self.call("task.submit", json.dumps({"prompt": "true", "agent": "shell", "env": {"TOKEN": "hunter2"}}))
        eventually(lambda: re.search(r" sent .*\"taskId\":\"task-1\"", self.project.log()), what="the answer is traced")
        self.assertRegex(self.project.log(), r' received .*"method":"task.submit"')
        self.assertNotIn("hunter2", self.project.log())


class Pages(ProjectTestCase):
    """The tables of methods in docs/ against what the daemon says of itself."""

    def rows(self):
        found = {}
        for page in ("socket", "tasks", "automation", "lsp", "doors"):
            with open(os.path.join(DOCS, page + ".md"), encoding="utf-8") as text:
                for line in text:
                    cells = re.split(r"(?<!\\)\|", line)
                    if len(cells) != 5:
                        continue
                    for name in re.findall(r"`([a-z]+\.?[A-Za-z]+)`", cells[1]):
                        found[name] = cells[2]
        return found

    def test_have_every_method_with_its_parameters(self):
        self.project.start()
        rows = self.rows()
        for method in self.project.run("call", "describeMethods").json():
            with self.subTest(method["name"]):
                self.assertIn(method["name"], rows)
                cell = rows[method["name"]]
                if "the same" in cell:
                    continue
                named = re.findall(r"[A-Za-z]+\??", re.sub(r"=[^,`]*", "", cell))
                self.assertEqual(named, [param.split(":")[0] for param in method["params"]])

    def test_have_the_defaults_of_the_program(self):
        self.project.start()
        rows = self.rows()
        for method in self.project.run("call", "rpc.discover").json()["methods"]:
            known = {param["name"]: param["schema"].get("default") for param in method["params"]}
            for name, text in re.findall(r"([A-Za-z]+)\?=([^,`]+)", rows[method["name"]]):
                with self.subTest(method["name"], param=name):
                    self.assertEqual(json.loads(text), known[name])


class ADaemonThatDoesNotAnswer(ProjectTestCase):
    def test_gives_4_in_time(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSTOP)
        try:
            for words in (("call", "ping"), ("daemon", "status"), ("daemon", "stop"), ("daemon", "restart"),
                          ("events",), ("task", "list")):
                with self.subTest(words):
                    started = time.monotonic()
                    self.assert_refused(self.project.run(*words, "--timeout", "500ms"), 4, "in time", "--timeout")
                    self.assertLess(time.monotonic() - started, USUAL_PATIENCE)
            self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid}")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assert_answers()

    def test_nor_takes_connections_any_more(self):
        """Its backlog is full: even the connection has to wait."""
        pid = self.project.start()
        os.kill(pid, signal.SIGSTOP)
        waiting = []
        try:
            while True:
                waiting.append(self.project.connect(0.2))
        except (TimeoutError, BlockingIOError):
            pass
        try:
            self.assertGreaterEqual(len(waiting), 511)
            started = time.monotonic()
            self.assert_refused(self.project.run("call", "ping", "--timeout", "500ms"), 4, "does not accept")
            self.assertLess(time.monotonic() - started, USUAL_PATIENCE)
        finally:
            os.kill(pid, signal.SIGCONT)
            for client in waiting:
                client.close()
        self.assert_answers()

    def test_or_dies_during_a_call(self):
        pid = self.project.start()
        task = self.project.call("task.submit", params={"prompt": "exec sleep 1000", "agent": "shell"})["result"]["taskId"]
        with self.project.popen("call", "task.wait", json.dumps([task])) as command:
            eventually(lambda: self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["clients"] == 2,
                       what="the command is connected")
            self.project.kill(pid)
            out, err = command.communicate(timeout=PATIENCE)
        self.assertEqual((command.returncode, out), (3, b""))
        self.assertIn(b"went away", err)
        self.project.start()
        self.assertTrue(self.project.call("task.cancel", params=[task])["result"]["cancelled"])


if __name__ == "__main__":
    suite.main()
