#!/usr/bin/env python3
"""`duet-rpc lsp …` as people see it."""

import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import FAKE, BridgeTestCase, eventually, suite  # noqa: E402


class Check(BridgeTestCase):
    """Without a daemon."""

    def check(self, *command, timeout="50s"):
        return self.project.run("lsp", "check", "--timeout", timeout, "--", *command)

    def test_a_server(self):
        result = self.check(sys.executable, FAKE, "--encoding", "utf-32", "--pids", self.path("check.pids"))
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^server +fake$")
        self.assertRegex(result.out, r"(?m)^version +1\.0$")
        self.assertRegex(result.out, r"(?m)^handshake +\d+ ms$")
        self.assertRegex(result.out, r"(?m)^positions +utf-32$")
        self.assertRegex(result.out, r"(?m)^offers +hover, definition$")
        self.assert_gone(self.pids("check"), 0)

    def test_started_by_one_that_ignores_its_children(self):
        result = self.project.run("lsp", "check", "--timeout", "50s", "--", sys.executable, FAKE,
                                  preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.code, 0, result)

    def test_json(self):
        result = self.project.run("lsp", "check", "--json", "--", sys.executable, FAKE)
        found = result.json()
        self.assertEqual((found["name"], found["version"], found["encoding"]), ("fake", "1.0", "utf-16"))
        self.assertTrue(found["capabilities"]["hoverProvider"])
        self.assertGreater(found["handshakeMs"], 0)

    def test_no_such_program(self):
        self.assert_refused(self.check("no-such-program-at-all"), 1, "not-found: no-such-program-at-all")

    def test_no_program_at_all(self):
        path = self.write("text", "just text")
        os.chmod(path, 0o755)
        self.assert_refused(self.check(path), 1, "exec-failed: ")

    def test_not_a_server(self):
        self.assert_refused(self.check("cat"), 1, "protocol-noise: ")
        self.assert_refused(self.check("yes"), 1, "protocol-noise: .*it printed: y")
        self.assert_refused(self.check("echo", "hello"), 1, "exited-before-initialize: .*code 0.*it printed: hello")

    def test_broken_frames(self):
        for text in (r"Content-Length: 8\r\n\r\nno JSON!", r"Content-Length: 100\r\n\r\n{"):
            with self.subTest(text):
                self.assert_refused(self.check("sh", "-c", f"printf '{text}'; exec sleep 60", timeout="5s"), 1,
                                    "protocol-noise: ")

    def test_one_that_exits(self):
        result = self.check("sh", "-c", "echo first >&2; echo out of luck >&2; exit 3")
        self.assert_refused(result, 1, "exited-before-initialize: .*code 3.*out of luck")

    def test_one_that_hangs(self):
        self.assert_refused(self.check("sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeout="1s"), 1,
                            "handshake-timeout: ")

    def test_one_that_refuses(self):
        script = ("import sys\nbody = '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"not today\"}}'\n"
                  "sys.stdout.write('Content-Length: %d\\r\\n\\r\\n%s' % (len(body), body))\nsys.stdout.flush()\n"
                  "sys.stdin.read()")
        self.assert_refused(self.check(sys.executable, "-c", script), 1, "refused: .*not today")


class Commands(BridgeTestCase):
    def setUp(self):
        super().setUp()
        self.set_servers(fake=[])
        self.text = self.write("a.fake", "one\n\tä你😀 TARGET\n  BAD ä\n")

    def test_without_a_daemon(self):
        for words in (["hover", "a.fake:1:1"], ["list"], ["stop", "fake"], ["request", "x"], ["diagnostics", "a.fake"]):
            with self.subTest(words):
                self.assert_refused(self.project.run("lsp", *words), 3, "no daemon is running")

    def test_places(self):
        self.start()
        result = self.project.run("lsp", "definition", "a.fake:1:1")
        self.assertEqual(result.out, "a.fake:2:6\n     ä你😀 TARGET\n" + " " * 11 + "^~~~~~\n")
        found = self.project.run("lsp", "definition", "--json", "a.fake:1:1").json()
        self.assertEqual(found["places"], [{"file": self.text, "line": 2, "column": 6, "endLine": 2, "endColumn": 12,
                                            "text": "\tä你😀 TARGET"}])

    def test_hover_counts_characters(self):
        self.start()
        self.assertEqual(self.project.run("lsp", "hover", "a.fake:2:6").out, "1| ä你😀 TARGET|6\n")
        self.assertEqual(self.project.run("lsp", "hover", "a.fake:2").out, "1| ä你😀 TARGET|1\n")
        self.assertEqual(self.project.run("lsp", "hover", "a.fake").out, "1|one|0\n")

    def test_from_a_folder_below(self):
        self.start()
        os.makedirs(self.path("below"))
        result = self.project.run("lsp", "definition", "../a.fake:1:1", cwd=self.path("below"))
        self.assertTrue(result.out.startswith(self.text + ":2:6\n"), result)

    def test_odd_names(self):
        self.start()
        for name in ("a b.fake", "50%.fake", "#1.fake", "3:4.fake", "你.fake", os.fsdecode(b"\xff\xfe.fake")):
            with self.subTest(name):
                self.write(name, "TARGET\n")
                result = self.project.run("lsp", "definition", f"{name}:1:1")
                self.assertEqual(result.code, 0, result)
                self.assertRegex(result.out, r"(?m):1:1$")

    def test_diagnostics(self):
        self.start()
        result = self.project.run("lsp", "diagnostics", "a.fake")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.out, "a.fake:3:3: error: BAD ä  [fake]\n      BAD ä\n      ^~~\n")
        self.write("b.fake", "good\n")
        self.assertEqual(self.project.run("lsp", "diagnostics", "b.fake", "a.fake").out,
                         "b.fake: nothing found\n" + result.out)
        lines = self.project.run("lsp", "diagnostics", "--json", "a.fake", "b.fake").out.splitlines()
        self.assertEqual([json.loads(line)["fresh"] for line in lines], [True, True])

    def test_diagnostics_that_fail(self):
        self.write("b.fake", "good\n")
        self.start()
        for words, code in ((["a.fake", "b.fake"], 0), (["--fail-on", "error", "b.fake", "a.fake"], 5),
                            (["--fail-on", "warning", "a.fake"], 5), (["--fail-on", "warning", "b.fake"], 0),
                            (["--json", "--fail-on", "error", "a.fake"], 5)):
            with self.subTest(words):
                result = self.project.run("lsp", "diagnostics", *words)
                self.assertEqual((result.code, result.err), (code, ""), result)
        self.assertIn("error", self.project.run("lsp", "diagnostics", "--fail-on", "hint", "a.fake").err)

    def test_warnings_fail_only_if_they_are_to(self):
        report = {"items": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
                             "severity": 2, "message": "so so"}]}
        self.set_servers(fake=["--pull", "--answer", "diagnostic=" + json.dumps(report)])
        self.start()
        self.assertEqual(self.project.run("lsp", "diagnostics", "--fail-on", "error", "a.fake").code, 0)
        self.assertEqual(self.project.run("lsp", "diagnostics", "--fail-on", "warning", "a.fake").code, 5)

    def test_a_server_on_the_path_of_whoever_asks(self):
        """The daemon's PATH does not have it, and neither does that of the next one who asks."""
        folder = self.path("tools")
        os.makedirs(folder)
        program = os.path.join(folder, "only-here")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}' \"$@\"\n")
        os.chmod(program, 0o755)
        self.write(".duet-rpc.toml", '[lsp.fake]\ncommand = ["only-here"]\nfiles = ["*.fake"]\nroots = []\n')
        self.start()
        plain = {"PATH": os.environ["PATH"]}
        self.assert_refused(self.project.run("lsp", "hover", "a.fake:1:1", env=plain), 1, "not-found")
        relative = {"PATH": "tools:" + os.environ["PATH"]}
        self.assert_refused(self.project.run("lsp", "hover", "a.fake:1:1", env=relative), 1, "not-found")
        ours = {"PATH": folder + ":" + os.environ["PATH"]}
        self.assertEqual(self.project.run("lsp", "hover", "a.fake:1:1", env=ours).code, 0)
        self.assertEqual(self.project.run("lsp", "hover", "a.fake:1:1", env=plain).code, 0)
        self.assertEqual(self.project.run("lsp", "stop", "fake").code, 0)
        self.assertEqual(self.project.run("lsp", "symbols", "a.fake", env=plain).code, 0)  # it is remembered

    def test_a_path_that_is_none(self):
        self.start()
        answer = self.answer("lsp.hover", file="a.fake", path="/x\0y")
        self.assertEqual((answer["error"]["code"], answer["error"]["data"]["param"]), (-32602, "path"))

    def test_diagnostics_that_are_not_sure(self):
        self.set_servers(fake=["--never-publish"])
        self.start()
        result = self.project.run("lsp", "diagnostics", "--wait", "100ms", "a.fake")
        self.assertEqual((result.code, result.err), (4, ""), result)
        self.assertRegex(result.out, r"\Aa\.fake: not known yet: .*--wait")
        result = self.project.run("lsp", "diagnostics", "--json", "--wait", "100ms", "a.fake")
        self.assertEqual((result.code, result.json()["fresh"]), (4, False), result)

    def test_request(self):
        self.start()
        raw = '{"z":1.50,"a":[1e2]}'
        self.assertEqual(self.project.run("lsp", "request", "--server", "fake", "fake/echo", raw).out, raw + "\n")
        self.assertEqual(self.project.run("lsp", "request", "fake/echo", "-", input=raw.encode()).out, raw + "\n")
        self.assert_refused(self.project.run("lsp", "request", "fake/echo", "{not json"), 1, "not JSON")
        self.assert_refused(self.project.run("lsp", "request", "no/such"), 1, "-32601")
        self.assert_refused(self.project.run("lsp", "request", "--server", "nobody", "x"), 1, "server", "fake")

    def test_list_and_stop(self):
        self.start()
        self.assertEqual(self.project.run("lsp", "list").out, "no language server has been needed yet\n")
        self.project.run("lsp", "hover", "a.fake")
        self.assertRegex(self.project.run("lsp", "list").out, r"(?m)^fake +ready +\d+ +1 ")
        self.assertEqual(self.project.run("lsp", "stop", "fake").out, "fake is stopped\n")
        self.assert_refused(self.project.run("lsp", "stop", "fake"), 1, "not running")
        self.assert_refused(self.project.run("lsp", "stop", "nobody"), 1, "server")

    def test_places_that_are_not_there(self):
        self.start()
        self.assert_refused(self.project.run("lsp", "hover", "a.fake:99:1"), 1, "line must be a line from 1 to 4")
        self.assert_refused(self.project.run("lsp", "hover", "a.fake:1:99"), 1, "column must be a column from 1 to 4")
        self.assert_refused(self.project.run("lsp", "hover", "a.fake:0"), 1, "line must be")
        self.assert_refused(self.project.run("lsp", "hover", "none.fake"), 1, "a file that can be read")
        self.assert_refused(self.project.run("lsp", "hover", "a.unknown"), 1, "no-server: ")

    def test_files_that_cannot_be_named(self):
        self.start()
        self.assert_refused(self.project.run("lsp", "hover", ""), 1, "'' names no file")
        folder = self.path("gone")
        os.mkdir(folder)

        def leave():
            os.chdir(folder)
            os.rmdir(folder)
        for words in (["hover", "a.fake"], ["check", "--", "true"]):
            os.makedirs(folder, exist_ok=True)
            with self.subTest(words):
                result = self.project.run("lsp", *words, "--project", self.project.root, preexec_fn=leave)
                self.assert_refused(result, 1, "working directory is gone")

    def test_a_server_that_fails(self):
        self.set_servers(fake=["--crash-at", "initialize", "--complain", "no licence"])
        self.start()
        self.assert_refused(self.project.run("lsp", "hover", "a.fake"), 1, "exited-before-initialize: .*no licence")

    def test_a_terminal_is_safe_from_texts(self):
        self.write("b.fake", "\x1b[31mred BAD TARGET\n")
        self.start()
        for words in (["definition", "b.fake:1:1"], ["hover", "b.fake:1:1"], ["diagnostics", "b.fake"]):
            with self.subTest(words):
                self.assertNotIn("\x1b", self.project.run("lsp", *words).out)

    def test_a_request_without_an_answer_in_time(self):
        self.start()
        self.project.run("lsp", "hover", "a.fake")  # so that the time is not spent on the server's start
        self.assert_refused(self.project.run("lsp", "request", "--server", "fake", "--timeout", "3s", "fake/never"),
                            4, "in time")
        eventually(lambda: any(message.get("method") == "$/cancelRequest" for message in self.tape("fake")),
                   what="the server is told")

    def test_no_answer_in_time(self):
        self.set_servers(fake=["--initialize-delay", "30"])
        self.start()
        self.assert_refused(self.project.run("lsp", "hover", "--timeout", "1s", "a.fake"), 4, "in time")
        eventually(lambda: self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["clients"] == 1)


if __name__ == "__main__":
    suite.main()
