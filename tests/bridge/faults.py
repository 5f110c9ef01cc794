#!/usr/bin/env python3
"""Language servers that do wrong, each in its own way: the cause has its name, and nobody else notices.

Every test has a second server and a second client that must be served as if nothing had happened.
"""

import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import BridgeTestCase, eventually, suite  # noqa: E402

FLOOD = 100_000_000
LARGE = 2 * 1024 * 1024
TIMEOUT = 30  # seconds, of a request for which nobody says how long; what is told at once comes sooner


class TwoServers(BridgeTestCase):
    def begin(self, *options):
        """The server under test is `bad`; `good` goes on all the time."""
        self.set_servers(bad=options, good=[])
        self.bad = self.write("a.bad", "one\n")
        self.good = self.write("a.good", "fine\n")
        self.daemon = self.start()
        self.assertEqual(self.hover(self.good), "1|fine|0")
        self.good_pid = self.pid("good")
        self.slowest = 0.0
        self.stopped = threading.Event()
        self.other = threading.Thread(target=self.ask_the_other)
        self.other.start()
        self.addCleanup(self.other.join)
        self.addCleanup(self.stopped.set)

    def ask_the_other(self):
        with self.project.connect() as connection:
            while not self.stopped.wait(0.02):
                before = time.monotonic()
                if self.hover(self.good, connection=connection) != "1|fine|0":
                    self.slowest = float("inf")
                self.slowest = max(self.slowest, time.monotonic() - before)

    def tearDown(self):
        self.stopped.set()
        self.other.join()
        self.assertLess(self.slowest, TIMEOUT, "the other client had to wait")
        self.assertEqual(self.pid("good"), self.good_pid)
        self.assertEqual(self.server("good")["failures"], 0)
        self.assert_answers()

    def server(self, name):
        return next(server for server in self.ask("lsp.list")["servers"] if server["name"] == name)

    def pid(self, name):
        """Its guard tells it, which may be slower than the server itself."""
        return eventually(lambda: self.server(name).get("pid"), what="its pid")

    def echo(self, value):
        return self.ask("lsp.request", server="bad", method="fake/echo", params=value)


class Faults(TwoServers):
    """While the server runs."""

    def test_text_on_stdout(self):
        self.begin("--banner", "Welcome\n{\"id\":1}", "--noise", "debug: Content-Length: 12")
        for number in range(20):
            self.assertEqual(self.echo([number]), [number])
        self.assertEqual(self.hover(self.bad), "1|one|0")

    def test_stderr_flood(self):
        self.begin("--stderr", str(FLOOD), "--complain", "first words")
        self.assertEqual(self.echo([1]), [1])
        answer = self.answer("lsp.request", server="bad", method="fake/crash", params={})
        self.assertEqual(answer["error"]["data"]["cause"], "crashed")
        self.assertLessEqual(len(answer["error"]["data"]["stderr"]), 8192)

    def test_never_answers(self):
        self.begin()
        before = time.monotonic()
        self.assertEqual(self.cause("lsp.request", server="bad", method="fake/never", params={}, timeoutSeconds=1),
                         "timeout")
        self.assertLess(time.monotonic() - before, TIMEOUT)
        self.assertEqual(self.echo([1]), [1])
        methods = [message["method"] for message in self.tape("bad")]
        self.assertLess(methods.index("fake/never"), methods.index("$/cancelRequest"))

    def test_answers_twice(self):
        self.begin("--twice")
        for number in range(20):
            self.assertEqual(self.ask("lsp.request", server="bad", method="fake/large", params={"size": number}),
                             "y" * number)

    def test_answers_out_of_order(self):
        self.begin()
        results = {}

        def ask(number):
            results[number] = self.ask("lsp.request", server="bad", method="fake/hold", params=[number])
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        eventually(lambda: self.server("bad")["pending"] == 10, what="ten requests are held")
        self.ask("lsp.request", server="bad", method="fake/release", params={})
        for thread in threads:
            thread.join()
        self.assertEqual(results, {number: [number] for number in range(10)})

    def test_large_answer_byte_by_byte(self):
        self.begin()
        result = self.ask("lsp.request", 240, server="bad", method="fake/trickle", params={"size": LARGE},
                          timeoutSeconds=230)
        self.assertEqual(len(result), LARGE)

    def test_slow_handshake_with_requests_waiting(self):
        self.begin("--initialize-delay", "5")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.hover(self.bad))) for _ in range(10)]
        for thread in threads:
            thread.start()
        eventually(lambda: any(s["name"] == "bad" and s["state"] == "starting" for s in self.ask("lsp.list")["servers"]),
                   what="the server is starting")
        for thread in threads:
            thread.join()
        self.assertEqual(answers, ["1|one|0"] * 10)
        self.assertEqual([message["method"] for message in self.tape("bad")][:3],
                         ["initialize", "initialized", "textDocument/didOpen"])

    def test_everything_a_server_may_ask(self):
        self.begin()
        expected = {
            "workspace/configuration": {"result": [None, None]},
            "client/registerCapability": {"result": None},
            "client/unregisterCapability": {"result": None},
            "window/workDoneProgress/create": {"result": None},
            "window/showMessageRequest": {"result": None},
            "window/showDocument": {"result": {"success": False}},
            "workspace/workspaceFolders": {"result": [{"uri": "file://" + self.project.root, "name": "project"}]},
            "workspace/codeLens/refresh": {"result": None},
            "workspace/semanticTokens/refresh": {"result": None},
            "workspace/inlayHint/refresh": {"result": None},
            "workspace/diagnostic/refresh": {"result": None},
            "no/such/method": {"error": {"code": -32601, "message": "Method not found"}},
        }
        for method, answer in expected.items():
            params = {"method": method, "params": {"items": [{}, {}]}}
            with self.subTest(method):
                self.assertEqual(self.ask("lsp.request", server="bad", method="fake/ask", params=params), answer)
        declined = self.ask("lsp.request", server="bad", method="fake/ask", params={"method": "workspace/applyEdit"})
        self.assertFalse(declined["result"]["applied"])

    def test_wrong_length(self):
        self.begin()
        for delta in (-7, 7):
            params = {"delta": delta, "then": True}
            with self.subTest(delta):
                self.assertEqual(self.cause("lsp.request", server="bad", method="fake/wrong_length", params=params),
                                 "protocol-noise")
                self.assertEqual(self.echo([delta]), [delta])

    def test_answer_that_is_never_complete(self):
        self.begin()
        self.assertEqual(self.echo([0]), [0])  # it runs: the time is for the answer alone
        self.assertEqual(self.cause("lsp.request", server="bad", method="fake/wrong_length", params={"delta": 7},
                                    timeoutSeconds=4), "protocol-noise")
        self.assertEqual(self.echo([1]), [1])


class Ends(TwoServers):
    """Crashes in every state, and ends that are no end."""

    def test_crash_at_the_start(self):
        self.begin("--crash-at", "start", "--complain", "cannot go on")
        answer = self.answer("lsp.hover", file=self.bad)
        self.assertEqual(answer["error"]["data"], {"cause": "exited-before-initialize", "server": "bad", "code": 7,
                                                   "stderr": "cannot go on\n"})

    def test_crash_in_the_handshake(self):
        self.begin("--crash-at", "initialize")
        self.assertEqual(self.cause("lsp.hover", file=self.bad), "exited-before-initialize")

    def test_crash_after_the_handshake(self):
        self.begin("--crash-at", "initialized", "--crash-once", self.path("crashed"))
        self.assertIn(self.answer("lsp.hover", file=self.bad).get("error", {}).get("data", {}).get("cause"),
                      ("crashed", None))
        self.assertEqual(self.hover(self.bad).split("|")[1], "one")

    def test_crash_with_a_document(self):
        self.begin("--crash-at", "textDocument/didOpen", "--crash-once", self.path("crashed"))
        self.assertEqual(self.cause("lsp.hover", file=self.bad), "crashed")
        self.assertEqual(self.hover(self.bad).split("|")[1], "one")

    def test_crash_with_a_request(self):
        self.begin("--crash-at", "textDocument/hover", "--crash-once", self.path("crashed"))
        self.assertEqual(self.cause("lsp.hover", file=self.bad), "crashed")
        self.assertEqual(self.hover(self.bad).split("|")[1], "one")

    def test_crash_at_shutdown(self):
        self.crash_at_the_end("shutdown")

    def test_crash_at_exit(self):
        self.crash_at_the_end("exit")

    def crash_at_the_end(self, method):
        self.begin("--crash-at", method)
        self.hover(self.bad)
        self.assertEqual(self.ask("lsp.stop", server="bad"), {"stopped": 1})
        self.assert_gone(self.pids("bad"))

    def test_a_request_that_it_never_survives(self):
        self.begin()
        for _ in range(3):
            self.assertEqual(self.cause("lsp.request", server="bad", method="fake/crash", params={}), "crashed")
        self.assertEqual(self.echo([1]), [1])
        self.assertEqual(self.cause("lsp.request", server="bad", method="fake/crash", params={}), "refused")

    def test_killed_with_a_request_pending(self):
        self.begin()
        self.hover(self.bad)
        other = self.write("b.bad", "second\n")
        self.hover(other)
        causes = []

        def ask():
            causes.append(self.cause("lsp.request", server="bad", method="fake/never", params={}))
        thread = threading.Thread(target=ask)
        thread.start()
        eventually(lambda: self.server("bad")["pending"] == 1, what="the request is pending")
        os.kill(self.pid("bad"), signal.SIGKILL)
        thread.join()
        self.assertEqual(causes, ["crashed"])  # `timeout` if nobody had noticed
        self.write("b.bad", "changed while it was down\n")
        self.assertEqual(self.hover(self.bad).split("|")[1], "one")
        opened = [message["params"]["textDocument"]["text"] for message in self.tape("bad")
                  if message.get("method") == "textDocument/didOpen"]
        self.assertEqual(opened[-2:], ["one\n", "changed while it was down\n"])

    def test_grandchild_that_ignores_term(self):
        self.begin("--grandchild", "--ignore", "TERM", "--ignore", "shutdown", "--ignore", "exit")
        self.hover(self.bad)
        pids = self.pids("bad")
        self.assertEqual(len(pids), 2)
        self.ask("lsp.stop", server="bad")
        self.assert_gone(pids)

    def test_closes_its_stdout(self):
        self.begin()
        self.assertEqual(self.cause("lsp.request", server="bad", method="fake/close", params={}), "crashed")
        self.assertEqual(self.echo([1]), [1])


class Starts(BridgeTestCase):
    """Servers that never come to life."""

    def cause_of(self, command, root=None):
        roots = "roots = []"
        self.write(".duet-rpc.toml", f"[lsp.bad]\ncommand = {command!r}\nfiles = ['*.bad']\n{roots}\n")
        self.start()
        return self.cause("lsp.start", server="bad", **({"root": root} if root else {}))

    def test_not_found(self):
        self.assertEqual(self.cause_of(["no-such-program-at-all"]), "not-found")

    def test_exec_failed(self):
        self.write("text", "not a program")
        os.chmod(self.path("text"), 0o755)
        self.assertEqual(self.cause_of([self.path("text")]), "exec-failed")

    def test_cwd_missing(self):
        self.assertEqual(self.cause_of(["cat"], root="nowhere"), "cwd-missing")

    def test_not_a_server(self):
        self.assertEqual(self.cause_of(["cat"]), "protocol-noise")


class Diagnostics(BridgeTestCase):
    """Never stale: for the new text, or `fresh` is false."""

    def check(self, *options, texts=5, are_sure=True):
        self.set_servers(fake=options)
        self.start()
        path = self.write("a.fake", "BAD 0\n")
        answers = []
        for number in range(1, texts + 1):
            wait = 40 if are_sure or number == 1 else 5
            answers.append((number - 1, self.ask("lsp.diagnostics", file=path, waitSeconds=wait)))
            self.write("a.fake", f"BAD {number}\n")
        for number, answer in answers:
            messages = [finding["message"] for finding in answer["diagnostics"]]
            self.assertTrue(not answer["fresh"] or messages == [f"BAD {number}"], (number, answer))
        return [answer["fresh"] for _, answer in answers]

    def test_with_versions(self):
        self.assertEqual(self.check("--publish-delay", "0.2", "--stale-first"), [True] * 5)

    def test_without_versions(self):
        """The first text is sure; of later ones nobody can tell what is about them, however long the server is silent."""
        self.assertEqual(self.check("--unversioned", "--publish-delay", "0.2", "--stale-first", texts=3, are_sure=False),
                         [True, False, False])

    def test_without_versions_and_without_time(self):
        self.set_servers(fake=["--unversioned", "--stale-first"])
        self.start()
        path = self.write("a.fake", "BAD 0\n")
        self.assertTrue(self.ask("lsp.diagnostics", file=path, waitSeconds=40)["fresh"])
        self.write("a.fake", "BAD 1\n")
        answer = self.ask("lsp.diagnostics", file=path, waitSeconds=0.5)
        self.assertFalse(answer["fresh"], answer)
        self.assertIn(answer["reason"], ("unversioned", "pending"))

    def test_asked_for(self):
        self.assertEqual(self.check("--pull"), [True] * 5)

    def test_none(self):
        self.set_servers(fake=["--never-publish"])
        self.start()
        path = self.write("a.fake", "BAD\n")
        answer = self.ask("lsp.diagnostics", file=path, waitSeconds=0.2)
        self.assertEqual((answer["fresh"], answer["reason"]), (False, "pending"))

    def test_changed_while_the_server_looks(self):
        self.set_servers(fake=["--publish-delay", "4"])
        self.start()
        path = self.write("a.fake", "BAD old\n")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.ask("lsp.diagnostics", file=path, waitSeconds=50)))
        thread.start()
        eventually(lambda: os.path.exists(self.path("fake.tape"))
                   and any(m.get("method") == "textDocument/didOpen" for m in self.tape("fake")), what="it is open")
        self.write("a.fake", "BAD new\n")
        thread.join()
        self.assertTrue(answers[0]["fresh"])
        self.assertEqual(answers[0]["diagnostics"][0]["message"], "BAD new")


if __name__ == "__main__":
    suite.main()
