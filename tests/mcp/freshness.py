#!/usr/bin/env python3
"""No stale answer about code is called fresh, whatever the server does and whenever a file changes.

    freshness.py --program PATH --edits 2000    so many edits
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mcp_client import McpTestCase  # noqa: E402

import suite  # noqa: E402
from daemon import eventually  # noqa: E402

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fakes", "language_server.py")
EDITS = 20
SEED = 11


class Freshness(McpTestCase):
    def code_door(self, **servers):
        """One whose project has these fake servers; files *.NAME belong to NAME."""
        lines = []
        for name, options in servers.items():
            command = [sys.executable, FAKE, "--tape", self.tape(name), *options]
            lines += [f"[lsp.{name}]", f"command = {json.dumps(command)}", f'files = ["*.{name}"]', "roots = []"]
        self.project.write_user_settings("\n".join(lines) + "\n")
        return self.ready_door()

    def tape(self, name):
        return os.path.join(self.project.root, f"{name}.tape")

    def replace(self, name, text):
        """As editors do, so that nobody reads half a text."""
        os.rename(self.write(name + ".new", text), os.path.join(self.project.root, name))

    def has_asked(self, name, method):
        def is_there():
            try:
                with open(self.tape(name), encoding="utf-8") as file:
                    return f'"{method}"' in file.read()
            except OSError:
                return False
        eventually(is_there, 60, method)

    def test_a_server_that_publishes_late_unversioned_twice_or_never(self):
        edits = int(suite.option("edits") or EDITS)
        self.write("a.fake", "BAD start\n")
        door = self.code_door(fake=["--moods", str(SEED)])
        fresh, reasons, wait = 0, set(), 1
        for number in range(edits):
            self.replace("a.fake", f"BAD {number}\n")
            result = door.tool("code_diagnostics", {"files": ["a.fake"], "wait_seconds": wait})
            if fresh <= number // 10:
                wait = min(wait + 1, 10)  # for a machine on which the server needs longer
            answer = result["structuredContent"]
            told = answer["files"][0]
            self.assertEqual(answer["fresh"], told["fresh"])
            if told["fresh"]:
                fresh += 1
                self.assertEqual([one["message"] for one in told["diagnostics"]], [f"BAD {number}"], (number, answer))
                self.assertFalse(result["content"][0]["text"].startswith("NOT FRESH"))
            else:
                reasons.add(told["reason"])
                self.assertTrue(result["content"][0]["text"].startswith(f"NOT FRESH ({told['reason']})"), result)
        self.assertGreater(fresh, edits // 20)  # or the test shows nothing
        self.assertLessEqual(reasons, {"pending", "unversioned", "changed"})

    def test_a_definition_of_a_file_that_changes_meanwhile(self):
        old, new = "one\nTARGET two\nthree\n", "first\nsecond\nTARGET two\nthree\n"
        self.write("a.slow", old)
        door = self.code_door(slow=["--slow", "documentSymbol=2"])
        id = door.post_tool("code_definition", {"file": "a.slow", "line": 1, "column": 1})
        self.has_asked("slow", "textDocument/documentSymbol")
        self.replace("a.slow", new)
        answer = door.answer(id, 60)["result"]["structuredContent"]
        self.assertIn("TARGET two", answer["definitions"][0]["text"])
        if answer["fresh"]:
            self.assertEqual((answer["at"]["text"], answer["definitions"][0]["line"]), ("first", 3))
        else:
            self.assertEqual(answer["reason"], "changed")

    def test_a_file_that_changes_while_another_is_waited_for(self):
        self.write("b.quick", "BAD\n")
        self.write("c.never", "text\n")
        door = self.code_door(quick=[], never=["--never-publish"])
        id = door.post_tool("code_diagnostics", {"files": ["b.quick", "c.never", "./b.quick"], "wait_seconds": 4})
        self.has_asked("never", "textDocument/didOpen")
        self.has_asked("quick", "textDocument/didOpen")
        self.replace("b.quick", "all is well\n")
        told = door.answer(id, 60)["result"]["structuredContent"]
        quick, never = told["files"]
        self.assertEqual((never["fresh"], never["reason"]), (False, "pending"))
        if quick["fresh"]:
            self.assertEqual((quick["diagnostics"], told["errors"]), ([], 0))
        else:
            self.assertIn(quick["reason"], ("changed", "pending"))

    def test_a_slow_hover_keeps_no_definition(self):
        self.write("a.slow", "one\nTARGET two\n")
        door = self.code_door(slow=["--slow", "hover=1000"])
        answer = door.structured("code_definition", {"file": "a.slow", "line": 1, "column": 1})
        self.assertEqual([place["line"] for place in answer["definitions"]], [2])
        self.assertNotIn("hover", answer)
        self.assertIn("hover", answer["note"])

    def test_a_link_that_takes_a_files_place_is_not_followed(self):
        outside = os.path.join(self.project.place.name, "outside.slow")
        with open(outside, "w", encoding="utf-8") as file:
            file.write("SECRET\n")
        self.write("a.slow", "TARGET\n")
        door = self.code_door(slow=["--capability", "referencesProvider", "--slow", "references=8"])
        id = door.post_tool("code_references", {"file": "a.slow", "line": 1})
        self.has_asked("slow", "textDocument/references")
        link = os.path.join(self.project.root, "link")
        os.symlink(outside, link)
        os.rename(link, os.path.join(self.project.root, "a.slow"))
        text = door.answer(id, 60)["result"]["content"][0]["text"]
        self.assertTrue(text.startswith("outside-project: "), text)

    def test_many_files_wait_no_longer_than_one(self):
        files = [f"f{number}.never" for number in range(8)]
        for name in files:
            self.write(name, "text\n")
        door = self.code_door(never=["--never-publish"])
        door.structured("code_diagnostics", {"files": files[:1], "wait_seconds": 0})
        ids = [door.post_tool("code_diagnostics", {"files": files, "wait_seconds": 5}) for _ in range(3)]
        self.assertTrue(door.structured("project_status", {})["daemon"]["running"])
        for id in ids:
            told = door.answer(id, 60)["result"]["structuredContent"]
            self.assertEqual([one["reason"] for one in told["files"]], ["pending"] * len(files))


if __name__ == "__main__":
    suite.main()
