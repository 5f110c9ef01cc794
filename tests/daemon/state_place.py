#!/usr/bin/env python3
"""The daemon's state outside of the project: every command finds it, and cleaning the project leaves it alone."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from project import ProjectTestCase  # noqa: E402


class StateOfTheUser(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.user = os.path.join(self.project.home, ".config", "duet-rpc", "config.toml")
        os.makedirs(os.path.dirname(self.user))
        self.settings('[daemon]\nstate = "user"\n')
        self.projects = os.path.join(self.project.home, ".local", "state", "duet-rpc", "projects")
        self.addCleanup(self.project.run, "daemon", "stop", "--force")

    def settings(self, text, path=None):
        with open(path or self.user, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o600)

    def start(self):
        pid = self.project.start()
        self.state = os.path.join(self.projects, os.listdir(self.projects)[0])
        return pid

    def submit(self, prompt):
        result = self.project.run("task", "submit", "--agent", "shell", prompt)
        self.assertEqual(result.code, 0, result)
        return result.out.strip()

    def test_is_found_by_every_command(self):
        pid = self.start()
        self.assertEqual(os.listdir(self.project.root), [".git"])
        with open(os.path.join(self.state, "project"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.project.root + "\n")
        below = os.path.join(self.project.root, "below")
        os.mkdir(below)
        status = self.project.run("daemon", "status", "--json", cwd=below)
        self.assertEqual(status.json()["pid"], pid)
        self.assertEqual(self.project.run("task", "wait", self.submit("exit 7")).code, 7)
        self.assertIn("listening", self.project.run("daemon", "logs").out)
        doctor = self.project.run("doctor")
        self.assertIn(f"running, pid {pid}", doctor.out)
        self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid}")
        restarted = self.project.run("daemon", "restart")
        self.assertEqual(restarted.code, 0, restarted)
        self.assertEqual(self.project.run("task", "list", "--json").json()[0]["exitCode"], 7)
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assertEqual(self.project.run("doctor").code, 0)

    @suite.unittest.skipUnless(shutil.which("git"), "git is needed")
    def test_outlives_git_clean(self):
        shutil.rmtree(os.path.join(self.project.root, ".git"))
        subprocess.run(["git", "init", "-q", self.project.root], check=True)
        pid = self.start()
        id = self.submit("echo kept")
        self.assertEqual(self.project.run("task", "wait", id).code, 0)
        subprocess.run(["git", "clean", "-fdxq"], cwd=self.project.root, check=True)
        self.assertEqual(self.project.run("task", "output", id).out, "kept\n")
        self.assertEqual(self.project.run("daemon", "status", "--json").json()["pid"], pid)

    def test_is_found_with_other_settings_as_long_as_its_daemon_runs(self):
        pid = self.start()
        self.settings("")
        self.assertEqual(self.project.run("daemon", "status", "--json").json()["pid"], pid)
        self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {pid}, with its state in")
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assertEqual(self.project.run("daemon", "status").code, 3)

    def test_notices_when_it_is_removed(self):
        pid = self.start()
        shutil.rmtree(self.state)
        self.project.wait_gone(pid)

    def test_is_not_for_the_project_to_say(self):
        self.settings("")
        self.settings('[daemon]\nstate = "user"\n', os.path.join(self.project.root, ".duet-rpc.toml"))
        self.project.needs_no_trust = False
        self.project.start()
        self.assertFalse(os.path.exists(self.projects))
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assert_refused(self.project.run("trust", "--yes"), 1, "for your own settings")


if __name__ == "__main__":
    suite.main()
