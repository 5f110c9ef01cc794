#!/usr/bin/env python3
"""How the daemon ends, whom it watches, and that stdout carries frames and nothing else."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, Daemon, LspFraming, eventually, frame, notification, request  # noqa: E402


class Shutdown(suite.TestCase):
    """Once of a few tries is enough for the 100 ms: a busy machine may be slow, a daemon that waits always is. What the
    machine needs for a program that does nothing at all comes on top: sanitizers look for leaks at the end."""

    @classmethod
    def setUpClass(cls):
        cls.allowed = 0.1 + min(cls.seconds_of_nothing() for _ in range(5))

    @staticmethod
    def seconds_of_nothing():
        begun = time.monotonic()
        subprocess.run([suite.program(), "--version"], stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - begun

    def assert_over_at_once(self, end):
        seconds = []
        while not seconds or (min(seconds) >= self.allowed and len(seconds) < 20):
            with suite.rpc() as daemon:
                self.assert_version(daemon)
                end(daemon)
                ended = time.monotonic()
                self.assertEqual(daemon.wait_exit(), 0)
                seconds.append(time.monotonic() - ended)
        self.assertLess(min(seconds), self.allowed)

    def test_is_over_within_100_ms_of_the_reply(self):
        self.assert_over_at_once(lambda daemon: daemon.call("shutdown", "bye"))

    def test_end_of_input_and_signals_are_as_quick(self):
        self.assert_over_at_once(lambda daemon: daemon.close_input())
        self.assert_over_at_once(lambda daemon: daemon.signal(signal.SIGTERM))

    def test_a_signal_storm_is_one_shutdown(self):
        with suite.rpc("--log-level", "info") as daemon:
            self.assert_version(daemon)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) * 5:
                if daemon.process.poll() is None:
                    daemon.signal(number)
            daemon.expect_exit(0)

    def test_what_came_before_a_signal_is_answered(self):
        with suite.rpc() as daemon:
            daemon.call("version", 1)
            daemon.signal(signal.SIGTERM)
            daemon.expect_exit(0)

    def test_shutdown_notification_ends_it(self):
        with suite.rpc() as daemon:
            daemon.send(notification("shutdown"))
            daemon.expect_exit(0)

    def test_signals_ignored_by_the_parent_still_work(self):
        """A shell starts background jobs with SIGINT ignored; nohup ignores SIGHUP."""
        with suite.rpc(preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)) as daemon:
            self.assert_version(daemon)
            daemon.signal(signal.SIGTERM)
            daemon.expect_exit(0)

    def test_a_blocked_sigpipe_or_an_ignored_one_changes_nothing(self):
        for action in (signal.SIG_IGN, signal.SIG_DFL):
            with self.subTest(action), suite.rpc(
                    read_stdout=False, preexec_fn=lambda: signal.signal(signal.SIGPIPE, action)) as daemon:
                daemon.process.stdout.close()
                daemon.send(request("version", 1))
                self.assertEqual(daemon.wait_exit(), 1)


class ReadTimeout(suite.TestCase):
    def test_waiting_between_frames_never_times_out(self):
        with suite.rpc("--read-timeout", "0.05", "--log-level", "warn") as daemon:
            self.assert_version(daemon)
            time.sleep(0.3)  # several timeouts long: the subject of this test is that nothing happens
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)
            self.assertEqual(daemon.stderr_text(), "")

    def test_counts_from_the_first_byte_however_slowly_more_arrive(self):
        with suite.rpc("--read-timeout", "0.3") as daemon:
            deadline = time.monotonic() + PATIENCE
            daemon.send_bytes(b"Content-Length: 100000\r\n\r\n{")
            while "warn" not in daemon.stderr.text():
                self.assertLess(time.monotonic(), deadline, "a drip keeps the frame alive for ever")
                daemon.send_bytes(b" ")
                daemon.stderr.wait_until(lambda data: b"warn" in data, 0.02)
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)

    def test_what_is_in_the_pipe_already_is_read_first(self):
        """A daemon that was not running meanwhile (a suspended laptop) drops nothing that has arrived."""
        whole = frame(request("version", "patient"))
        with suite.rpc("--read-timeout", "3") as daemon:
            daemon.send_bytes(whole[:30])
            eventually(lambda: not daemon.unsent_in_pipe(), what="the first part is taken")
            daemon.signal(signal.SIGSTOP)
            daemon.send_bytes(whole[30:])
            time.sleep(4)  # longer than the timeout: the daemon stands still
            daemon.signal(signal.SIGCONT)
            self.assertEqual(daemon.next_message()["id"], "patient")
            daemon.close_input()
            daemon.expect_exit(0)
            self.assertEqual(daemon.stderr_text(), "")

    def test_is_one_line_and_no_answer(self):
        with suite.rpc("--read-timeout", "0.05") as daemon:
            daemon.send_bytes(b"Content-Length: 1234\r\n\r\n{\"secret\":")
            daemon.expect_stderr("warn")
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)
            lines = daemon.stderr_text().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r" warn  .*\d+")
        self.assertNotIn("secret", lines[0])


class WatchedProcess(suite.TestCase):
    """`initialize` with a processId: the daemon ends with that process, though its stdin stays open."""

    def editor(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_ends_when_that_process_does(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            editor = self.editor()
            with self.subTest(number), suite.rpc() as daemon:
                self.assertIn("result", daemon.call("initialize", 1, params={"processId": editor.pid, "rootUri": None}))
                self.assert_version(daemon)
                editor.send_signal(number)
                editor.wait()
                daemon.expect_exit(0)

    def test_lives_while_that_process_does(self):
        editor = self.editor()
        with suite.rpc() as daemon:
            daemon.call("initialize", 1, params={"processId": editor.pid})
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)
        self.assertIsNone(editor.poll())

    def test_null_watches_nobody(self):
        with suite.rpc() as daemon:
            self.assertIn("result", daemon.call("initialize", 1, params={"processId": None}))
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class System(suite.TestCase):
    """Seen from the kernel's side."""

    def traced(self, calls, *arguments):
        """(the daemon under strace, the name of the trace)."""
        trace = tempfile.NamedTemporaryFile(prefix="duet-strace-", mode="r", encoding="ascii", errors="replace")
        self.addCleanup(trace.close)
        argv = ["strace", "-f", "-y", "-xx", "-s", "100000", "-e", f"trace={calls}", "-o", trace.name,
                suite.program(), "rpc", *arguments]
        return Daemon(argv, env={"ASAN_OPTIONS": "detect_leaks=0"}), trace  # which cannot be done to a traced process

    def test_stdout_gets_whole_frames_and_nothing_else(self):
        daemon, trace = self.traced("write,writev,pwrite64,sendto,sendmsg,splice,sendfile", "--log-level", "debug")
        with daemon:
            pipe = os.readlink(f"/proc/self/fd/{daemon.process.stdout.fileno()}")
            sent = [request("version", 1), request("nope", 2), "{]", request("describeMethods", 3), "[]",
                    request("setLogLevel", 4, params={"level": "x"}), request("shutdown", 5)]
            for text in sent:
                daemon.send(text)
                daemon.next_message()
            daemon.expect_exit(0)
        writes = self.bytes_written(trace.read(), pipe)
        self.assertTrue(writes)
        for data in writes:
            while data:
                found = LspFraming.cut(data)
                self.assertIsNotNone(found, f"half a frame in one write: {data[:80]!r}")
                data = data[found[1]:]

    @staticmethod
    def bytes_written(trace, pipe):
        """What each system call wrote to the pipe; strace shows every text as hex digits."""
        place = "<" + "".join(f"\\x{byte:02x}" for byte in pipe.encode()) + ">"
        writes = []
        for line in trace.splitlines():
            if place in line and "= -1 " not in line:
                text = "".join(re.findall(r'"((?:\\x[0-9a-f]{2})*)"', line))
                writes.append(bytes.fromhex(text.replace("\\x", "")))
        return writes

    def test_reads_no_settings_and_spawns_nobody(self):
        daemon, trace = self.traced("execve,fork,vfork,openat,open,connect,socket")
        with daemon:
            daemon.call("version")
            daemon.close_input()
            daemon.expect_exit(0)
        text = re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match.group(1), 16)), trace.read())
        self.assertEqual(text.count("execve("), 1, text)
        for forbidden in ("fork(", "socket(", "connect(", ".toml", ".aiwg"):
            self.assertNotIn(forbidden, text)


if __name__ == "__main__":
    suite.main()
