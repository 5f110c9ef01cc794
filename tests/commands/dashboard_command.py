#!/usr/bin/env python3
"""`duet-rpc dashboard`: the URL it prints, the browser it opens, and what it refuses.

Usage: dashboard_command.py --program PATH
"""

import json
import os
import signal
import sys
from datetime import datetime, timedelta, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "runner"), os.path.join(HERE, "..", "doors")]

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from door_client import DoorTestCase  # noqa: E402
from terminal import Terminal  # noqa: E402

LOGIN_URL = r"http://127\.0\.0\.1:\d+/#login=[A-Za-z0-9_-]{22}"


class Dashboard(DoorTestCase):
    def run_well(self, *words):
        result = self.project.run("dashboard", *words)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result

    def log_in(self, url):
        self.url, _, code = url.strip().partition("/#login=")
        answer = self.ask("POST", "/login", body=json.dumps({"code": code}))
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def fake_browser(self):
        """A program that adds its number and its arguments to a file, and stays; returns both paths."""
        program, seen = (os.path.join(self.project.place.name, name) for name in ("browser", "seen"))
        with open(program, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\necho "$$" "$@" >> {seen}\nexec sleep 1000\n')
        os.chmod(program, 0o755)
        return program, seen

    def opened(self, seen):
        """What the browsers were started with, once there is one; they end here."""
        def lines():
            if not os.path.exists(seen):
                return []
            with open(seen, encoding="ascii") as file:
                return [line.split() for line in file if line.endswith("\n")]

        found = eventually(lines, what="a browser")
        for pid, *_ in found:
            os.kill(int(pid), signal.SIGKILL)
        return [words for _, *words in found]

    def run_on_terminal(self, *words, env):
        with Terminal() as terminal:
            with self.project.popen("dashboard", *words, env=env, stdout=terminal.slave) as process:
                self.assertEqual(process.wait(PATIENCE), 0)
            os.write(terminal.slave, b"[end]")
            terminal.screen.wait_until(lambda data: b"[end]" in data, PATIENCE)
            return terminal.screen.text().split("[end]")[0].strip()

    def test_of_another_machine_it_is_the_page_at_its_tls_door(self):
        far = ("--connect", "tls://build.example:7444")
        self.assertEqual(self.run_well(*far).out, "https://build.example:7444/\n")
        self.assertEqual(self.run_well(*far, "--json").json(), {"url": "https://build.example:7444/"})

    def test_it_opens_the_door_and_prints_the_url_alone(self):
        self.project.start()
        self.assertIsNone(self.http_url())
        result = self.run_well()
        self.assertRegex(result.out, f"^{LOGIN_URL}\n$")
        self.assertTrue(result.out.startswith(self.http_url() + "/"))
        logged = self.log_in(result.out)
        self.assertEqual((logged["name"], logged["role"]), ("browser-1", "own"))

    def test_each_time_it_is_another_code_at_the_same_address(self):
        self.project.start()
        first, second = self.run_well().out, self.run_well().out
        self.assertNotEqual(first, second)
        self.assertEqual(first.split("#")[0], second.split("#")[0])

    def test_read_only_may_only_look(self):
        self.project.start()
        logged = self.log_in(self.run_well("--read-only").out)
        self.assertEqual(logged["role"], "observe")
        refused = self.rpc(logged["token"], '{"jsonrpc":"2.0","id":1,"method":"queue.pause"}').json()
        self.assertEqual(refused["error"]["code"], -32005)

    def test_json_says_until_when(self):
        self.project.start()
        told = self.run_well("--json").json()
        self.assertEqual(set(told), {"url", "expiresAt"})
        self.assertRegex(told["url"], f"^{LOGIN_URL}$")
        left = datetime.fromisoformat(told["expiresAt"].replace("Z", "+00:00")) - datetime.now(timezone.utc)
        self.assertTrue(timedelta(0) < left <= timedelta(minutes=5), left)

    def test_a_closed_door_is_refused_with_what_to_set(self):
        self.project.write_user_settings('[http]\nlisten = "off"\n')
        self.project.start()
        self.assert_refused(self.project.run("dashboard"), 1, r"\[http\] listen")
        self.assertIsNone(self.http_url())

    def test_without_a_daemon_there_is_none(self):
        self.assert_refused(self.project.run("dashboard"), 3, "no daemon is running")

    def test_it_starts_one_when_asked(self):
        result = self.project.run("dashboard", "--start")
        self.assertEqual(result.code, 0, result)
        self.project.pids.add(self.project.pid())
        self.assertRegex(result.out, f"^{LOGIN_URL}\n$")

    def test_a_browser_is_opened_from_a_terminal_with_a_display_and_not_waited_for(self):
        self.project.start()
        program, seen = self.fake_browser()
        url = self.run_on_terminal(env={"BROWSER": program, "DISPLAY": ":7"})
        self.assertRegex(url, f"^{LOGIN_URL}$")
        self.assertEqual(self.opened(seen), [[url]])

    def test_no_browser_is_opened_otherwise(self):
        self.project.start()
        program, seen = self.fake_browser()
        display = {"BROWSER": program, "DISPLAY": ":7", "WAYLAND_DISPLAY": None}
        self.assertRegex(self.run_on_terminal("--no-open", env=display), f"^{LOGIN_URL}$")
        self.assertRegex(self.run_on_terminal(env={**display, "DISPLAY": None}), f"^{LOGIN_URL}$")
        self.assertEqual(self.project.run("dashboard", env=display).code, 0)
        # What is opened last has been opened after all others would have been.
        url = self.run_on_terminal(env={**display, "BROWSER": f"{program} last"})
        self.assertEqual(self.opened(seen), [["last", url]])

    def test_no_code_is_logged_or_traced(self):
        self.project.start()
        result = self.project.run("dashboard", "--trace")
        code = result.out.strip().split("#login=")[1]
        self.assertNotIn(code, result.err)
        self.assertNotIn(code, self.project.log())

    def test_help_completion_and_manual_page_know_it(self):
        self.assertIn("--read-only", self.project.run("dashboard", "--help").out)
        self.assertIn("dashboard", self.project.run("completion", "bash").out)
        self.assertIn("dashboard", self.project.run("print", "manual").out)


if __name__ == "__main__":
    suite.main()
