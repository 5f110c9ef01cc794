#!/usr/bin/env python3
"""What one request costs: system calls and instructions, with one in flight.

Usage: per_ping.py --bare-server PATH --program PATH
"""

import subprocess
import unittest

import counting

BARE_SERVER = counting.take_option("bare-server")
PROGRAM = counting.take_option("program")

SOCKET = ([BARE_SERVER, "unix", "@"], b"ping", b"{}")
WEBSOCKET = ([BARE_SERVER, "websocket", "@"], b"ping", b"{}")
STDIO = ([BARE_SERVER, "stdio"], b"ping", b"{}")
VERSION = subprocess.check_output([PROGRAM, "--version"]).strip()
DAEMON = ([PROGRAM, "rpc"], b"version", b'{"version":"%s"}' % VERSION)


class PerPing(unittest.TestCase):
    def assert_cost(self, count, server, most):
        cost = counting.per_request(count, *server)
        print(f"{' '.join(server[0][1:])}: {cost:,.3f} {count.__name__}")
        self.assertLessEqual(cost, most)

    @unittest.skipUnless(counting.can_trace(), "strace may not trace here")
    def test_a_ping_on_the_socket_is_three_system_calls(self):
        self.assert_cost(counting.system_calls, SOCKET, 3.01)

    @unittest.skipUnless(counting.can_trace(), "strace may not trace here")
    def test_a_ping_on_stdio_is_two_system_calls(self):
        self.assert_cost(counting.system_calls, STDIO, 2.01)

    @unittest.skipUnless(counting.can_trace(), "strace may not trace here")
    def test_the_daemon_makes_no_more_system_calls_than_the_bare_server(self):
        self.assert_cost(counting.system_calls, DAEMON, 2.01)

    def test_a_ping_on_the_socket_is_at_most_3000_instructions(self):
        self.assert_cost(counting.instructions, SOCKET, 3000)

    def test_a_ping_on_a_websocket_is_at_most_350_instructions_more(self):
        lines = counting.per_request(counting.instructions, *SOCKET)
        self.assert_cost(counting.instructions, WEBSOCKET, lines + 350)

    @unittest.skipUnless(counting.can_trace(), "strace may not trace here")
    def test_a_ping_on_a_websocket_is_three_system_calls(self):
        self.assert_cost(counting.system_calls, WEBSOCKET, 3.01)

    def test_a_ping_on_stdio_is_at_most_3000_instructions(self):
        self.assert_cost(counting.instructions, STDIO, 3000)

    def test_a_request_to_the_daemon_is_at_most_3000_instructions(self):
        self.assert_cost(counting.instructions, DAEMON, 3000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
