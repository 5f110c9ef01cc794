#!/usr/bin/env python3
"""Descriptors and memory that run out: neither tasks nor clients make the daemon unreachable, and it says what is short."""

import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from project import ProjectTestCase, open_descriptors  # noqa: E402

FEW = 64


def limited(kind, soft, hard=None):
    return lambda: resource.setrlimit(kind, (soft, hard or soft))


class Few(ProjectTestCase):
    def start_with_few(self):
        return self.project.start(preexec_fn=limited(resource.RLIMIT_NOFILE, FEW))

    def settings(self, text):
        self.project.write_settings(text)

    def problems(self, subsystem):
        status = self.project.run("call", "daemon.status")
        self.assertEqual(status.code, 0, status)
        return [each["message"] for each in status.json()["problems"] if each["subsystem"] == subsystem]

    def test_a_hundred_idle_clients_leave_it_reachable(self):
        self.start_with_few()
        idle = []
        for _ in range(100):
            idle.append(self.project.connect())
            self.addCleanup(idle[-1].close)
        result = self.project.run("daemon", "status")
        self.assertEqual(result.code, 0, result)
        self.assertIn("degraded", result.out)
        self.assertRegex(" ".join(self.problems("clients")), r"\d+ clients are as many as 64 descriptors are enough for")
        self.assert_logged("there are as many clients as there is room for")
        self.assertEqual(self.project.log().count("there are as many clients as there is room for"), 1)
        self.assertTrue(idle[0].call("ping")["result"]["pong"], "who came first stays")
        told = [message for each in idle[20:40] for message in each.ends()]
        self.assertEqual({(each["id"], each["error"]["message"]) for each in told}, {(None, "Too many clients")})
        for each in idle:
            each.close()
        eventually(lambda: self.problems("clients") == [], what="there is room again")

    def test_forty_tasks_leave_it_reachable(self):
        self.settings('default_agent = "shell"\nmax_running = 40\n')
        pid = self.start_with_few()
        for _ in range(40):
            self.assertEqual(self.project.run("task", "submit", "sleep 60").code, 0)
        result = self.project.run("daemon", "status")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(" ".join(self.problems("supervisor")), "max_running is 40, but 64 descriptors")
        self.assertLess(open_descriptors(pid), FEW - 8)
        self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)

    def test_tasks_get_the_limit_that_was_there(self):
        self.settings('default_agent = "shell"\n')
        pid = self.project.start(preexec_fn=limited(resource.RLIMIT_NOFILE, 200, 2000))
        self.assertEqual(resource.prlimit(pid, resource.RLIMIT_NOFILE), (2000, 2000))
        result = self.project.run("task", "submit", "--follow", "ulimit -Sn; ulimit -Hn")
        self.assertEqual(result.out.split(), ["200", "2000"], result)


class TooFew(ProjectTestCase):
    def test_too_few_descriptors_are_named(self):
        result = self.project.run("daemon", "start", preexec_fn=limited(resource.RLIMIT_NOFILE, 20))
        self.assert_refused(result, 1, r"too few descriptors: this process may have 20, and a daemon needs 64")
        self.assertNotIn("move", result.err)

    def test_too_little_memory_is_named(self):
        result = self.project.run("daemon", "start", preexec_fn=limited(resource.RLIMIT_AS, 20_000 * 1024))
        self.assert_refused(result, 1, "too little memory: this process may have 20000 KiB, and a daemon needs 65536")

    def test_the_least_memory_is_enough(self):
        self.project.start(preexec_fn=limited(resource.RLIMIT_AS, 65_536 * 1024))
        self.assert_answers()
        self.assertEqual(self.project.run("daemon", "stop").code, 0)


class SmallFiles(ProjectTestCase):
    """Files that may not grow beyond a size are as a full disk, and no reason to die."""

    def test_a_few_megabytes_are_enough(self):
        pid = self.project.start(preexec_fn=limited(resource.RLIMIT_FSIZE, 4 << 20))
        result = self.project.run("task", "submit", "--agent", "shell", "--follow", "echo hi; ulimit -f")
        self.assertEqual((result.code, result.out), (0, "hi\n8192\n"), result)
        self.assertEqual(self.project.pid(), pid)

    def test_too_few_bytes_are_named(self):
        result = self.project.run("daemon", "start", preexec_fn=limited(resource.RLIMIT_FSIZE, 8 << 10))
        self.assertNotEqual(result.code, 0)
        self.assertNotIn("ended at once", result.err)
        self.assertIn("a store cannot be made", result.err)


if __name__ == "__main__":
    suite.main()
