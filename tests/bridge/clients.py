#!/usr/bin/env python3
"""Many clients on one language server: answers and cancels never cross, bodies pass through byte for byte.

    clients.py --program PATH --rounds 200    so many questions of each of the 50 clients
"""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import BridgeTestCase, eventually, suite, uri  # noqa: E402
from daemon import request  # noqa: E402

CLIENTS = 50
ROUNDS = 20


def raw_request(id, method, params="{}"):
    """lsp.request to the fake, spelt by hand."""
    return f'{{"jsonrpc":"2.0","id":{id},"method":"lsp.request","params":{{"server":"fake","method":"{method}",' \
           f'"params":{params}}}}}'


def cancel(id):
    return f'{{"jsonrpc":"2.0","method":"$/cancelRequest","params":{{"id":{id}}}}}'


class Clients(BridgeTestCase):
    def setUp(self):
        super().setUp()
        self.set_servers(fake=[])
        self.start()
        self.ask("lsp.start", server="fake")

    def pending(self):
        return self.ask("lsp.list")["servers"][0]["pending"]

    def methods(self):
        return [message.get("method") for message in self.tape("fake")]

    def test_bodies_pass_through_as_they_are_spelt(self):
        odd = '{"z":1.50,"a":[1e2,-0,12345678901234567890123,1E+05],"b":"\\u0041\\/ä\\ud83d\\ude00","z":null,"":{}}'
        with self.project.connect() as client:
            client.send(raw_request('"\\u0041"', "fake/echo", odd))
            self.assertEqual(client.next_line(60), b'{"jsonrpc":"2.0","id":"\\u0041","result":' + odd.encode() + b"}")
        sent = self.tape("fake")[-1]
        self.assertEqual(sent["method"], "fake/echo")
        with open(self.path("fake.tape"), "rb") as tape:
            self.assertIn(b'"params":' + odd.encode() + b"}", tape.read())

    def test_errors_of_the_server_pass_through(self):
        error = r'{"data":{"why":1.50},"message":"\u0041\/ä","code":-3.2099e4}'
        text = json.dumps(r'{"jsonrpc":"2.0","id":ID,"error":' + error + "}")
        with self.project.connect() as client:
            client.send(raw_request(7, "fake/body", f'{{"text":{text}}}'))
            self.assertEqual(client.next_line(60), b'{"jsonrpc":"2.0","id":7,"error":' + error.encode() + b"}")

    def test_errors_have_nothing_but_what_an_error_has(self):
        text = '{"jsonrpc":"2.0","id":ID,"error":{"message":"no","stack":[1],"data":1.50}}'
        with self.project.connect() as client:
            client.send(raw_request(7, "fake/body", json.dumps({"text": text})))
            self.assertEqual(client.next_line(60),
                             b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no","data":1.50}}')

    def test_equal_ids_of_two_clients(self):
        with self.project.connect() as first, self.project.connect() as second:
            first.send(raw_request(1, "fake/hold", '["first"]'))
            second.send(raw_request(1, "fake/hold", '["second"]'))
            eventually(lambda: self.pending() == 2, what="both are pending")
            self.ask("lsp.request", server="fake", method="fake/release")
            self.assertEqual(first.answer(1)[0]["result"], ["first"])
            self.assertEqual(second.answer(1)[0]["result"], ["second"])

    def test_a_cancel_concerns_its_own_client(self):
        with self.project.connect() as first, self.project.connect() as second:
            first.send(raw_request(1, "fake/hold", '["first"]'))
            second.send(raw_request(1, "fake/hold", '["second"]'))
            eventually(lambda: self.pending() == 2, what="both are pending")
            first.send(cancel(1))
            self.assertEqual(first.answer(1)[0]["error"]["code"], -32800)
            eventually(lambda: "$/cancelRequest" in self.methods(), what="the server is told")
            held = [message["id"] for message in self.tape("fake") if message.get("params") == ["first"]]
            told = [message["params"]["id"] for message in self.tape("fake")
                    if message.get("method") == "$/cancelRequest"]
            self.assertEqual(told, held)
            self.ask("lsp.request", server="fake", method="fake/release")
            self.assertEqual(second.answer(1)[0]["result"], ["second"])

    def test_a_client_that_goes_away_cancels(self):
        with self.project.connect() as client:
            client.send(raw_request(1, "fake/hold", '["gone"]'))
            eventually(lambda: self.pending() == 1, what="it is pending")
        eventually(lambda: "$/cancelRequest" in self.methods(), what="the server is told")
        self.assertEqual(self.pending(), 0)

    def test_a_cancel_before_the_handshake_is_never_sent(self):
        self.ask("lsp.stop", server="fake")
        self.set_servers(fake=["--initialize-delay", "5"])
        os.kill(self.project.pid(), 1)
        eventually(lambda: self.ask("lsp.list")["servers"] == [], what="the new settings")
        with self.project.connect() as client:
            client.send(raw_request(1, "fake/echo", '["never"]'))
            eventually(lambda: self.ask("lsp.list")["servers"], what="it is starting")
            client.send(cancel(1))
            self.assertEqual(client.answer(1)[0]["error"]["code"], -32800)
        self.assertEqual(self.ask("lsp.request", server="fake", method="fake/echo", params=["asked"]), ["asked"])
        self.assertFalse(any(message.get("params") == ["never"] for message in self.tape("fake")))

    def test_a_clients_text_is_its_own_until_it_goes(self):
        path = self.write("a.fake", "on disk\n")
        with self.project.connect() as client:
            opened = {"textDocument": {"uri": uri(path), "languageId": "x", "version": 1, "text": "in the editor\n"}}
            self.ask("lsp.notify", 60, client, method="textDocument/didOpen", params=opened)
            self.assertEqual(self.hover(path).split("|")[1], "in the editor")
            self.write("a.fake", "changed on disk\n")
            self.assertEqual(self.hover(path).split("|")[1], "in the editor")
            change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 2}}, "text": "by"}
            self.ask("lsp.notify", 60, client, method="textDocument/didChange",
                     params={"textDocument": {"uri": uri(path), "version": 2}, "contentChanges": [change]})
            self.assertEqual(self.hover(path).split("|")[1], "by the editor")
        eventually(lambda: self.hover(path).split("|")[1] == "changed on disk", what="the text on disk counts again")

    def test_many_clients_at_once(self):
        rounds = int(suite.option("rounds") or ROUNDS)
        path = self.write("a.fake", "one\n")
        self.hover(path)
        times, faults = [], []

        def talk(number):
            with self.project.connect() as client:
                for turn in range(rounds):
                    value = [number, turn]
                    before = time.monotonic()
                    client.send(request("lsp.request", turn, params={"server": "fake", "method": "fake/echo",
                                                                     "params": value}))
                    answer = client.answer(turn, 60)[0]
                    times.append(time.monotonic() - before)
                    if answer.get("result") != value:
                        faults.append((value, answer))
        threads = [threading.Thread(target=talk, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        times.sort()
        self.assertEqual(len(times), CLIENTS * rounds)
        print(f"\n{CLIENTS} clients, {len(times)} answers: median {times[len(times) // 2] * 1000:.1f} ms, "
              f"p99 {times[len(times) * 99 // 100] * 1000:.1f} ms")


if __name__ == "__main__":
    suite.main()
