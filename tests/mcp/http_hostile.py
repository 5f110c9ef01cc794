#!/usr/bin/env python3
"""`POST /mcp` and those who keep it busy, send what is too long, or come when the daemon ends: nobody else is kept out."""

import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from http_carrier import HttpDoor, McpHttpTestCase, Post  # noqa: E402
from mcp_client import modern  # noqa: E402

import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402


class Crowds(McpHttpTestCase):
    def open_http(self):
        if not self.project.reachable():
            self.project.start("--http", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        super().open_http()

    def test_calls_take_no_place_from_the_socket(self):
        calls = [request("tools/call", id, params={"name": "task_list", "arguments": {}}) for id in range(100)]
        with self.project.connect() as watcher:
            for role in ("observe", "operate", "own"):
                self.assertEqual(self.ask(f"[{','.join(calls)}]", token=role).status, 200)
            ping = self.project.run("call", "ping", "--timeout", "10s")
            self.assertEqual(ping.code, 0, ping)

            def is_alone():
                ipc = watcher.call("daemon.status")["result"]["subsystems"]["ipc"]
                return (ipc["clients"], ipc["byDoor"]["unix"]) == (1, 1)
            eventually(is_alone, what="nobody is counted but who has come")


class LongIds(McpHttpTestCase):
    def test_a_listen_keeps_no_long_id(self):
        body = request("subscriptions/listen", "i" * 1023, params=modern({"notifications": {}}))
        response = self.ask(body)
        self.assertEqual(self.code(response, 400), -32602)
        self.assertEqual(len(response.json()["id"]), 1023)

    def test_listens_keep_nobody_from_sending(self):
        listen = request("subscriptions/listen", params=modern({"notifications": {}}))
        long = 10 << 20
        padded = listen[:-1] + " " * (long - len(listen)) + "}"
        for role in ("observe", "operate"):
            door = self.http_door(role)
            for _ in range(14):
                door.send(padded)
                door.wait_for(lambda told: told["method"] == "notifications/subscriptions/acknowledged", 60)
        self.assertEqual(self.ask(request("ping")).status, 200)

    def test_progress_has_its_token_as_it_is_spelt(self):
        self.project.call("task.submit", params={"prompt": "sleep 1000", "agent": "shell"})
        body = request("tools/call", params={"name": "task_get", "arguments": {"task_id": "task-1", "wait_seconds": 50},
                                             "_meta": {"progressToken": 0}})
        spelt = "123456789012345678901234567890"
        connection, last = self.begin(body.replace('"progressToken": 0', f'"progressToken": {spelt}'))
        connection.send(last)
        connection.read_until(f'"progressToken":{spelt},'.encode(), 60)

    def test_what_a_tool_is_called_is_not_logged(self):
        secret = "duet_" + "S" * 43
        self.assertEqual(self.code(self.ask(request("tools/call", params={"name": secret})), 400), -32602)
        eventually(lambda: "there is no such tool" in self.project.log(), what="the line about it")
        self.assertNotIn("SSSS", self.project.log())


class Listens(McpHttpTestCase):
    LISTEN = request("subscriptions/listen", "l", params=modern({"notifications": {"resourceSubscriptions": ["duet://status"]}}))

    def test_who_ends_its_output_is_answered_if_that_is_soon(self):
        self.project.call("task.submit", params={"prompt": "sleep 1000", "agent": "shell"})
        for meta in ({}, {"_meta": {"progressToken": 1}}):
            with self.subTest(meta=meta):
                waits = {"name": "task_get", "arguments": {"task_id": "task-1", "wait_seconds": 50}, **meta}
                connection, last = self.begin(request("tools/call", params=waits))
                connection.send(last)
                connection.socket.shutdown(socket.SHUT_WR)
                self.assertNotIn(b"structuredContent", connection.ends(30))
        connection, last = self.begin(request("ping"))
        connection.send(last)
        connection.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.response().status, 200)

    def test_silence_is_broken_by_comments(self):
        door = self.http_door()
        post = door.send(self.LISTEN)
        deadline = time.monotonic() + 60
        while post.comments == 0:
            door.read_some(deadline)


class ClosingDoors(McpHttpTestCase):
    def open_http(self):
        if not self.project.reachable():
            self.project.write_user_settings('[http]\nlisten = "127.0.0.1:0"\n')
            self.project.start()
        super().open_http()

    def connections(self):
        return self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["byDoor"]["http"]

    def test_a_listen_that_comes_after_its_door_was_closed_ends(self):
        connection, last = self.begin(Listens.LISTEN)
        eventually(lambda: self.connections() == 1, what="it is there")
        self.project.write_user_settings('[http]\nlisten = "off"\n')
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        connection.send(last)
        door = HttpDoor(self.url, self.token())
        door.posts.append(Post(connection, "l"))
        door.hear_all(30)
        self.assertEqual([told["method"] for told in door.notifications], ["notifications/subscriptions/acknowledged"])
        self.assertEqual(door.answers['"l"']["result"]["resultType"], "complete")
        eventually(lambda: self.connections() == 0, what="it is gone")


if __name__ == "__main__":
    suite.main()
