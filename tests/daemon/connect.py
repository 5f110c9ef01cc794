#!/usr/bin/env python3
"""`duet-rpc connect`: the project's daemon on stdin and stdout, in either framing."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, Daemon, LineFraming, eventually, frame, notification, request  # noqa: E402
from project import ProjectTestCase, memory  # noqa: E402


class ConnectTestCase(ProjectTestCase):
    def connect(self, *words, lines=False, **options):
        """`duet-rpc connect WORDS`, started in the project."""
        words = ["connect", *(["--framing", "lines"] if lines else []), *words]
        child = Daemon([self.project.program, *words], env=self.project.environment(), cwd=self.project.root, **options)
        self.addCleanup(child.__exit__)
        if lines:
            child.framing = LineFraming
        return child

    def answer(self, child, id):
        """The answer to ID; events before it are passed over."""
        while True:
            message = child.next_message()
            if "method" not in message:
                self.assertEqual(message.get("id"), id, message)
                return message

    def submit(self, prompt):
        return self.project.run("task", "submit", "--agent", "shell", "--", prompt).out.strip()


class Conversation(ConnectTestCase):
    def setUp(self):
        super().setUp()
        self.pid = self.project.start()

    def test_requests_in_either_framing(self):
        for lines in (False, True):
            with self.subTest(lines=lines):
                child = self.connect(lines=lines)
                self.assertTrue(child.call("ping", "a")["result"]["pong"])
                self.assertEqual(child.call("daemon.status", 2)["result"]["pid"], self.pid)
                self.assertEqual(child.call("nonsense", 3)["error"]["code"], -32601)
                child.close_input()
                child.expect_exit(0)
                self.assertEqual(child.stderr_text(), "")

    def test_batches(self):
        child = self.connect()
        child.send("[" + request("ping", 1) + ",\n" + notification("x") + ",\n" + request("version", 2) + "]")
        self.assertEqual([answer["id"] for answer in child.next_message()], [1, 2])
        child.send("[]")
        self.assertEqual(child.next_message()["error"]["code"], -32600)

    def test_what_is_no_message_costs_one_message(self):
        child = self.connect()
        ping = frame(request("ping", "good"))
        for broken, reason in ((b"Content-Length: x\r\n\r\n", "malformed-header"),
                               (b"Content-Length: 11000000\r\n\r\n", "oversize"),
                               (frame("{no JSON}"), "invalid-json"),
                               (frame('{"jsonrpc":"2.0","id":1,"method":"a\nb"}'), "invalid-json"),
                               (b"X: " + b"x" * 9000 + b"\r\n\r\n", "header-too-large"),
                               (b"Content-Length: 50\r\n\r\n{" + ping, "content-length-mismatch")):
            with self.subTest(reason):
                child.send_bytes(broken)
                self.assertEqual(child.next_message()["error"]["data"]["reason"], reason)
                if not broken.endswith(ping):
                    child.send_bytes(ping)
                self.assertEqual(child.next_message()["id"], "good")

    def test_ten_mebibytes_both_ways(self):
        child = self.connect()
        body = request("ping", "x" * (10 * 1024 * 1024 - 100))
        child.send(body)
        self.assertEqual(len(child.next_message()["id"]), 10 * 1024 * 1024 - 100)
        child.send(request("ping", "é" * (5 * 1024 * 1024 - 100)))
        self.assertEqual(len(child.next_message()["id"]), 5 * 1024 * 1024 - 100)

    def test_the_end_of_input_waits_for_the_answers(self):
        task = self.submit("sleep 0.3; echo done")
        child = self.connect("--events", "notice")
        child.send(request("task.wait", "w", params={"taskId": task}))
        child.send_bytes(b"Content-Length: 100\r\n\r\n{")
        child.close_input()
        answers = {message["id"]: message for message in (child.next_message(), child.next_message())}
        self.assertEqual(answers["w"]["result"]["state"], "completed")
        self.assertEqual(answers[None]["error"]["data"]["reason"], "content-length-mismatch")
        child.expect_exit(0)

    def test_input_from_a_file(self):
        path = os.path.join(self.project.place.name, "input")
        with open(path, "w", encoding="ascii") as file:
            file.write(request("ping", 1) + "\n" + request("ping", 2) + "\n")
        with open(path, "rb") as file:
            result = self.project.run("connect", "--framing", "lines", stdin=file)
        self.assertEqual([json.loads(line)["id"] for line in result.out.splitlines()], [1, 2], result)
        self.assertEqual(result.code, 0)

    def test_output_to_a_file(self):
        path = os.path.join(self.project.place.name, "output")
        with open(path, "wb") as file:
            with self.project.popen("connect", "--framing", "lines", stdin=subprocess.PIPE, stdout=file) as child:
                child.communicate(request("ping", 1).encode() + b"\n", timeout=PATIENCE)
        with open(path, encoding="ascii") as file:
            self.assertTrue(json.load(file)["result"]["pong"])

    def test_a_reader_that_goes(self):
        child = self.connect()
        self.assertTrue(child.call("ping")["result"]["pong"])
        reader = self.project.popen("connect", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        reader.stdout.close()
        self.assertEqual(reader.wait(PATIENCE), 1)
        self.assertIn(b"nobody reads stdout", reader.stderr.read())
        reader.stdin.close()
        reader.stderr.close()

    def test_a_reader_that_is_slow_is_waited_for_in_bounded_memory(self):
        child = self.connect(read_stdout=False)
        count = 3000
        for number in range(count):  # each answer has some 20 KB
            child.send(request("rpc.discover", number))
        eventually(lambda: child.unsent_in_pipe() == 0, what="the requests are taken")
        self.assertLess(memory(child.pid), 40 << 20)
        child.read_stdout()
        for number in range(count):
            self.assertEqual(child.next_message()["id"], number)

    def test_a_daemon_that_hangs_holds_the_client_up(self):
        child = self.connect()
        self.assertTrue(child.call("ping")["result"]["pong"])
        os.kill(self.pid, signal.SIGSTOP)
        try:
            flood = frame(notification("x", params={"text": "x" * 100_000})) * 200
            self.assertTrue(child.write_some(flood, 1.0), "20 MB were taken though nobody reads them")
            self.assertLess(memory(child.pid), 40 << 20)
        finally:
            os.kill(self.pid, signal.SIGCONT)


class Events(ConnectTestCase):
    def setUp(self):
        super().setUp()
        self.project.start()

    def kinds_until(self, child, last):
        kinds = []
        while last not in kinds:
            kinds.append(child.next_message()["method"].removeprefix("event."))
        return kinds

    def test_all_but_output_without_asking(self):
        child = self.connect()
        self.assertTrue(child.call("ping")["result"]["pong"])
        self.submit("echo hello")
        self.assertEqual(self.kinds_until(child, "taskCompleted"), ["taskQueued", "taskStarted", "taskCompleted"])

    def test_chosen_ones(self):
        child = self.connect("--events", "taskFailed,event.taskCompleted")
        self.assertTrue(child.call("ping")["result"]["pong"])
        self.submit("exit 3")
        self.assertEqual(self.kinds_until(child, "taskFailed"), ["taskFailed"])

    def test_all_of_them(self):
        child = self.connect("--events", "all", lines=True)
        self.assertTrue(child.call("ping")["result"]["pong"])
        self.submit("echo hello")
        self.assertIn("taskStarted", self.kinds_until(child, "taskOutput"))

    def test_one_that_there_is_not(self):
        self.assert_refused(self.project.run("connect", "--events", "taskFailed,nonsense"), 1, "kinds", "nonsense",
                            "taskCompleted")
        self.assert_refused(self.project.run("connect", "--events", ","), 1, "--events", "taskFailed")


class Daemons(ConnectTestCase):
    def test_without_a_daemon(self):
        self.assert_refused(self.project.run("connect"), 3, "'duet-rpc daemon start'")

    def test_starts_one(self):
        child = self.connect("--start")
        pid = child.call("daemon.status")["result"]["pid"]
        self.project.pids.add(pid)
        child.close_input()
        child.expect_exit(0)
        self.assertEqual(self.project.pid(), pid)

    def test_ends_with_it(self):
        for stop in (lambda pid: self.project.run("daemon", "stop"), lambda pid: self.project.run("daemon", "restart"),
                     os_kill):
            self.project.run("daemon", "start", "--if-needed")
            child = self.connect("--events", "notice")
            pid = child.call("daemon.status")["result"]["pid"]
            stop(pid)
            child.expect_exit(3)
            self.assertEqual(child.stderr_text(), "duet-rpc: the daemon has gone\n")

    def test_trace(self):
        self.project.start()
        child = self.connect("--trace")
        self.assertTrue(child.call("ping")["result"]["pong"])
        child.close_input()
        child.expect_exit(0)
        self.assertIn("ping", child.stderr_text())


def os_kill(pid):
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    suite.main()
