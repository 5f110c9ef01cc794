#!/usr/bin/env python3
"""Settings count when they are saved; faulty ones are told, and the old ones stay."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402


class SavedSettings(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.user = os.path.join(self.project.home, ".config", "duet-rpc", "config.toml")
        self.addCleanup(self.project.run, "daemon", "stop", "--force")
        self.pid = self.project.start()

    def save(self, text, path=None):
        """As an editor does: beside, and then in its place."""
        path = path or self.user
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + "~", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o600)
        os.rename(file.name, path)

    def status(self):
        return self.project.call("daemon.status")["result"]

    def max_running(self):
        return self.status()["subsystems"]["supervisor"]["maxRunning"]

    def await_max_running(self, number):
        eventually(lambda: self.max_running() == number, what=f"max_running {number}")

    def problem(self):
        return next((each["message"] for each in self.status()["problems"] if each["subsystem"] == "settings"), "")

    def test_count_by_themselves(self):
        self.save("max_running = 4")  # in a folder that was not there
        self.await_max_running(4)
        self.save("max_running = 5")
        self.await_max_running(5)
        with open(self.user, "w", encoding="utf-8") as file:
            file.write("max_running = 6")
        self.await_max_running(6)
        os.unlink(self.user)
        self.await_max_running(3)

    def test_where_the_queue_is_needs_a_restart_and_its_password_is_shown_nowhere(self):
        self.save('max_running = 4\nstore = "postgresql://duet:c4nary@db/work"\n[cluster]\nproject = "site"\n')
        self.await_max_running(4)  # all else counts at once
        said = self.project.run("daemon", "reload")
        self.assertEqual(said.code, 0, said)
        self.assertIn("after a restart only: store", said.out + said.err)
        status = self.project.run("daemon", "status", "--json")
        self.assertIn("restart", [each["subsystem"] for each in status.json()["problems"]])
        self.assert_logged("settings need a restart")
        self.assertNotIn("c4nary", said.out + said.err + status.out + self.project.log())
        self.save("max_running = 5")
        self.await_max_running(5)
        self.assertEqual([each for each in self.status()["problems"] if each["subsystem"] == "restart"], [])

    def test_of_the_project_count_as_far_as_they_need_no_trust(self):
        self.save("max_running = 8", os.path.join(self.project.root, ".duet-rpc.toml"))
        self.await_max_running(8)

    def test_count_where_a_link_leads(self):
        real = os.path.join(self.project.home, "dotfiles", "duet.toml")
        self.save("max_running = 4", real)
        os.makedirs(os.path.dirname(self.user), exist_ok=True)
        os.symlink(real, self.user)
        self.await_max_running(4)
        self.save("max_running = 5", real)
        self.await_max_running(5)

    def test_that_are_faulty_leave_the_old_ones_and_are_told(self):
        self.save("max_running = 4")
        self.await_max_running(4)
        self.save("max_running = 0")
        eventually(self.problem, what="the problem")
        self.assertIn("config.toml:1:15", self.problem())
        self.assertEqual(self.max_running(), 4)
        told = self.project.run("task", "stats")
        self.assertEqual(told.code, 0)
        self.assertRegex(told.err, r"goes on with its old settings.*config\.toml:1:15")
        self.assert_refused(self.project.run("daemon", "reload"), 1, r"config\.toml:1:15")
        self.save("max_running = 5")
        self.await_max_running(5)
        eventually(lambda: not self.problem(), what="the end of the problem")
        self.assertEqual(self.project.run("task", "stats").err, "")

    def test_tell_what_changed(self):
        with self.project.connect() as connection:
            self.save('max_running = 4\n[agents.a]\ncommand = ["a"]\n')
            while (event := connection.next_message())["method"] != "event.settingsChanged":
                pass
            self.assertEqual(event["params"]["added"], ["agents.a", "max_running"])
            self.save('max_running = 5\n[agents.b]\ncommand = ["b"]\n')
            event = connection.next_message()
            self.assertEqual({name: event["params"][name] for name in ("added", "removed", "changed")},
                             {"added": ["agents.b"], "removed": ["agents.a"], "changed": ["max_running"]})

    def test_can_be_read_by_hand(self):
        reload = self.project.run("daemon", "reload")
        self.assertEqual((reload.code, reload.out), (0, "no setting has changed\n"))
        self.project.kill(self.pid, signal.SIGSTOP)  # so that it has not noticed before it is asked
        self.save('max_running = 4\n[agents.a]\ncommand = ["a"]\n')
        with self.project.popen("daemon", "reload", "--json") as process:
            self.project.kill(self.pid, signal.SIGCONT)
            self.assertEqual(process.wait(PATIENCE), 0)
        self.await_max_running(4)
        self.assertEqual(self.project.run("daemon", "reload", "--json").json(), {"added": [], "removed": [], "changed": []})


if __name__ == "__main__":
    suite.main()
