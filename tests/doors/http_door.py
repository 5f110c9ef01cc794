#!/usr/bin/env python3
"""The HTTP door: what it serves, whom it lets in, and what it refuses."""

import json
import os
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from door_client import DoorTestCase, message, request  # noqa: E402
from project import memory  # noqa: E402

FIXED = {
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY",
}


class Opening(DoorTestCase):
    def test_it_is_closed_until_somebody_asks(self):
        self.project.start()
        self.assertIsNone(self.http_url())
        opened = self.project.call("http.open")["result"]["url"]
        self.assertEqual(self.http_url(), opened)
        self.assertRegex(opened, r"^http://127\.0\.0\.1:\d+$")
        self.assertIn(opened, self.project.run("daemon", "status").out)

    def test_it_is_opened_where_the_settings_say_and_moved_by_a_reload(self):
        self.open_door("--if-needed", settings='[http]\nlisten = "127.0.0.1:0"\n')
        first = self.url
        self.assertEqual(self.ask("GET", "/").status, 200)
        self.project.write_user_settings('[http]\nlisten = "off"\n')
        eventually(lambda: self.http_url() is None, what="it is closed")
        self.assertEqual(self.project.call("http.open")["error"]["code"], -32003)
        self.project.write_user_settings('[http]\nlisten = "127.0.0.1:0"\n')
        eventually(lambda: self.http_url() == first, what="it is open again, at the same port")

    def test_the_port_it_has_may_be_written_down(self):
        self.open_door("--if-needed", settings='[http]\nlisten = "127.0.0.1:0"\n')
        token = self.token()
        with self.websocket(token) as client:
            self.project.write_user_settings(f'[http]\nlisten = "{self.url[7:]}"\nhosts = ["x.example"]\n')
            eventually(lambda: self.ask("GET", "/", {"Host": "x.example"}).status == 200, what="the settings count")
            self.assertTrue(client.call("ping")["result"]["pong"])
        self.assertEqual(self.project.call("daemon.status")["result"]["problems"], [])

    def test_what_the_command_line_says_stays_whatever_is_saved(self):
        self.open_door("--http", settings='[http]\nlisten = "off"\n')
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.http_url(), self.url)

    def test_a_restart_keeps_it(self):
        self.open_door()
        result = self.project.run("daemon", "restart", "--json")
        self.assertEqual(result.code, 0, result)
        self.project.pids.add(result.json()["pid"])
        self.assertEqual(self.http_url(), self.url)

    def test_a_restart_keeps_what_the_command_line_opened_whatever_the_settings_say(self):
        self.open_door("--http", settings='[http]\nlisten = "off"\n')
        result = self.project.run("daemon", "restart", "--json")
        self.project.pids.add(result.json()["pid"])
        self.assertEqual(self.http_url(), self.url)
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.http_url(), self.url)

    def test_a_taken_port_fails_the_start_with_its_reason(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            result = self.project.run("daemon", "start", f"--http={address}")
            self.assert_refused(result, 1, "another program listens there")

    def test_only_loopback_addresses_are_taken(self):
        for address in ("0.0.0.0:0", "192.0.2.7:80", "[::]:0"):
            self.assert_refused(self.project.run("daemon", "start", f"--http={address}"), 1, "loopback", "tls")
        self.project.write_user_settings('[http]\nlisten = "0.0.0.0:80"\n')
        self.assert_refused(self.project.run("daemon", "start"), 1, "config.toml:2", "loopback")

    def test_tasks_inherit_no_door(self):
        self.open_door()
        script = "ls -l /proc/self/fd; ls -l /proc/$PPID/fd"
        result = self.project.run("task", "submit", "--agent", "shell", "--wait", script)
        self.assertNotIn("socket:", result.out.replace("stdin", ""), result)

    def test_stop_answers_what_is_under_way(self):
        self.open_door()
        token = self.token()
        waiting = self.project.call("task.submit", params={"prompt": "sleep 1000", "agent": "shell"})["result"]["taskId"]
        eventually(lambda: self.project.call("task.get", params={"taskId": waiting})["result"]["state"] == "running")
        connection = self.connect()
        body = request("task.wait", params={"taskId": waiting})
        connection.send(message(connection.host, "POST", "/rpc", {"Authorization": f"Bearer {token}"}, body))
        client = self.websocket(token)
        client.call("ping")
        self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
        self.assertEqual(connection.response().json()["result"]["state"], "failed")
        self.assertEqual(client.closed_with()[0], 1001)

    def test_nobody_comes_in_any_more_once_a_stop_was_accepted(self):
        self.open_door()
        token = self.token()
        id = self.project.call("task.submit", params={"prompt": "sleep 1000", "agent": "shell"})["result"]["taskId"]
        eventually(lambda: self.project.call("task.get", params={"taskId": id})["result"]["state"] == "running")
        client = self.websocket(token)
        connection = self.connect()
        self.assertTrue(client.call("daemon.stop", params={"drain": True})["result"]["stopping"])
        self.assertEqual(client.message()["method"], "event.daemonStopping")
        self.assertRaises(ConnectionRefusedError, self.connect)
        self.assertIsNone(self.http_url())
        self.assertEqual(self.project.call("http.open")["error"]["code"], -32003)
        # Those who are there, and the Unix socket, go on.
        self.assertTrue(client.call("ping")["result"]["pong"])
        self.assertEqual(connection.ask("GET", "/").status, 200)
        self.project.call("task.cancel", params={"taskId": id})
        self.assertEqual(client.closed_with()[0], 1001)

    def test_a_stop_does_not_wait_for_who_reads_no_answer(self):
        self.open_door()
        token = self.token()
        connection = self.connect()
        body = request("ping", "x" * 9_000_000)
        connection.send(message(connection.host, "POST", "/rpc", {"Authorization": f"Bearer {token}"}, body))
        connection.more()
        pid = self.project.pid()
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.project.wait_gone(pid)
        self.assertRegex(self.project.log(), "did not read its last answers[^$]*stopped\\n$")


class Requests(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()

    def test_the_page_needs_no_token_and_has_a_tag(self):
        page = self.ask("GET", "/")
        self.assertEqual(page.status, 200)
        self.assertEqual({name: page.fields.get(name) for name in FIXED}, FIXED)
        self.assertIn("default-src 'none'", page.fields["content-security-policy"])
        self.assertEqual(page.fields["cache-control"], "no-cache")
        self.assertNotIn("server", page.fields)
        again = self.ask("GET", "/", {"If-None-Match": page.fields["etag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        head = self.ask("HEAD", "/")
        self.assertEqual((head.status, head.fields["content-length"]), (200, str(len(page.body))))

    def test_calls_are_answered_as_over_the_socket(self):
        token = self.token()
        for text in (request("ping"), request("version", 'a"b'), request("nothing", 5), "[]", "{", "", "[1]",
                     "[" + request("ping") + "," + request("x", 2) + "]", '{"jsonrpc":"2.0","id":1,"method":"ping"\n}'):
            with self.subTest(text):
                response = self.rpc(token, text)
                self.assertEqual(response.status, 200, response)
                self.assertEqual(response.fields["content-type"], "application/json")
                if "\n" not in text and text:
                    with self.project.connect() as line:
                        line.send(text)
                        self.assertEqual(without_time(response.body), without_time(line.next_line()))
        self.assertEqual(self.rpc(token, '{"jsonrpc":"2.0","method":"ping"}').status, 204)
        subscribe = self.rpc(token, request("events.subscribe")).json()
        self.assertEqual(subscribe["error"]["code"], -32601)

    def test_a_connection_is_kept_and_answers_in_order(self):
        token = self.token()
        with self.connect() as connection:
            fields = {"Authorization": f"Bearer {token}"}
            connection.send(b"".join(message(connection.host, "POST", "/rpc", fields, request("ping", id))
                                     for id in range(20)))
            self.assertEqual([connection.response().json()["id"] for _ in range(20)], list(range(20)))
            last = connection.ask("POST", "/rpc", {**fields, "Connection": "close"}, request("ping"))
            self.assertEqual(last.fields["connection"], "close")
            self.assertEqual(connection.ends(), b"")

    def test_what_is_behind_a_large_answer_is_answered_too(self):
        token = self.token()
        fields = {"Authorization": f"Bearer {token}"}
        ids = ["large", "second"]
        for is_ended in (False, True):
            with self.subTest(is_ended=is_ended), self.connect() as connection:
                connection.send(b"".join(message(connection.host, "POST", "/rpc", fields,
                                                 request("rpc.discover" if id == "large" else "ping", id)) for id in ids))
                if is_ended:
                    connection.socket.shutdown(socket.SHUT_WR)
                self.assertEqual([connection.response().json()["id"] for _ in ids], ids)
                if is_ended:
                    self.assertEqual(connection.ends(), b"")

    def test_requests_before_a_half_close_are_all_answered(self):
        token = self.token()
        with self.connect() as connection:
            fields = {"Authorization": f"Bearer {token}"}
            connection.send(b"".join(message(connection.host, "POST", "/rpc", fields, request("ping", id))
                                     for id in range(20)))
            connection.socket.shutdown(socket.SHUT_WR)
            self.assertEqual([connection.response().json()["id"] for _ in range(20)], list(range(20)))
            self.assertEqual(connection.ends(), b"")

    def test_who_reads_no_answers_is_read_no_further(self):
        with self.connect() as connection:
            connection.socket.settimeout(1)
            pages = message(connection.host, "GET", "/") * 1000
            with self.assertRaises(TimeoutError):
                for _ in range(2000):
                    connection.send(pages)
        self.assertLess(memory(self.project.pid()), 100 << 20)

    def test_a_body_of_a_token_that_has_ended_is_not_heeded(self):
        token = self.token()
        body = request("task.submit", params={"prompt": "true", "agent": "shell"}).encode()
        with self.connect() as connection:
            sent = message(connection.host, "POST", "/rpc", {"Authorization": f"Bearer {token}"}, body)
            connection.send(sent[:-1])
            eventually(lambda: self.count("http") == 1, what="it is there")
            self.assertEqual(self.project.run("token", "revoke", "test").code, 0)
            connection.send(sent[-1:])
            self.assertEqual(connection.ends(), b"")
        self.assertEqual(self.project.call("task.stats")["result"]["total"], 0)

    def test_a_late_answer_is_cancelled_when_its_client_goes(self):
        token = self.token()
        task = self.project.call("task.submit", params={"prompt": "sleep 60", "agent": "shell"})["result"]["taskId"]
        with self.connect() as connection:
            connection.send(message(connection.host, "POST", "/rpc", {"Authorization": f"Bearer {token}"},
                                    request("task.wait", params={"taskId": task})))
            eventually(lambda: self.count("http") == 1, what="it is there")
        eventually(lambda: self.count("http") == 0, what="it is gone")

    def count(self, door):
        return self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["byDoor"][door]

    def test_a_large_message_comes_back(self):
        token = self.token()
        id = "x" * 9_000_000
        response = self.rpc(token, request("ping", id))
        self.assertEqual(response.json()["id"], id)

    def test_who_may_not(self):
        observer = self.token("watcher", "observe")
        for fields in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {observer}"}):
            refused = self.ask("POST", "/rpc", fields, request("ping"))
            self.assert_refusal(refused, 401, "token")
            self.assertEqual(refused.fields["www-authenticate"], "Bearer")
        self.assertEqual(self.ask("POST", f"/rpc?token={observer}", {}, request("ping")).status, 401)
        self.assertTrue(self.rpc(observer, request("ping")).json()["result"]["pong"])
        error = self.rpc(observer, request("task.submit", params={"prompt": "x"})).json()["error"]
        self.assertEqual((error["code"], error["data"]), (-32005, {"method": "task.submit", "needs": "own", "role": "observe"}))
        owner = self.token("owner")
        error = self.rpc(owner, request("token.list")).json()["error"]
        self.assertEqual((error["code"], error["data"]["needs"]), (-32005, "unix"))
        task = self.rpc(owner, request("task.submit", params={"prompt": "true", "agent": "shell"})).json()["result"]["taskId"]
        record = self.project.call("task.get", params={"taskId": task})["result"]
        self.assertEqual(record["metadata"]["by"], "http:owner")

    def test_programs_of_agents_are_for_owners(self):
        asked = request("agent.list", 1)
        for role in ("observe", "operate", "own"):
            agents = self.rpc(self.token(role, role), asked).json()["result"]["agents"]
            self.assertIn("shell", [agent["name"] for agent in agents])
            self.assertEqual(all("program" in agent for agent in agents), role == "own")
            self.assertTrue(all("available" in agent and "command" not in agent for agent in agents))

    def test_what_is_refused_on_the_head(self):
        token = self.token()
        good = {"Authorization": f"Bearer {token}"}
        host = self.connect().host
        cases = [
            ("POST", "/rpc", {**good, "Host": "evil.example"}, 403, "host"),
            ("POST", "/rpc", {**good, "Origin": "http://evil.example"}, 403, "origin"),
            ("POST", "/rpc", {**good, "Origin": "null"}, 403, "origin"),
            ("POST", "/rpc", {**good, "Sec-Fetch-Site": "cross-site"}, 403, "origin"),
            ("POST", "/nothing", good, 404, "not-found"),
            ("GET", "/rpc", good, 405, "method"),
            ("OPTIONS", "/rpc", good, 405, "method"),
            ("POST", "/rpc", {**good, "Content-Type": "text/plain"}, 415, "content-type"),
            ("POST", "/rpc", {**good, "Content-Encoding": "gzip"}, 415, "content-type"),
        ]
        for method, target, fields, status, word in cases:
            with self.subTest(word, fields=fields):
                body = None if method == "GET" else request("ping")
                self.assert_refusal(self.ask(method, target, fields, body), status, word)
        same = self.ask("POST", "/rpc", {**good, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}, request("ping"))
        self.assertEqual(same.status, 200, same)
        with self.connect() as connection:
            connection.send(message(host, "POST", "/rpc", {**good, "Content-Length": str(11 << 20), "Content-Type":
                                                           "application/json"}))
            self.assert_refusal(connection.response(), 413, "too-large")
            self.assertEqual(connection.ends(), b"")

    def test_what_is_malformed_is_answered_and_closed(self):
        for sent, status in ((b"GET / HTTP/1.1\n\n", 400), (b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", 505),
                             (b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n", 414),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200, 431),
                             (b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
                             (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)):
            with self.subTest(sent[:40]), self.connect() as connection:
                connection.send(sent)
                self.assertEqual(connection.response().status, status)
                self.assertEqual(connection.ends(), b"")

    def test_a_body_that_is_asked_for_is_read(self):
        token = self.token()
        with self.connect() as connection:
            body = request("ping").encode()
            connection.send(message(connection.host, "POST", "/rpc", {
                "Authorization": f"Bearer {token}", "Expect": "100-continue", "Content-Length": str(len(body)),
                "Content-Type": "application/json"}))
            self.assertEqual(connection.read_until(b"\r\n\r\n"), b"HTTP/1.1 100 Continue")
            connection.send(body)
            self.assertEqual(connection.response().status, 200)

    def test_nothing_secret_is_kept_or_logged(self):
        token = self.token()
        self.rpc(token, request("ping"))
        self.ask("POST", "/rpc", {"Authorization": f"Bearer {token}x"}, request("ping"))
        for folder, _, names in os.walk(self.project.state):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    with open(path, "rb") as file:
                        self.assertNotIn(token[5:].encode(), file.read(), path)

    def test_curl(self):
        token = self.token()
        result = subprocess.run(["curl", "-sS", "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json",
                                 "-d", request("ping"), f"{self.url}/rpc"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertTrue(json.loads(result.stdout)["result"]["pong"], result)


class Logins(DoorTestCase):
    def test_a_code_is_good_once(self):
        self.open_door()
        code = self.project.call("login.create")["result"]["url"].split("#login=")[1]
        first = self.ask("POST", "/login", {}, json.dumps({"code": code}))
        self.assertEqual((first.status, first.json()["name"], first.json()["role"]), (200, "browser-1", "own"), first)
        token = first.json()["token"]
        client = self.websocket(token)
        client.call("ping")
        self.assert_refusal(self.ask("POST", "/login", {}, json.dumps({"code": code})), 401, "used")
        self.assertEqual(client.closed_with(), (1008, "session-ended"))
        self.assertEqual(self.rpc(token, request("ping")).status, 401)
        for _ in range(10):
            self.assertEqual(self.ask("POST", "/login", {}, '{"code":"no"}').status, 401)
        limited = self.ask("POST", "/login", {}, '{"code":"no"}')
        self.assertEqual(limited.status, 429)
        self.assertLessEqual(int(limited.fields["retry-after"]), 60)

    def test_a_logout_ends_all_of_the_token(self):
        self.open_door()
        token = self.token()
        client = self.websocket(token)
        client.call("ping")
        stream = self.connect()
        stream.send(message(stream.host, "GET", "/events", {"Authorization": f"Bearer {token}"}))
        stream.read_until(b"retry: 2000\n\n")
        idle = self.connect()
        self.assertEqual(idle.ask("POST", "/rpc", {"Authorization": f"Bearer {token}"}, request("ping")).status, 200)
        self.assertEqual(self.ask("POST", "/logout", {"Authorization": f"Bearer {token}"}, "{}").status, 204)
        self.assertEqual(client.closed_with(), (1008, "session-ended"))
        stream.ends()
        idle.ends()
        self.assertEqual(self.rpc(token, request("ping")).status, 401)

    def test_tokens_outlive_a_kill(self):
        self.open_door()
        token = self.token()
        self.project.kill(self.project.pid())
        self.project.start("--http")
        self.assertEqual(self.http_url(), self.url)
        self.assertEqual(self.rpc(token, request("ping")).status, 200)


class Streams(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.secret = self.token("script", "observe")

    def stream(self, target="/events", **fields):
        connection = self.connect()
        connection.send(message(connection.host, "GET", target, {"Authorization": f"Bearer {self.secret}", **fields}))
        head = connection.read_until(b"\r\n\r\n").decode()
        self.assertIn(" 200 ", head)
        self.assertIn("text/event-stream", head)
        self.assertEqual(connection.read_until(b"\n\n"), b"retry: 2000")
        return connection

    def next_event(self, connection):
        event = {}
        for line in connection.read_until(b"\n\n").decode().split("\n"):
            name, _, value = line.partition(": ")
            event[name] = value
        return event

    def run_task(self, prompt="echo hi"):
        task = self.project.call("task.submit", params={"prompt": prompt, "agent": "shell"})["result"]["taskId"]
        self.project.call("task.wait", params={"taskId": task})
        return task

    def test_they_end_when_the_daemon_stops(self):
        connection = self.stream()
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assertIn(b"event: daemonStopping", connection.ends())
        self.assertNotIn("did not read", self.project.log())

    def test_events_come_with_their_numbers_and_go_on_behind_the_last(self):
        connection = self.stream()
        task = self.run_task()
        events = [self.next_event(connection) for _ in range(3)]
        self.assertEqual([event["event"] for event in events], ["taskQueued", "taskStarted", "taskCompleted"])
        self.assertEqual(json.loads(events[0]["data"])["taskId"], task)
        resumed = self.stream(**{"Last-Event-ID": events[0]["id"]})
        self.assertEqual([self.next_event(resumed)["id"] for _ in range(2)], [event["id"] for event in events[1:]])
        number = int(events[1]["id"].rsplit(".", 1)[1])
        self.assertEqual(self.next_event(self.stream(f"/events?since={number}&kind=taskCompleted"))["event"], "taskCompleted")

    def test_what_is_not_known_is_told_as_missed(self):
        self.run_task()
        for last in ("0.1", "nonsense"):
            missed = self.next_event(self.stream(**{"Last-Event-ID": last}))
            self.assertEqual(missed["event"], "missed")
            self.assertEqual(sorted(json.loads(missed["data"])), ["epoch", "next", "oldest"])

    def test_output_comes_along_if_asked_for(self):
        connection = self.stream("/events?kind=taskFailed&output=task-1")
        self.run_task("echo hello")
        event = self.next_event(connection)
        self.assertEqual((event["event"], json.loads(event["data"])["data"]), ("taskOutput", "hello\n"))
        self.assertNotIn("id", event)

    def test_output_of_a_task_that_runs_already_comes(self):
        os.mkfifo(os.path.join(self.project.root, "fifo"))
        task = self.project.call("task.submit", params={"prompt": "echo first; read x < fifo; echo last",
                                                        "agent": "shell"})["result"]["taskId"]
        eventually(lambda: self.project.run("task", "output", task).out, what="its first words")
        connection = self.stream(f"/events?kind=taskFailed&output={task}")
        with open(os.path.join(self.project.root, "fifo"), "w", encoding="ascii") as file:
            file.write("go\n")
        said = ""
        while "last" not in said:
            said += json.loads(self.next_event(connection)["data"])["data"]

    def test_a_query_that_makes_no_sense_is_refused(self):
        for query in ("task=abc", "x=1", "since=a", "since=1&since=2", "kind=nothing", "kind=", "since=%zz"):
            response = self.ask("GET", f"/events?{query}", {"Authorization": f"Bearer {self.secret}"})
            self.assert_refusal(response, 400, "query")


def without_time(text):
    answer = json.loads(text)
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each.get("result"), dict):
            each["result"].pop("timestamp", None)
    return answer


if __name__ == "__main__":
    suite.main()
