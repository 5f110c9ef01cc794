#!/usr/bin/env python3
"""Real language servers on the projects in samples/, through the daemon: everything people ask, a crash, a stop.

    real_servers.py --program PATH --rounds 100 Clangd    so many starts and stops
"""

import json
import os
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import (NODE_COMMANDS, BridgeTestCase, children, eventually, open_descriptors,  # noqa: E402
                            place_of, suite)
from daemon import request  # noqa: E402

ROUNDS = 3
PATIENCE = 180  # a server's first look at a project takes its time on a busy machine


class RealServer:
    """What is asked of each. In MAIN, after text that is not ASCII, stands a call of `greet`."""

    sample = server = main = broken = None
    definition = None  # (file, which `greet` in it)
    reference_files = ()

    def setUp(self):
        super().setUp()
        self.copy_sample(self.sample)
        self.prepare()
        self.daemon = self.start()
        self.main_path = self.path(self.main)
        self.place = place_of(self.main_path, "greet", -1)

    def prepare(self):
        """What the project needs beside its sample."""

    def at(self):
        line, column = self.place
        return {"file": self.main_path, "line": line, "column": column}

    def test_questions(self):
        hover = self.ask("lsp.hover", PATIENCE, **self.at())
        self.assertIn("greet", hover["contents"])
        self.assertEqual(hover["server"], self.server)
        self.await_definition()
        references = eventually(self.all_references, PATIENCE, "references in every file")
        for place in references:
            marked = place["text"][place["column"] - 1:place["endColumn"] - 1]
            self.assertEqual(marked, "greet", place)
        line, column = self.place
        items = self.ask("lsp.completion", PATIENCE, file=self.main_path, line=line, column=column + 3)["items"]
        self.assertTrue(any("greet" in item["label"] for item in items), items[:5])
        symbols = self.ask("lsp.symbols", PATIENCE, file=self.path(self.definition[0]))["symbols"]
        self.assertTrue(any("greet" in symbol["name"] for symbol in symbols), symbols)

    def test_places_by_name(self):
        """A file's own symbol, a word in a line, and every path that a search prints, accepted back."""
        file, which = self.definition
        path = self.path(file)
        place = place_of(path, "greet", which)
        found = self.ask("lsp.find", PATIENCE, query="greet", file=path)
        hits = [symbol for symbol in found["symbols"] if symbol["name"].startswith("greet")]
        self.assertTrue(hits, found)
        self.assertEqual((hits[0]["line"], hits[0]["file"], found["fresh"]), (place[0], path, True), found)
        hover = self.ask("lsp.hover", PATIENCE, file=path, symbol=hits[0]["path"])
        self.assertEqual((hover["at"]["file"], hover["at"]["line"]), (path, place[0]), hover)
        near = self.ask("lsp.hover", PATIENCE, file=self.main_path, line=max(self.place[0] - 1, 1), symbol="greet")
        self.assertIn("greet", near["at"]["text"])
        error = self.answer("lsp.hover", PATIENCE, file=path, symbol="greeet")["error"]
        self.assertEqual(error["data"]["reason"], "not-found", error)
        self.assertTrue(any("greet" in name for name in error["data"]["near"]), error)
        shown = self.project.run("lsp", "references", f"{file}#{hits[0]['path']}")
        self.assertEqual(shown.code, 0, shown)
        self.assertRegex(shown.out, r"(?m)^" + re.escape(file) + rf":{place[0]}:\d+$")

    def all_references(self):
        places = self.ask("lsp.references", PATIENCE, **self.at())["places"]
        found = {os.path.basename(place["file"]) for place in places}
        return places if set(self.reference_files) <= found else None

    def await_definition(self):
        """clangd knows the other files once it has indexed them, so this may take several questions."""
        target = (self.path(self.definition[0]), *place_of(self.path(self.definition[0]), "greet", self.definition[1]))

        def is_found():
            places = self.ask("lsp.definition", PATIENCE, **self.at())["places"]
            return [(p["file"], p["line"], p["column"]) for p in places] == [target]
        eventually(is_found, PATIENCE, f"the definition at {target}")

    def test_diagnostics_follow_the_text_on_disk(self):
        path = self.path(self.broken)
        found = self.ask("lsp.diagnostics", PATIENCE, file=path, waitSeconds=100)
        self.assertTrue(found["fresh"], found)
        self.assertTrue(found["diagnostics"], found)
        self.assert_finding(found["diagnostics"])
        self.repair(path)
        found = self.ask("lsp.diagnostics", PATIENCE, file=path, waitSeconds=100)
        self.assertEqual((found["fresh"], found["diagnostics"]), (True, []), found)

    def assert_finding(self, findings):
        marked = [f["text"][f["column"] - 1:f["endColumn"] - 1] for f in findings]
        self.assertIn("nowhere", marked, findings)

    def repair(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.write(self.broken, text.replace("nowhere", "1"))

    def test_crash_and_recovery(self):
        self.ask("lsp.symbols", PATIENCE, file=self.path(self.broken))
        self.ask("lsp.hover", PATIENCE, **self.at())
        pid = self.list()["pid"]
        os.kill(pid, signal.SIGSTOP)
        with self.project.connect() as client:
            client.send(request("lsp.hover", 1, params=self.at()))
            eventually(lambda: self.list()["pending"] == 1, what="a request is pending")
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(client.answer(1, PATIENCE)[0]["error"]["data"]["cause"], "crashed")
        self.assertIn("greet", self.ask("lsp.hover", PATIENCE, **self.at())["contents"])
        self.assertNotEqual(self.list()["pid"], pid)
        self.assertEqual(self.list()["documents"], 2)

    def list(self):
        return self.ask("lsp.list")["servers"][0]

    def test_nothing_is_left(self):
        self.ask("lsp.hover", PATIENCE, **self.at())
        tree = children(self.daemon)
        self.assertTrue(tree)
        result = self.project.run("lsp", "stop", self.server)
        self.assertEqual(result.code, 0, result)
        self.assert_gone(tree, 0)
        self.assertIn("greet", self.ask("lsp.hover", PATIENCE, **self.at())["contents"])
        tree = children(self.daemon)
        self.project.kill(self.daemon)
        self.assert_gone(tree)

    def test_starts_and_stops(self):
        descriptors = None
        for _ in range(int(suite.option("rounds") or ROUNDS)):
            self.ask("lsp.start", PATIENCE, server=self.server)
            tree = children(self.daemon)
            self.assertEqual(self.ask("lsp.stop", server=self.server), {"stopped": 1})
            self.assertEqual(children(self.daemon), [])
            self.assert_gone(tree, 0)
            descriptors = descriptors or open_descriptors(self.daemon)
        eventually(lambda: open_descriptors(self.daemon) <= descriptors, what="all descriptors are given back")

    def test_check(self):
        result = self.project.run("lsp", "check", "--", *self.command,
                                  env={"PATH": os.environ["PATH"] + os.pathsep + NODE_COMMANDS})
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"handshake +\d+ ms")
        for offer in ("completion", "definition", "hover", "references"):
            self.assertRegex(result.out, rf"offers .*\b{offer}\b")

    def test_commands(self):
        line, column = self.place
        where = f"{self.main}:{line}:{column}"
        self.assertIn("greet", self.project.run("lsp", "hover", where).out)
        self.await_definition()
        file, which = self.definition
        target = "{}:{}:{}".format(file, *place_of(self.path(file), "greet", which))
        out = self.project.run("lsp", "definition", where).out
        self.assertTrue(out.startswith(target + "\n"), out)
        self.assertRegex(out, r"\n {4}.*greet.*\n +\^~~~~")
        found = self.project.run("lsp", "diagnostics", "--wait", "100s", self.broken)
        self.assertEqual(found.code, 0, found)
        self.assertRegex(found.out, re.escape(self.broken) + r":\d+:\d+: \w+: ")


class Clangd(RealServer, BridgeTestCase):
    sample, server, main, broken = "cpp", "clangd", "main.cpp", "broken.cpp"
    command = ["clangd", "--background-index"]
    definition = ("greeting.cpp", 1)
    reference_files = ("main.cpp", "greeting.h", "greeting.cpp")

    def prepare(self):
        commands = [{"directory": self.project.root, "file": name, "arguments": ["c++", "-I.", "-c", name]}
                    for name in ("main.cpp", "greeting.cpp", "broken.cpp")]
        self.write("compile_commands.json", json.dumps(commands))

    def test_the_project_by_name(self):
        self.await_definition()

        def found():
            symbols = self.ask("lsp.find", PATIENCE, query="greet")["symbols"]
            return [symbol for symbol in symbols if symbol["path"] == "greet"]
        eventually(found, PATIENCE, "greet in the index")
        hover = self.ask("lsp.hover", PATIENCE, symbol="greet")
        self.assertIn("greet", hover["contents"])
        self.assertRegex(hover["at"]["file"], r"greeting\.(h|cpp)$")
        self.assertIn("greet", self.project.run("lsp", "find", "greet").out)
        self.assertEqual(self.project.run("lsp", "definition", "#greet").code, 0)

    def test_a_backslash_in_a_name(self):
        """It takes it for a slash in what it publishes."""
        path = self.write("back\\slash.cpp", "int main() { return nowhere; }\n")
        found = self.ask("lsp.diagnostics", PATIENCE, file=path, waitSeconds=100)
        self.assertTrue(found["fresh"], found)
        self.assert_finding(found["diagnostics"])


class ClangdBuild(BridgeTestCase):
    """A project as CMake leaves it: with what clangd needs in a build folder, or nowhere."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("include"))
        self.write("include/own.h", "int own();\n")
        self.main_path = self.write("main.cpp", '#include "own.h"\nint main() { return own(); }\n')

    def export(self, folder):
        os.makedirs(self.path(folder))
        command = {"directory": self.path(folder), "file": self.main_path,
                   "arguments": ["c++", "-I" + self.path("include"), "-c", self.main_path]}
        self.write(os.path.join(folder, "compile_commands.json"), json.dumps([command]))

    def diagnostics(self):
        return self.ask("lsp.diagnostics", PATIENCE, file=self.main_path, waitSeconds=100)

    def test_a_build_folder_of_whatever_name_is_found(self):
        for folder in ("build-debug", "build/dev"):
            with self.subTest(folder):
                self.export(folder)
        self.start()
        found = self.diagnostics()
        self.assertEqual((found["diagnostics"], found["fresh"], "note" in found), ([], True, False), found)
        server = self.ask("lsp.list")["servers"][0]
        self.assertEqual(server["compileCommands"], self.path("build/dev"), server)

    def test_without_one_that_is_said_until_there_is(self):
        self.start()
        found = self.diagnostics()
        self.assertIn("own.h", found["diagnostics"][0]["message"])
        self.assertIn("compile_commands.json", found["note"])
        self.assertIn("compile_commands.json", self.ask("lsp.list")["servers"][0]["note"])
        self.assertIn("compile_commands.json", self.project.run("lsp", "list").out)
        self.assertIn("compile_commands.json", self.project.run("lsp", "symbols", "main.cpp").err)
        self.export("build-new")
        eventually(lambda: self.diagnostics()["diagnostics"] == [], PATIENCE, "clangd knows the build")
        self.assertIn("build-new", self.project.run("lsp", "list").out)
        shutil.rmtree(self.path("build-new"))
        eventually(lambda: "note" in self.diagnostics(), PATIENCE, "clangd is known to have lost it")

    def test_a_newer_one_counts_as_soon_as_it_is_there(self):
        self.export("build-old")
        self.start()
        self.assertEqual(self.diagnostics()["diagnostics"], [])
        self.export("build/new")
        future = time.time() + 10  # whatever the file system's clock can tell apart
        os.utime(self.path("build/new/compile_commands.json"), (future, future))

        def told():
            self.diagnostics()
            return self.ask("lsp.list")["servers"][0].get("compileCommands")
        eventually(lambda: told() == self.path("build/new"), PATIENCE, "clangd knows the newer build")

    def test_what_the_project_says_of_it_counts(self):
        self.export("out/debug")
        os.makedirs(self.path("build-wrong"))
        self.write("build-wrong/compile_commands.json", "[]")
        self.write(".clangd", "CompileFlags:\n  CompilationDatabase: out/debug\n")
        self.start()
        found = self.diagnostics()
        self.assertEqual((found["diagnostics"], "note" in found), ([], False), found)


class Pylsp(RealServer, BridgeTestCase):
    sample, server, main, broken = "python", "pylsp", "main.py", "broken.py"
    command = ["pylsp"]
    definition = ("greeting.py", 1)
    reference_files = ("main.py", "greeting.py")

    def assert_finding(self, findings):
        # This version of its pyflakes plugin gives columns in bytes, whatever is agreed.
        self.assertIn("nowhere", findings[0]["message"])


class TypeScript(RealServer, BridgeTestCase):
    sample, server, main, broken = "typescript", "typescript-language-server", "main.ts", "broken.ts"
    command = ["typescript-language-server", "--stdio"]
    definition = ("greeting.ts", 1)
    reference_files = ("main.ts", "greeting.ts")


class Bash(RealServer, BridgeTestCase):
    sample, server, main, broken = "bash", "bash-language-server", "main.sh", "broken.sh"
    command = ["bash-language-server", "start"]
    definition = ("main.sh", 1)
    reference_files = ("main.sh",)

    def assert_finding(self, findings):
        self.assertTrue(findings)

    def repair(self, path):
        with open(path, "a", encoding="utf-8") as file:
            file.write("fi\n")


if __name__ == "__main__":
    suite.main()
