#!/usr/bin/env python3
"""Settings files as the program reads them: which ones count, which are refused, and what a bad word gets."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from project import ProjectTestCase  # noqa: E402


class SettingsTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.own = os.path.join(self.project.root, ".duet-rpc.toml")
        self.user = os.path.join(self.project.home, ".config", "duet-rpc", "config.toml")

    def write(self, path, text, mode=0o600):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def max_running(self, **options):
        self.project.start(**options)
        status = self.project.call("daemon.status")["result"]
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        return status["subsystems"]["supervisor"]["maxRunning"]

    def assert_start_refused(self, *texts, **options):
        self.assert_refused(self.project.run("daemon", "start", **options), 1, *texts)


class Precedence(SettingsTestCase):
    def test_the_default_the_user_the_project_and_another_file(self):
        self.assertEqual(self.max_running(), 3)
        self.write(self.user, "max_running = 4")
        self.assertEqual(self.max_running(), 4)
        self.write(self.own, "max_running = 5")
        self.assertEqual(self.max_running(), 5)
        other = os.path.join(self.project.root, "other.toml")
        self.write(other, "max_running = 6")
        self.assertEqual(self.max_running(env={"DUET_RPC_CONFIG": other}), 6)
        self.assertEqual(self.max_running(env={"DUET_RPC_CONFIG": "other.toml"}), 6)
        self.assertEqual(self.max_running(env={"DUET_RPC_CONFIG": ""}), 5)

    def test_the_users_file_is_under_home_unless_a_variable_says_otherwise(self):
        self.write(self.user, "max_running = 7")
        self.assertEqual(self.max_running(env={"XDG_CONFIG_HOME": None}), 7)
        self.assertEqual(self.max_running(env={"XDG_CONFIG_HOME": os.path.join(self.project.root, "nothing")}), 3)

    def test_another_file_must_be_there(self):
        self.assert_start_refused("missing.toml", "DUET_RPC_CONFIG", env={"DUET_RPC_CONFIG": "missing.toml"})

    def test_rpc_reads_none(self):
        self.write(self.own, "nonsense")
        self.assertEqual(self.project.run("rpc").code, 0)


class BadWords(SettingsTestCase):
    def test_are_told_with_file_line_and_what_would_be_right(self):
        for text, line, told in (
                ("\nmax_runing = 2", 2, "max_runing.*max_running"),
                ("max_running = 0", 1, "from 1 to 1000"),
                ("max_running = 'many'", 1, "'many'"),
                ("default_agent = 'nobody'", 1, "nobody.*claude"),
                ("[[rules]]\nid = 'r'\ntrigger = { source = 'mail' }\naction = { type = 'notify' }", 3, "watch, schedule"),
                ("[[rules]]\nid = 'r'\ntrigger = { cron = '61 * * * *' }\naction = { type = 'notify' }", 3, "61"),
                ("[[rules]]\nid = 'r'\ntrigger = { source = 'watch' }\naction = { type = 'webhook' }", 4, "agent, notify or run"),
                ("[[rules]]\nid = 'r'\ntrigger = { source = 'watch' }\n"
                 "action = { type = 'agent', agent = 'shell', prompt = 'cat {{payload.path}}' }", 4, r"\$DUET_PATH"),
                ("[lsp.own]\nfiles = ['*.own']", 1, "lsp.own.command"),
                ("x = [", 1, "not TOML")):
            with self.subTest(text):
                self.write(self.own, text)
                self.assert_start_refused(rf"\.duet-rpc\.toml:{line}:\d+: ", told)

    def test_in_the_users_file_are_told_with_its_name(self):
        self.write(self.user, "nonsense = 1")
        self.assert_start_refused(r"config\.toml:1:1: unknown name 'nonsense'")


class RefusedFiles(SettingsTestCase):
    def test_that_others_may_write(self):
        for mode in (0o620, 0o602, 0o666):
            self.write(self.own, "", mode)
            self.assert_start_refused(r"\.duet-rpc\.toml", "others may write", "chmod go-w")

    @suite.unittest.skipUnless(os.geteuid() == 0, "only root can give a file away")
    def test_of_another_owner(self):
        self.write(self.own, "")
        os.chown(self.own, 4242, 4242)
        self.assert_start_refused(r"\.duet-rpc\.toml", "another user")

    def test_that_are_folders_or_pipes(self):
        os.mkdir(self.own)
        self.assert_start_refused("not a plain file")
        os.rmdir(self.own)
        os.mkfifo(self.own, 0o600)
        self.assert_start_refused("not a plain file")


if __name__ == "__main__":
    suite.main()
