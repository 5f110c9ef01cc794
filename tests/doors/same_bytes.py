#!/usr/bin/env python3
"""One table of calls gives the same bytes through every door: Unix socket, WebSocket, POST /rpc, lines in TLS, wss."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from daemon import request  # noqa: E402
from door_client import HttpConnection, WebSocket  # noqa: E402
from tls_client import SecureWebSocket, TlsTestCase  # noqa: E402

CALLS = [
    request("version"),
    request("listMethods", "a\u00e9\U0001f600"),
    '{"jsonrpc":"2.0","id":1.50e2,"method":"version"}',
    '{"jsonrpc":"2.0","id":"\\u0041","method":"nothing"}',
    '{"id":1,"method":"version"}',
    '{"jsonrpc":"2.0","id":{},"method":"version"}',
    '{"jsonrpc":"2.0","id":7,"method":"task.get","params":{"id":"task-999999"}}',
    '{"jsonrpc":"2.0","id":8,"method":"task.get","params":{"id":5}}',
    '{"jsonrpc":"2.0","id":9,"method":"task.list","params":[]}',
    '{"jsonrpc":"2.0","id":null,"method":"automation.status"}',
    "[]",
    "nonsense",
    "[" + request("version", 1) + ',1,{"jsonrpc":"2.0","method":"version"},' + request("nothing", 2) + "]",
    '{"jsonrpc":"2.0","id":10,"method":"version","params":' + "[" * 600 + "]" * 600 + "}",
    '{"jsonrpc":"2.0","id":"' + "x" * 100_000 + '","method":"version"}',
]


class SameBytes(TlsTestCase):
    def test_every_door_gives_the_same_bytes(self):
        self.open_door("--http")
        url = self.status()["subsystems"]["http"]["url"]
        token = self.project.run("token", "new", "test").out.strip()
        laptop = self.authority.issue("laptop", role="own")
        doors = {
            "unix": by_lines(self.keep(self.project.connect())),
            "ws": by_frames(self.keep(WebSocket(url, token))),
            "rpc": by_requests(self.keep(HttpConnection(url)), {"Authorization": f"Bearer {token}"}),
            "tls": by_tls_lines(self.connect(laptop, "duet-rpc/1")),
            "https": by_requests(self.connect(laptop, "http/1.1"), {}),
            "wss": by_frames(self.keep(SecureWebSocket(self.address, laptop, self.authority))),
        }
        for text in CALLS:
            answers = {door: ask(text.encode()) for door, ask in doors.items()}
            self.assertEqual(set(answers.values()), {answers["unix"]}, (text[:200], {d: a[:300] for d, a in answers.items()}))

    def keep(self, client):
        self.addCleanup(client.socket.close)
        return client


def by_lines(client):
    def ask(text):
        client.send_bytes(text + b"\n")
        return client.next_line()
    return ask


def by_tls_lines(client):
    def ask(text):
        client.send(text + b"\n")
        return client.read_until(b"\n")
    return ask


def by_frames(client):
    def ask(text):
        client.send_text(text)
        return client.frame()[1]
    return ask


def by_requests(client, fields):
    return lambda text: client.ask("POST", "/rpc", fields, text).body


if __name__ == "__main__":
    suite.main()
