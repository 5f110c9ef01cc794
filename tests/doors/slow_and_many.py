#!/usr/bin/env python3
"""Hundreds that never read or stop half-way, at all doors at once: the others go on, memory is bounded, nothing is left.

What a ping waits beside thousands of them is measured by `bench/doors --rows crowd`.
"""

import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from crowd import Crowd  # noqa: E402
from daemon import eventually, request  # noqa: E402
from door_client import HttpConnection, WebSocket  # noqa: E402
from project import memory, open_descriptors  # noqa: E402
from tls_client import TlsTestCase  # noqa: E402

MIB = 1024 * 1024
WAITING = 256 * MIB  # for all clients together; behind that, each has one answer
OWN = 64 * MIB


class SlowAndMany(TlsTestCase):
    def setUp(self):
        super().setUp()
        self.laptop = self.authority.issue("laptop", role="own")
        self.open_door("--http")
        self.pid = self.project.pid()
        self.url = self.status()["subsystems"]["http"]["url"]
        self.tokens = 0

    def new_token(self):
        self.tokens += 1
        return self.project.run("token", "new", f"test-{self.tokens}").out.strip()

    def crowd(self):
        return Crowd(urllib.parse.urlsplit(self.url).port, self.new_token(), int(self.address.rsplit(":", 1)[1]))

    def assert_all_doors_open(self):
        token = self.new_token()
        self.assert_answers()
        with HttpConnection(self.url) as client:
            answer = client.ask("POST", "/rpc", {"Authorization": f"Bearer {token}"}, request("ping"))
            self.assertTrue(answer.json()["result"]["pong"])
        with WebSocket(self.url, token) as client:
            self.assertTrue(client.call("ping")["result"]["pong"])
        with self.connect(self.laptop) as client:
            self.assertTrue(client.call("ping")["result"]["pong"])

    def test_they_keep_nobody_out_and_leave_nothing(self):
        self.assert_all_doors_open()  # what is loaded for the first client stays
        descriptors = eventually(self.alone, what="nobody is connected")
        resident = memory(self.pid)
        portions, requests = (2, 20) if suite.is_sanitized() else (8, 100)
        with self.crowd() as crowd:
            for _ in range(portions):
                crowd.silent_websockets(50, requests)
                self.assert_answers()
            for _ in range(4):
                crowd.half_heads(100)
                crowd.half_handshakes(50)
                self.assert_answers()
            self.assert_all_doors_open()
        eventually(lambda: self.alone() == descriptors, what="all descriptors are given back")
        self.assert_all_doors_open()
        self.assertEqual(self.project.pid(), self.pid)
        if not suite.is_sanitized():
            self.assertLess(memory(self.pid, "VmHWM"), WAITING + OWN)
            eventually(lambda: memory(self.pid) < resident + 16 * MIB, what="the memory is given back")

    def alone(self):
        doors = self.status()["subsystems"]["ipc"]["byDoor"]
        return open_descriptors(self.pid) if doors == {"unix": 1, "http": 0, "tls": 0} else None


if __name__ == "__main__":
    suite.main()
