#!/usr/bin/env python3
"""Resident memory: idle, with many connections, after a million requests, during and after a large message.

Usage: memory.py --bare-server PATH --program PATH
"""

import subprocess
import time
import unittest

import counting

BARE_SERVER = counting.take_option("bare-server")
PROGRAM = counting.take_option("program")

SOCKET = ([BARE_SERVER, "unix", "@"], b"ping", b"{}")
WEBSOCKET = ([BARE_SERVER, "websocket", "@"], b"ping", b"{}")
STDIO = ([BARE_SERVER, "stdio"], b"ping", b"{}")
VERSION = subprocess.check_output([PROGRAM, "--version"]).strip()
DAEMON = ([PROGRAM, "rpc"], b"version", b'{"version":"%s"}' % VERSION)

LARGE = 9_000_000
SLACK_KIB = 64  # a page here and there: a buffer that reached its size, a table that was touched


class Memory(unittest.TestCase):
    def assert_at_most(self, what, kib, most):
        print(f"{what}: {kib:,.1f} KiB, at most {most:,}")
        self.assertLessEqual(kib, most)

    def test_an_idle_server_has_at_most_4_mb_and_the_daemon_6(self):
        for (command, method, result), most in ((SOCKET, 4096), (STDIO, 4096), (DAEMON, 6144)):
            with self.subTest(command[-1]), counting.Server(command) as server:
                server.ask(method, result)
                self.assert_at_most(f"{command[1]}, idle", server.resident_kib(), most)

    def test_an_idle_connection_costs_at_most_8_kb_and_a_websocket_4(self):
        for door, most in ((SOCKET, 8), (WEBSOCKET, 4)):
            with self.subTest(door[0][1]):
                self.check_connection(door, most)

    def check_connection(self, door, most):
        connections = 256
        command, method, result = door
        with counting.Server(command) as server:
            server.ask(method, result)
            alone = server.resident_kib()
            for _ in range(connections):
                server.connect()
                server.ask(method, result)
            self.assert_at_most(f"{command[1]}, each connection", (server.resident_kib() - alone) / connections, most)

    def test_a_million_requests_leave_nothing_behind(self):
        for command, method, result in (SOCKET, STDIO, DAEMON):
            with self.subTest(command[-1]), counting.Server(command) as server:
                server.ask(method, result, 2560, 256)
                before = server.resident_kib()
                server.ask(method, result, 1_000_000, 250)
                self.assert_at_most(f"{command[1]}, growth", server.resident_kib() - before, SLACK_KIB)

    def test_a_large_message_takes_little_more_than_twice_its_size_and_gives_it_back(self):
        for command, method, result in (SOCKET, WEBSOCKET, STDIO):
            with self.subTest(command[-1]), counting.Server(command) as server:
                server.ask(method, result)
                idle = server.resident_kib()
                for _ in range(3):
                    server.echo(LARGE)
                self.assert_at_most(f"{command[1]}, peak beyond idle", server.peak_kib() - idle, 2.2 * LARGE / 1024)
                self.assert_given_back(server, idle)

    def assert_given_back(self, server, idle):
        began = time.monotonic()
        while server.resident_kib() > idle + 1024:
            self.assertLess(time.monotonic() - began, 60, "the memory is not given back")
            time.sleep(0.05)
        print(f"given back after {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
