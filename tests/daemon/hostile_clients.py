#!/usr/bin/env python3
"""Clients that die, send rubbish, never read, come in hundreds: the others go on, and nothing is left behind.

    hostile_clients.py --program PATH --seconds 10    watches an idle daemon for so long
"""

import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually, request  # noqa: E402
from project import ProjectTestCase, memory, open_descriptors  # noqa: E402

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
BOUND = 256 * 1024 * 1024  # what may wait for all clients together
OWN = 30 * 1024 * 1024  # what a daemon needs beside that


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Hostile(ProjectTestCase):
    """After each test the same daemon answers, with as many descriptors as before."""

    def setUp(self):
        super().setUp()
        self.pid = self.project.start()
        self.project.call("ping")
        self.descriptors = eventually(self.alone, what="nobody else is connected")

    def alone(self):
        with self.project.connect() as client:
            clients = client.call("daemon.status")["result"]["subsystems"]["ipc"]["clients"]
            return open_descriptors(self.pid) if clients == 1 else None

    def tearDown(self):
        self.assertEqual(self.project.pid(), self.pid)
        eventually(lambda: self.alone() == self.descriptors, what="all descriptors are given back")

    def assert_memory(self, bound):
        if not suite.is_sanitized():
            self.assertLess(memory(self.pid, "VmHWM"), bound)


class ManyClients(Hostile):
    def fill(self, clients, other):
        """Sends requests with large answers until the daemon takes no more of any; OTHER is answered all the time."""
        portion = memoryview(b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n' * 1000)
        left = {client.socket: portion for client in clients}
        for socket in left:
            socket.setblocking(False)
        while ready := select.select([], list(left), [], 0.5)[1]:
            for socket in ready:
                try:
                    left[socket] = left[socket][socket.send(left[socket]):] or portion
                except BlockingIOError:
                    continue
            self.assertTrue(other.call("ping")["result"]["pong"])

    def test_256_of_which_64_never_read(self):
        deaf = [self.project.connect() for _ in range(64)]
        others = [self.project.connect() for _ in range(192)]
        self.fill(deaf, others[0])
        for id, client in enumerate(others):
            self.assertTrue(client.call("ping", id=id)["result"]["pong"])
        self.assert_memory(BOUND + OWN)
        status = others[0].call("daemon.status")["result"]
        self.assertEqual(status["subsystems"]["ipc"]["clients"], 256)
        for client in deaf + others:
            client.close()
        if not suite.is_sanitized():
            eventually(lambda: memory(self.pid) < OWN, what="memory is given back")

    def test_1000_that_connect_send_and_close(self):
        for _ in range(1000):
            with self.project.connect() as client:
                client.send_bytes(PING)
        self.assert_memory(OWN)

    def test_1000_that_close_with_an_answer_unread(self):
        for _ in range(1000):
            with self.project.connect() as client:
                client.send_bytes(PING * 3)
                client.next_line()
        self.assert_memory(OWN)

    def test_10000_requests_before_the_first_read(self):
        with self.project.connect() as client:
            client.send_bytes(b"".join(request("ping", id).encode() + b"\n" for id in range(10_000)))
            for id in range(10_000):
                self.assertEqual(client.next_message()["id"], id)

    def test_a_batch_of_a_thousand_of_everything(self):
        members = [{"jsonrpc": "2.0", "id": id, "method": "rpc.discover"} for id in range(1000)]
        with self.project.connect() as client:
            client.send(json.dumps(members))
            answers = json.loads(client.next_line())
            self.assertEqual([answer["id"] for answer in answers], list(range(1000)))


class Rubbish(Hostile):
    def test_half_a_line_is_not_executed(self):
        for cut in (1, 10, 50):
            with self.project.connect() as client:
                text = request("daemon.stop", "x" * 60).encode()
                client.send_bytes(text[:cut])
        with self.project.connect() as client:
            client.send_bytes(request("daemon.stop").encode())  # whole, but its line is not
        self.assert_answers()

    def test_half_a_line_and_then_silence_keeps_nobody_waiting(self):
        silent = [self.project.connect() for _ in range(20)]
        for client in silent:
            client.send_bytes(b'{"jsonrpc":"2.0",')
        self.assert_answers()
        for client in silent:
            client.send_bytes(b'"id":7,"method":"ping"}\n')
            self.assertEqual(client.next_message()["id"], 7)
            client.close()

    def test_a_line_of_11_megabytes_costs_one_error(self):
        with self.project.connect() as client:
            client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["' + b"x" * 11_000_000 + b'"]}\n')
            answer = client.next_message()
            self.assertEqual((answer["id"], answer["error"]["code"], answer["error"]["data"]),
                             (None, -32600, {"reason": "oversize"}))
            self.assertTrue(client.call("ping")["result"]["pong"])
        self.assert_memory(OWN)

    def test_a_line_that_never_ends_is_not_stored(self):
        with self.project.connect() as client:
            for _ in range(100):
                client.send_bytes(b"x" * 1_000_000)
            self.assertEqual(client.next_message()["error"]["data"], {"reason": "oversize"})
            self.assert_answers()
        self.assert_memory(OWN)

    def test_one_byte_at_a_time(self):
        with self.project.connect() as client, self.project.connect() as other:
            for byte in PING:
                client.send_bytes(bytes([byte]))
                self.assertTrue(other.call("ping")["result"]["pong"])
            self.assertTrue(client.next_message()["result"]["pong"])

    def test_invalid_utf_8(self):
        for bad in (b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"):
            with self.project.connect() as client:
                client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["' + bad + b'"]}\n')
                answer = client.next_message()
                self.assertEqual((answer["id"], answer["error"]["code"]), (None, -32700))
                self.assertTrue(client.call("ping")["result"]["pong"])

    def test_bytes_of_all_kinds(self):
        with open("/dev/urandom", "rb") as source:
            for _ in range(50):
                with self.project.connect() as client:
                    client.send_bytes(source.read(10_000) + b"\n" + PING)
                    while "result" not in client.next_message():
                        pass

    def test_http_and_lsp_are_answered_with_errors(self):
        with self.project.connect() as client:
            client.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nContent-Length: 40\r\n\r\n" + PING)
            codes = [client.next_message()["error"]["code"] for _ in range(3)]
            self.assertEqual(codes, [-32700] * 3)
            self.assertTrue(client.next_message()["result"]["pong"])


class HalfClose(Hostile):
    """Every whole line is answered, then the daemon closes."""

    def piped(self, *argv):
        done = subprocess.run([*argv], input=PING * 3 + b'{"jsonrpc":"2.0"', capture_output=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_answered(self, *argv):
        self.assertEqual(["result" in answer for answer in self.piped(*argv)], [True] * 3)

    @unittest.skipUnless(shutil.which("nc"), "nc is not installed")
    def test_nc(self):
        self.assert_answered("nc", "-N", "-U", self.project.socket)

    @unittest.skipUnless(shutil.which("socat"), "socat is not installed")
    def test_socat(self):
        self.assert_answered("socat", "-t", str(PATIENCE), "-", f"UNIX-CONNECT:{self.project.socket}")

    def test_a_large_answer_is_written_to_its_end(self):
        with self.project.connect() as client:
            client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n' * 2000)
            client.socket.shutdown(1)
            self.assertEqual(len(client.ends()), 2000)


class FewDescriptors(ProjectTestCase):
    """`ulimit -n 64`"""

    def setUp(self):
        super().setUp()
        self.pid = self.project.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))

    def test_more_clients_than_descriptors(self):
        """All are answered. Those who came first stay, the others make way for one another."""
        clients = []
        for _ in range(100):
            clients.append(self.project.connect())
            self.addCleanup(clients[-1].close)
            clients[-1].send_bytes(PING)
        for client in clients:
            self.assertIn("result", client.next_message())
        for client in clients[:6]:
            for _ in range(20):
                client.send_bytes(PING)
                self.assertIn("result", client.next_message())
        before = processor_seconds(self.pid)
        started = time.monotonic()
        time.sleep(1)  # in which there is nothing to do
        self.assertLess(processor_seconds(self.pid) - before, 0.2 * (time.monotonic() - started), "it spins")
        self.assertEqual(self.project.pid(), self.pid)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class Idle(ProjectTestCase):
    def test_an_idle_daemon_does_nothing(self):
        seconds = int(suite.option("seconds") or 6)
        env = {"ASAN_OPTIONS": "detect_leaks=0"}  # which cannot be done to a traced process
        pid = self.project.start(env=env)
        clients = [self.project.connect() for _ in range(10)]
        for client in clients:
            client.call("ping")
        self.wait_settled(pid)
        with tempfile.NamedTemporaryFile(mode="r", prefix="duet-strace-") as trace:
            with subprocess.Popen(["strace", "-f", "-q", "-p", str(pid), "-o", trace.name],
                                  stderr=subprocess.PIPE) as strace:
                eventually(lambda: self.is_traced(pid), what="strace is attached")
                counts = []
                for _ in range(seconds):
                    time.sleep(1)  # the subject of this test is that nothing happens
                    counts.append(len(self.calls_made(trace.name)))
                calls = self.calls_made(trace.name)
                strace.send_signal(signal.SIGINT)
                strace.communicate(timeout=PATIENCE)
        for client in clients:
            client.close()
        busy = sum(after > before for before, after in zip([0, *counts], counts))
        self.assertLessEqual(busy, seconds // 3, calls)  # once a minute, or in ten, it keeps its figures

    @staticmethod
    def wait_settled(pid):
        """Until the work of the start, such as giving back memory, is done: half a second without any."""
        def settled():
            before = processor_seconds(pid), Idle.switches(pid)
            time.sleep(0.5)
            return before == (processor_seconds(pid), Idle.switches(pid))
        eventually(settled, what="the daemon is idle")

    @staticmethod
    def switches(pid):
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        return total

    @staticmethod
    def is_traced(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return "TracerPid:\t0\n" not in file.read()

    @staticmethod
    def calls_made(path):
        """Those that came back: what every thread was waiting in when strace came has not."""
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line for line in file.read().splitlines() if re.search(r"\) += ", line)]


if __name__ == "__main__":
    suite.main()
