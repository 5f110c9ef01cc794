#!/usr/bin/env python3
"""What language servers leave behind: no process, no zombie, no descriptor; also when the daemon is killed.

    nothing_left.py --program PATH --rounds 100    so many starts and stops
"""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import BridgeTestCase, children, eventually, open_descriptors, suite  # noqa: E402

ROUNDS = 100
STUBBORN = ("--grandchild", "--ignore", "TERM", "--ignore", "shutdown", "--ignore", "exit")


class NothingLeft(BridgeTestCase):
    def begin(self, *options):
        self.set_servers(fake=options, other=[])
        self.daemon = self.start()
        self.text = self.write("a.fake", "one\n")

    def test_starts_and_stops(self):
        self.begin("--never-publish")
        self.hover(self.text)
        self.ask("lsp.stop", server="fake")
        eventually(lambda: not children(self.daemon), what="the first one is gone")
        descriptors = open_descriptors(self.daemon)
        for _ in range(int(suite.option("rounds") or ROUNDS)):
            self.assertEqual(self.ask("lsp.request", server="fake", method="fake/echo", params=[1]), [1])
            self.assertEqual(self.ask("lsp.stop", server="fake"), {"stopped": 1})
        self.assertEqual(children(self.daemon), [])
        eventually(lambda: open_descriptors(self.daemon) <= descriptors, what="all descriptors are given back")
        self.assert_gone(self.pids("fake"), 0)

    def test_kill_of_the_daemon(self):
        self.begin(*STUBBORN)
        self.hover(self.text)
        self.ask("lsp.start", server="other")
        tree = children(self.daemon)
        self.assertLessEqual(set(self.pids("fake") + self.pids("other")), set(tree))
        os.kill(self.daemon, signal.SIGKILL)
        self.assert_gone(tree)

    def test_kill_of_the_daemon_during_the_handshake(self):
        self.begin("--initialize-delay", "60", *STUBBORN)
        with self.project.connect() as client:
            client.send('{"jsonrpc":"2.0","id":1,"method":"lsp.start","params":["fake"]}')
            eventually(lambda: self.pids("fake"), what="the server runs")
            tree = children(self.daemon)
            os.kill(self.daemon, signal.SIGKILL)
            self.assert_gone(tree)

    def test_kill_of_the_guard(self):
        self.begin()
        self.hover(self.text)
        guard = next(pid for pid in children(self.daemon) if pid not in self.pids("fake"))
        os.kill(guard, signal.SIGKILL)
        self.assert_gone(self.pids("fake"))
        self.assertEqual(self.hover(self.text).split("|")[1], "one")

    def test_stop_of_the_daemon(self):
        self.begin(*STUBBORN)
        self.hover(self.text)
        self.ask("lsp.start", server="other")
        tree = children(self.daemon)
        self.assertEqual(self.project.run("daemon", "stop", "--timeout", "50s").code, 0)
        self.project.wait_gone(self.daemon)
        self.assert_gone(tree)
        self.assertEqual(self.tape("other")[-1]["method"], "exit")

    def test_new_settings(self):
        self.begin()
        self.hover(self.text)
        old = self.pids("fake")
        self.set_servers(fake=["--name", "new"], other=[])
        os.kill(self.daemon, signal.SIGHUP)
        self.assert_gone(old)
        self.assertEqual(self.hover(self.text).split("|")[1], "one")
        self.assertEqual(self.ask("lsp.list")["servers"][0]["serverName"], "new")


if __name__ == "__main__":
    suite.main()
