#!/usr/bin/env python3
"""`duet-rpc token`: what it prints, and what it refuses.

Usage: token_commands.py --program PATH
"""

import os
import sys
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402

TOKEN = r"duet_[A-Za-z0-9_-]{43}"


class TokenCommands(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.start()

    def run_well(self, *words):
        result = self.project.run("token", *words)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result

    def made(self, *words):
        return self.run_well("new", *words, "--json").json()

    def assert_ends_in(self, made, time):
        end = datetime.fromisoformat(made["expiresAt"].replace("Z", "+00:00"))
        self.assertLess(abs(end - datetime.now(timezone.utc) - time), timedelta(minutes=2))

    def test_new_prints_the_token_and_nothing_else(self):
        self.assertRegex(self.run_well("new", "ci").out, f"^{TOKEN}\n$")

    def test_new_makes_one_for_ninety_days_that_may_do_everything(self):
        made = self.made("ci")
        self.assertEqual(set(made), {"token", "name", "role", "expiresAt"})
        self.assertEqual((made["name"], made["role"]), ("ci", "own"))
        self.assert_ends_in(made, timedelta(days=90))

    def test_new_takes_a_role_and_a_time(self):
        made = self.made("a", "--role", "observe", "--expires", "12h")
        self.assertEqual(made["role"], "observe")
        self.assert_ends_in(made, timedelta(hours=12))
        self.assertEqual(self.made("b", "--role", "OPERATE")["role"], "operate")
        self.assertNotIn("expiresAt", self.made("c", "--expires", "never"))

    def test_new_refuses_what_makes_no_sense(self):
        for words, text in ((["x", "--expires", "soon"], "--expires does not take 'soon'"),
                            (["x", "--expires", "0"], "--expires"),
                            (["x", "--expires", "400d"], "up to a year"),
                            (["a b"], "1 to 64 of"), (["x" * 65], "1 to 64 of")):
            with self.subTest(words):
                self.assert_refused(self.project.run("token", "new", *words), 1, text)
        for words in (["x", "--role", "root"], [], ["x", "y"]):
            with self.subTest(words):
                self.assertEqual(self.project.run("token", "new", *words).code, 1)
        self.run_well("new", "ci")
        self.assert_refused(self.project.run("token", "new", "ci"), 1, "a name that no token has")

    def test_list_is_a_table_without_tokens(self):
        self.assertEqual(self.run_well("list").out, "there are no tokens\n")
        token = self.made("ci", "--role", "observe")["token"]
        self.run_well("new", "ever", "--expires", "never")
        lines = self.run_well("list").out.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "ROLE", "MADE", "USED", "ENDS"])
        self.assertRegex(lines[1], r"^ci +observe +(just now|\d+s ago) +never +in 89d|^ci +observe .* never +in 90d")
        self.assertRegex(lines[2], r"^ever +own .* never +never$")
        self.assertNotIn(token, "\n".join(lines))

    def test_list_as_json_is_what_the_daemon_says(self):
        self.run_well("new", "ci")
        listed = self.run_well("list", "--json").json()
        self.assertEqual([token["name"] for token in listed], ["ci"])
        self.assertEqual(listed, self.project.call("token.list")["result"])

    def test_revoke_ends_those_that_are_named(self):
        for name in ("a", "b", "c"):
            self.run_well("new", name)
        self.assertEqual(self.run_well("revoke", "a", "b").out, "a has ended\nb has ended\n")
        result = self.project.run("token", "revoke", "a", "c")
        self.assertEqual((result.code, result.out), (1, "c has ended\n"), result)
        self.assertIn("there is no token 'a'", result.err)
        self.assertEqual(self.run_well("list", "--json").json(), [])

    def test_revoke_all_ends_all(self):
        for name in ("a", "b"):
            self.run_well("new", name)
        self.assertEqual(self.run_well("revoke", "--all").out, "2 tokens have ended\n")
        self.assertEqual(self.run_well("revoke", "--all").out, "there were no tokens\n")
        self.run_well("new", "a")
        self.assertEqual(self.run_well("revoke", "--all", "--json").json(), {"revoked": ["a"]})

    def test_revoke_wants_to_know_which(self):
        self.run_well("new", "a")
        for words in ([], ["a", "--all"]):
            self.assert_refused(self.project.run("token", "revoke", *words), 1, "names of tokens, or --all")
        self.assertEqual(len(self.run_well("list", "--json").json()), 1)

    def test_names_are_offered_to_shells(self):
        self.run_well("new", "ci", "--role", "observe")
        words = ("candidates", "token", "--", "duet-rpc", "token", "revoke", "")
        self.assertEqual(eventually(lambda: self.project.run(*words).out, what="a daemon that answers soon"), "ci\tobserve\n")
        for shell in ("bash", "zsh", "fish"):
            script = self.project.run("completion", shell).out
            self.assertRegex(script, r"candidates token|asked=token|_ask token", shell)

    def test_without_a_daemon_there_is_nobody_to_ask(self):
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        for words in (["new", "x"], ["list"], ["revoke", "x"], ["revoke", "--all"]):
            self.assert_refused(self.project.run("token", *words), 3, "no daemon is running")

    def test_help_and_manual_page_know_them(self):
        for words, text in ((["token"], "revoke"), (["token", "new"], "--expires"), (["token", "revoke"], "--all")):
            self.assertIn(text, self.project.run(*words, "--help").out)
        self.assertIn("token revoke", self.project.run("print", "manual").out.replace("\\-", "-"))


if __name__ == "__main__":
    suite.main()
