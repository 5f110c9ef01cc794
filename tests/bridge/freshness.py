#!/usr/bin/env python3
"""No stale answer is called fresh, whatever the server does and whenever the file changes.

    freshness.py --program PATH --edits 2000    so many edits of each kind
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import BridgeTestCase, suite  # noqa: E402

EDITS = 60
SEED = 7


class Freshness(BridgeTestCase):
    def setUp(self):
        super().setUp()
        self.edits = int(suite.option("edits") or EDITS)
        self.set_servers(fake=["--moods", str(SEED)])
        self.start()
        self.file = self.write("a.fake", "BAD 0\n")
        self.client = self.project.connect()
        self.addCleanup(self.client.close)

    def replace(self, text):
        """As editors do, so that nobody reads half a text."""
        self.write("new", text)
        os.rename(self.path("new"), self.file)

    def messages(self, answer):
        return [finding["message"] for finding in answer["diagnostics"]]

    def test_diagnostics_of_a_server_that_publishes_late_unversioned_twice_or_never(self):
        fresh, reasons, wait = 0, set(), 0.3
        for number in range(self.edits):
            self.replace(f"BAD {number}\n")
            answer = self.ask("lsp.diagnostics", 60, self.client, file=self.file, waitSeconds=wait)
            if fresh <= number // 5 or "unversioned" not in reasons:
                wait = min(1.5 * wait, 5)  # for a machine on which the server needs longer
            if answer["fresh"]:
                fresh += 1
                self.assertEqual(self.messages(answer), [f"BAD {number}"], (number, answer))
                self.assertNotIn("reason", answer)
            else:
                reasons.add(answer["reason"])
        self.assertGreater(fresh, self.edits // 10)  # or the test shows nothing
        self.assertLessEqual(reasons, {"pending", "unversioned", "changed"})
        self.assertIn("unversioned", reasons)

    def test_answers_while_somebody_edits(self):
        """The text that a fresh answer is about was the file's at some time while it was asked for."""
        history = [["BAD 0", time.monotonic(), None]]  # a text, and when at the earliest and at the latest it was there
        stop = threading.Event()

        def edit():
            number = 0
            while not stop.is_set():
                number += 1
                history.append([f"BAD {number}", time.monotonic(), None])
                self.replace(f"BAD {number}\n")
                history[-2][2] = time.monotonic()
                stop.wait(0.02)
        editor = threading.Thread(target=edit)
        editor.start()
        self.addCleanup(editor.join)
        self.addCleanup(stop.set)
        kinds = {True: 0, False: 0}
        for number in range(self.edits):
            begun = time.monotonic()
            if number % 2:
                answer = self.ask("lsp.diagnostics", 60, self.client, file=self.file, waitSeconds=0.05)
                seen = self.messages(answer)
            else:
                answer = self.ask("lsp.hover", 60, self.client, file=self.file)
                seen = [answer["contents"].split("|")[1]]
            ended = time.monotonic()
            kinds[answer["fresh"]] += 1
            if answer["fresh"]:
                present = [text for text, first, last in list(history)
                           if first <= ended and (last is None or last >= begun)]
                self.assertEqual(len(seen), 1, answer)
                self.assertIn(seen[0], present, (number, answer))
            else:
                self.assertIn(answer["reason"], ("pending", "unversioned", "changed"), answer)
        self.assertGreater(kinds[True], 0, kinds)

    def test_a_text_that_another_client_has_said_is_not_what_is_on_disk(self):
        self.ask("lsp.hover", 60, self.client, file=self.file)
        document = {"uri": "file://" + self.file, "languageId": "x", "version": 1, "text": "BAD said\n"}
        self.ask("lsp.notify", 60, self.client, method="textDocument/didOpen", params={"textDocument": document})
        own = self.ask("lsp.hover", 60, self.client, file=self.file)
        self.assertEqual((own["fresh"], own["contents"].split("|")[1]), (True, "BAD said"), own)
        other = self.ask("lsp.hover", file=self.file)
        self.assertEqual((other["fresh"], other["reason"]), (False, "changed"), other)
        self.replace("BAD said\n")
        self.assertTrue(self.ask("lsp.hover", file=self.file)["fresh"])


class Progress(BridgeTestCase):
    def test_what_is_under_way_makes_an_answer_incomplete(self):
        self.set_servers(fake=[])
        self.start()
        file = self.write("a.fake", "text\n")
        self.assertTrue(self.ask("lsp.hover", file=file)["complete"])

        def progress(**value):
            self.ask("lsp.request", server="fake", method="fake/progress", params={"token": "t", "value": value})
        progress(kind="begin", title="indexing", percentage=0)
        for method in ("lsp.hover", "lsp.definition", "lsp.symbols", "lsp.diagnostics"):
            answer = self.ask(method, file=file)
            self.assertEqual((answer["complete"], answer["indexing"]), (False, "indexing 0 %"), method)
        progress(kind="report", message="40/120")
        self.assertEqual(self.ask("lsp.list")["servers"][0]["indexing"], "indexing 40/120")
        self.assertIn("ready, indexing 40/120", self.project.run("lsp", "list").out)
        told = self.project.run("lsp", "hover", file)
        self.assertEqual((told.code, "fake is still at work (indexing 40/120)" in told.err), (0, True), told)
        progress(kind="end")
        answer = self.ask("lsp.hover", file=file)
        self.assertEqual((answer["complete"], "indexing" in answer), (True, False))
        created = [m for m in self.tape("fake") if m.get("id") == "create-t"]
        self.assertEqual(created, [{"jsonrpc": "2.0", "id": "create-t", "result": None}])

    def test_work_ends_with_the_server(self):
        self.set_servers(fake=[])
        self.start()
        file = self.write("a.fake", "text\n")
        self.ask("lsp.hover", file=file)
        self.ask("lsp.request", server="fake", method="fake/progress",
                 params={"token": 1, "value": {"kind": "begin", "title": "x"}})
        self.assertFalse(self.ask("lsp.hover", file=file)["complete"])
        self.ask("lsp.stop", server="fake")
        self.assertTrue(self.ask("lsp.hover", file=file)["complete"])


if __name__ == "__main__":
    suite.main()
