#!/usr/bin/env python3
"""Tokens and roles as far as the Unix socket shows them: what each method needs, what is kept of a token, and what
becomes of it when the daemon is killed or the file is damaged.

Usage: tokens.py --program PATH
"""

import hashlib
import os
import signal
import stat
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import Failure, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402

OBSERVE = """ping version listMethods describeMethods rpc.discover session.info daemon.status daemon.metrics agent.list
task.list task.get task.stats task.wait task.output automation.status lsp.list events.subscribe""".split()
OPERATE = """task.cancel task.restart task.hold task.release queue.pause queue.resume automation.approve automation.deny
automation.enable automation.disable""".split()
UNIX = "login.create token.create token.list token.revoke http.open".split()
LATER = {"daemon.metrics", "http.open"}  # may be missing

TOKEN = r"duet_[A-Za-z0-9_-]{43}"


class TokenTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.project.state, "tokens")

    def ask(self, method, /, **params):
        answer = self.project.call(method, params=params)
        self.assertIn("result", answer, answer)
        return answer["result"]

    def refusal(self, method, /, **params):
        return self.project.call(method, params=params)["error"]

    def names(self):
        return [token["name"] for token in self.ask("token.list")]

    def content(self):
        with open(self.file, encoding="utf-8") as file:
            return file.read()

    def problem(self):
        problems = self.ask("daemon.status")["problems"]
        return next((each["message"] for each in problems if each["subsystem"] == "tokens"), "")

    def kill_and_start(self, pid):
        self.project.kill(pid, signal.SIGKILL)
        return self.project.start()


class Roles(TokenTestCase):
    def test_are_those_of_the_table_and_all_else_needs_own(self):
        self.project.start()
        needs = {method["name"]: method["x-needs"] for method in self.ask("rpc.discover")["methods"]}
        wanted = {**dict.fromkeys(OBSERVE, "observe"), **dict.fromkeys(OPERATE, "operate"), **dict.fromkeys(UNIX, "unix")}
        self.assertEqual({name for name in wanted if name not in needs} - LATER, set())
        for name, need in needs.items():
            with self.subTest(name):
                self.assertEqual(need, wanted.get(name, "own"))

    def test_concern_nobody_on_stdio(self):
        with suite.rpc() as daemon:
            for method in daemon.call("rpc.discover", 0)["result"]["methods"]:
                self.assertNotIn("x-needs", method)

    def test_are_all_those_of_the_owner_on_the_unix_socket(self):
        self.project.start()
        info = self.ask("session.info")
        self.assertEqual((info["door"], info["role"]), ("unix", "own"))
        self.assertEqual(info["project"], os.path.realpath(self.project.root))
        self.assertEqual(info["version"], self.ask("version")["version"])
        self.assertNotIn("expiresAt", info)
        self.assertTrue(info["assets"])

    def test_leave_no_line_in_the_log_for_the_unix_socket(self):
        self.project.start()
        self.ask("queue.pause")
        self.ask("queue.resume")
        self.assertNotIn("called", self.project.log())


class Tokens(TokenTestCase):
    def test_are_kept_as_checksums_in_a_file_for_their_owner(self):
        self.project.start(preexec_fn=lambda: os.umask(0))
        self.assertFalse(os.path.exists(self.file), "without tokens there is none")
        made = self.ask("token.create", name="ci", role="observe", expiresSeconds=60)
        self.assertRegex(made["token"], f"^{TOKEN}$")
        self.assertEqual((made["name"], made["role"]), ("ci", "observe"))
        self.assertEqual(oct(stat.S_IMODE(os.stat(self.file).st_mode)), oct(0o600))
        self.assertNotIn(made["token"][5:], self.content())
        self.assertIn(hashlib.sha256(made["token"].encode()).hexdigest(), self.content())

    def test_are_never_wider_than_0600_while_they_change(self):
        self.project.start(preexec_fn=lambda: os.umask(0))
        self.ask("token.create", name="first")
        widest, over = [0], threading.Event()

        def look():
            while not over.is_set():
                for name in os.listdir(self.project.state):
                    if name.startswith("tokens"):
                        try:
                            widest[0] |= stat.S_IMODE(os.stat(os.path.join(self.project.state, name)).st_mode)
                        except FileNotFoundError:
                            pass

        thread = threading.Thread(target=look)
        thread.start()
        try:
            for number in range(30):
                self.ask("token.create", name=f"t{number}")
        finally:
            over.set()
            thread.join()
        self.assertEqual(oct(widest[0]), oct(0o600))

    def test_that_were_told_outlive_a_kill(self):
        pid = self.project.start()
        known = {}
        for number in range(5):
            made = self.ask("token.create", name=f"t{number}")
            known[made["name"]] = made["token"]
            pid = self.kill_and_start(pid)
            self.assertEqual(self.names(), list(known))
        for token in known.values():
            self.assertIn(hashlib.sha256(token.encode()).hexdigest(), self.content())
        self.ask("token.revoke", name="t2")
        self.kill_and_start(pid)
        self.assertEqual(self.names(), ["t0", "t1", "t3", "t4"])
        self.assertEqual(self.problem(), "")

    def test_stay_whole_whenever_the_daemon_is_killed(self):
        """Kills while tokens are being made: each that was told is there, and the file is never damaged."""
        pid = self.project.start()
        told = []
        for round in range(8):
            with self.project.connect() as connection:
                timer = threading.Timer(0.02 * (round + 1), os.kill, (pid, signal.SIGKILL))
                timer.start()
                try:
                    for number in range(60):
                        answer = connection.call("token.create", number, params={"name": f"r{round}-{number}"})
                        told.append(answer["result"]["name"])
                        if number % 2:
                            connection.call("token.revoke", number, params={"name": f"r{round}-{number}"})
                            told.remove(f"r{round}-{number}")
                except (Failure, OSError):
                    pass
                timer.join()
            self.project.wait_gone(pid)
            pid = self.project.start()
            self.assertEqual(self.problem(), "")
            there = self.names()
            # Of what was under way when it was killed, nobody knows.
            self.assertEqual([name for name in told if name not in there][:-1], [])
            self.ask("token.revoke")
            told = []

    def test_restart_keeps_them(self):
        self.project.start()
        self.ask("token.create", name="ci")
        self.assertEqual(self.project.run("daemon", "restart").code, 0)
        self.assertEqual(self.names(), ["ci"])

    def test_expire(self):
        self.project.start()
        self.ask("token.create", name="long", expiresSeconds=3600)
        self.ask("token.create", name="ever", expiresSeconds=0)
        long, ever = self.ask("token.list")
        self.assertEqual((long["name"], ever["name"]), ("long", "ever"))
        self.assertIn("expiresAt", long)
        self.assertNotIn("expiresAt", ever)
        self.assertIn("expiresAt", self.ask("token.create", name="short", expiresSeconds=0.2))
        eventually(lambda: self.names() == ["long", "ever"], what="the end of the short one")

    def test_names_are_of_few_characters_and_there_once(self):
        self.project.start()
        self.ask("token.create", name="A.b_c-1")
        for name in ("", "a b", "ä", "x" * 65, "a/b", "A.b_c-1"):
            with self.subTest(name):
                error = self.refusal("token.create", name=name)
                self.assertEqual((error["code"], error["data"]["param"]), (-32602, "name"))
        error = self.refusal("token.create", name="x", role="root")
        self.assertEqual(error["data"]["accepted"], ["observe", "operate", "own"])


class ADamagedFile(TokenTestCase):
    def damage(self, change):
        pid = self.project.start()
        self.ask("token.create", name="ci")
        self.project.kill(pid)
        change()
        self.project.start()

    def assert_nobody_gets_in(self):
        self.assertIn(".aiwg/daemon/tokens is not used", self.problem())
        self.assertEqual(self.ask("daemon.status")["health"], "degraded")
        for method, params in (("token.list", {}), ("token.create", {"name": "x"}), ("token.revoke", {"name": "ci"})):
            error = self.refusal(method, **params)
            self.assertEqual((error["code"], error["data"]["subsystem"]), (-32003, "tokens"))
        self.assert_refused(self.project.run("token", "list"), 1, "is not used", "token revoke --all")

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)

    def test_lets_nobody_in_and_is_told(self):
        self.damage(lambda: self.write(self.content()[:-20]))
        before = self.content()
        self.assert_nobody_gets_in()
        self.assertEqual(self.content(), before)
        self.assertIn("is not used", self.project.run("daemon", "status").out)

    def test_with_another_role_written_into_it_is_damaged(self):
        self.damage(lambda: self.write(self.content().replace('"role":"own"', '"role":"operate"')))
        self.assert_nobody_gets_in()

    def test_that_others_may_write_to_is_not_used(self):
        self.damage(lambda: os.chmod(self.file, 0o666))
        self.assert_nobody_gets_in()

    def test_revoke_all_begins_anew(self):
        self.damage(lambda: self.write("nonsense"))
        result = self.project.run("token", "revoke", "--all")
        self.assertEqual((result.code, result.out), (0, "there were no tokens\n"), result)
        self.assertEqual(self.problem(), "")
        self.assertEqual(self.ask("daemon.status")["health"], "healthy")
        self.ask("token.create", name="ci")
        self.assertEqual(oct(stat.S_IMODE(os.stat(self.file).st_mode)), oct(0o600))


class LoginCodes(TokenTestCase):
    def test_are_made_for_browsers(self):
        self.project.start()
        made = self.ask("login.create", role="observe")
        self.assertRegex(made["code"], r"^[A-Za-z0-9_-]{22}$")
        self.assertRegex(made["expiresAt"], r"^\d{4}-.*Z$")
        self.assertNotEqual(made["code"], self.ask("login.create")["code"])

    def test_and_tokens_are_in_no_log_and_no_trace(self):
        self.project.start("--trace", "--log-level", "debug")
        token = self.ask("token.create", name="ci")["token"]
        code = self.ask("login.create")["code"]
        shown = self.project.run("token", "new", "other", "--trace")
        self.refusal("token.revoke", name=token)
        self.assertRegex(shown.out, f"^{TOKEN}\n$")
        self.assertIn("token.create", shown.err)
        for secret in (token, shown.out.strip()):
            for text in (self.project.log(), shown.err):
                self.assertNotIn(secret[5:25], text)
        self.assertNotIn(code, self.project.log())


class WhoAsked(TokenTestCase):
    def test_is_kept_with_a_task(self):
        self.project.start()
        first = self.ask("task.submit", prompt="true", agent="shell", key="k")["taskId"]
        self.assertEqual(self.ask("task.get", taskId=first)["metadata"]["by"], "unix")
        again = self.ask("task.restart", taskId=first)["taskId"]
        self.assertEqual(self.ask("task.get", taskId=again)["metadata"]["by"], "unix")
        self.assertEqual(self.ask("task.submit", prompt="true", agent="shell", key="k")["taskId"], first)

    def test_may_be_no_task_where_tokens_are_made(self):
        self.project.start()
        for words in (["token", "new", "mine"], ["call", "login.create"]):
            quoted = " ".join([f"'{self.project.program}'", *words, "--project", f"'{self.project.root}'"])
            id = self.ask("task.submit", prompt=quoted, agent="shell")["taskId"]
            record = self.ask("task.wait", taskId=id, timeoutSeconds=30)
            self.assertEqual(record["exitCode"], 1, record)
            self.assertIn("for people to decide", self.ask("task.output", taskId=id)["data"])
        self.assertEqual(self.names(), [])


if __name__ == "__main__":
    suite.main()
