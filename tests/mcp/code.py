#!/usr/bin/env python3
"""The code tools of `duet-rpc mcp`, with a real clangd."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mcp_client import McpTestCase  # noqa: E402

import suite  # noqa: E402
from daemon import eventually  # noqa: E402

MAIN = """#include <string>

/// Counts the letters of a name.
int greet(const std::string& name) {
  return static_cast<int>(name.size());
}

struct Server { void start() {} };
struct Client { void start() {} };

int main() {
  const int count = greet("world");
  Server().start();
  return count + greet("äöü");
}
"""


@unittest.skipUnless(shutil.which("clangd"), "clangd is not installed")
class Code(McpTestCase):
    def setUp(self):
        super().setUp()
        self.write("src/main.cpp", MAIN)
        self.write("compile_commands.json", json.dumps([
            {"directory": self.project.root, "file": "src/main.cpp", "command": "g++ -std=c++17 -c src/main.cpp"}]))
        self.shared = self.ready_door()

    def complete(self, tool, arguments):
        """The structured answer once the server has done its work."""
        def answer():
            result = self.shared.tool(tool, arguments, 120)
            content = result.get("structuredContent")
            return content if content and content["complete"] and content["fresh"] else None
        return eventually(answer, 120, f"a complete answer to {tool}")

    def test_what_a_file_declares(self):
        found = self.complete("code_symbols", {"file": "src/main.cpp"})
        self.assertEqual(found["root"], self.project.root)
        self.assertEqual(found["server"], "clangd")
        paths = {symbol["path"]: symbol for symbol in found["symbols"]}
        self.assertEqual(set(paths), {"greet", "Server", "Server::start", "Client", "Client::start", "main"})
        self.assertEqual((paths["greet"]["line"], paths["greet"]["column"], paths["greet"]["end_line"]), (4, 5, 6))
        for path in paths:
            shown = self.complete("code_definition", {"file": "src/main.cpp", "symbol": path})
            self.assertEqual(shown["at"]["line"], paths[path]["line"], path)

    def test_a_definition_with_its_source(self):
        for place in ({"file": "src/main.cpp", "line": 12, "column": 21}, {"file": "src/main.cpp", "line": "12", "symbol": "greet"},
                      {"file": "src/main.cpp:12:21"}, {"file": "src/main.cpp", "line": 10, "symbol": "greet"}):
            found = self.complete("code_definition", place)
            self.assertEqual(found["at"], {"file": "src/main.cpp", "line": 12, "column": 21,
                                           "text": '  const int count = greet("world");'}, place)
            self.assertEqual(len(found["definitions"]), 1)
            definition = found["definitions"][0]
            self.assertEqual((definition["file"], definition["line"], definition["end_line"]), ("src/main.cpp", 4, 6))
            self.assertEqual(definition["text"], "\n".join(MAIN.split("\n")[3:6]))
            self.assertIn("Counts the letters of a name.", found["hover"])
        text = self.shared.tool("code_definition", {"file": "src/main.cpp:12:21"})["content"][0]["text"]
        self.assertIn("4  int greet(const std::string& name) {", text)
        self.assertIn("at src/main.cpp:12:21  const int count", text)

    def test_references_by_meaning(self):
        found = self.complete("code_references", {"file": "src/main.cpp", "symbol": "greet"})
        self.assertEqual([(place["line"], place["column"]) for place in found["references"]], [(4, 5), (12, 21), (14, 18)])
        self.assertEqual(found["count"], 3)

    def test_a_name_alone(self):
        self.complete("code_symbols", {"file": "src/main.cpp"})
        found = self.complete("code_symbols", {"query": "greet"})
        self.assertEqual([symbol["path"] for symbol in found["symbols"]], ["greet"])
        self.assertEqual(self.complete("code_definition", {"symbol": "Server::start"})["at"]["line"], 8)
        text = self.shared.error("code_definition", {"file": "src/main.cpp", "symbol": "start"})
        self.assertTrue(text.startswith("ambiguous: 'start' names 2 symbols.\nTry: one of these as symbol: Server::start method "
                                        "src/main.cpp:8, Client::start"), text)
        text = self.shared.error("code_definition", {"file": "src/main.cpp", "symbol": "gret"})
        self.assertTrue(text.startswith("not-found: no symbol is named 'gret'.\nTry: one of these: greet"), text)

    def test_diagnostics_are_of_the_present_text(self):
        clean = self.complete("code_diagnostics", {"files": "src/main.cpp", "wait_seconds": 50})
        self.assertEqual((clean["errors"], clean["files"][0]["diagnostics"]), (0, []))
        subprocess.run(["sed", "-i", "s/return count/return coutn/", os.path.join(self.project.root, "src/main.cpp")], check=True)
        broken = self.complete("code_diagnostics", {"files": ["src/main.cpp"], "wait_seconds": 50})
        self.assertEqual(broken["errors"], 1)
        wrong = broken["files"][0]["diagnostics"][0]
        self.assertEqual((wrong["line"], wrong["column"], wrong["severity"]), (14, 10, "error"))
        self.assertIn("coutn", wrong["message"])
        self.assertEqual(wrong["text"], '  return coutn + greet("äöü");')

    def test_pages_of_a_long_definition(self):
        body = "".join(f"  total += {n};  // line {n}\n" for n in range(500))
        self.write("src/long.cpp", "int sum() {\n  int total = 0;\n" + body + "  return total;\n}\n")
        self.complete("code_definition", {"file": "src/long.cpp", "symbol": "sum"})
        text, cursor = "", None
        while True:
            arguments = {"file": "src/long.cpp", "symbol": "sum", "max_bytes": 2000, **({"cursor": cursor} if cursor else {})}
            result = self.shared.tool("code_definition", arguments)
            page = result["structuredContent"]
            self.assertLessEqual(len(json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode()), 2000)
            self.assertLessEqual(len(result["content"][0]["text"].encode()), 2000)
            text += "".join(part["text"] + "\n" for part in page["definitions"])
            cursor = page.get("next")
            if cursor is None:
                break
        with open(os.path.join(self.project.root, "src/long.cpp"), encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_what_cannot_be_answered_says_why(self):
        door = self.shared
        for arguments, code in (({"symbol": "x"}, "no-server"), ({"file": "/etc/passwd", "line": 1}, "outside-project"), ({"file": "none.cpp", "line": 1}, "not-found"),
                                ({"file": "src/main.cpp"}, "bad-argument"), ({"line": 3}, "bad-argument"), ({}, "bad-argument"),
                                ({"file": "src/main.cpp", "line": 999}, "bad-argument"),
                                ({"file": "src/main.cpp", "line": 1, "column": 1, "symbol": "x"}, "bad-argument"),
                                ({"file": "compile_commands.json", "line": 1}, "no-server")):
            text = door.error("code_definition", arguments)
            self.assertTrue(text.startswith(code + ": "), (arguments, text))
            self.assertEqual(text.count("\n"), 1)
            self.assertIn("\nTry: ", text)
        self.assertTrue(door.error("code_symbols", {}).startswith("bad-argument"))
        self.assertTrue(door.error("code_diagnostics", {"files": []}).startswith("bad-argument"))


if __name__ == "__main__":
    suite.main()
