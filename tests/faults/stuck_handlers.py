#!/usr/bin/env python3
"""Handlers that take long or for ever, in a build with test methods: the end comes all the same."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually, notification, request  # noqa: E402

CEILING = 30  # 2 s, and what a busy machine adds; a handler that hangs does so for ever

ENDINGS = {
    "SIGTERM": lambda daemon: daemon.signal(15),
    "SIGINT": lambda daemon: daemon.signal(2),
    "SIGHUP": lambda daemon: daemon.signal(1),
    "end of input": lambda daemon: daemon.close_input(),
    "shutdown request": lambda daemon: daemon.send(request("shutdown", "bye")),
    "shutdown notification": lambda daemon: daemon.send(notification("shutdown")),
}


def busy_with(method, env=None, **params):
    """A daemon that has begun METHOD: what stood before it has been answered."""
    daemon = suite.rpc(env=env)
    daemon.call("version", "ready")
    daemon.send(request(method, "slow", params=params))
    return daemon


class BlocksForEver(suite.TestCase):
    """The process is gone within 2 s, exit 0, without an answer."""

    def assert_ends(self, method, endings):
        for name in endings:
            with self.subTest(name), busy_with(method) as daemon:
                ENDINGS[name](daemon)
                daemon.expect_exit(0, CEILING)

    def test_while_the_loop_stands_still(self):
        self.assert_ends("test.block", ["SIGTERM", "SIGINT", "SIGHUP", "end of input"])

    def test_a_shutdown_nobody_reads_any_more_ends_with_the_input(self):
        # A handler that holds the loop itself leaves the request in the pipe; the client's own end is what counts then.
        for name in ("shutdown request", "shutdown notification"):
            with self.subTest(name), busy_with("test.block") as daemon:
                ENDINGS[name](daemon)
                daemon.close_input()
                daemon.expect_exit(0, CEILING)

    def test_while_an_answer_is_awaited(self):
        self.assert_ends("test.block_late", ENDINGS)


class TakesHalfASecond(suite.TestCase):
    """What finishes in time is answered first; a busy machine takes nothing of that time."""

    PATIENCE = {"DUET_RPC_TEST_PATIENCE": "60000"}

    def assert_answered(self, method):
        for name in ("SIGTERM", "end of input"):
            with self.subTest(name), busy_with(method, self.PATIENCE, ms=500) as daemon:
                # What is read is begun with; a signal rightly drops a request not yet begun.
                eventually(lambda: not daemon.unsent_in_pipe(), what="the request is read")
                ENDINGS[name](daemon)
                answer = daemon.next_message()
                self.assertEqual((answer["id"], answer["result"]), ("slow", {"slept": True}))
                daemon.expect_exit(0, CEILING)

    def test_while_the_loop_stands_still(self):
        self.assert_answered("test.sleep")

    def test_while_an_answer_is_awaited(self):
        self.assert_answered("test.sleep_late")

    def test_a_shutdown_request_is_answered_after_it(self):
        with busy_with("test.sleep_late", self.PATIENCE, ms=500) as daemon:
            daemon.send(request("shutdown", "bye"))
            self.assertEqual(daemon.next_message()["id"], "slow")
            self.assertEqual(daemon.next_message()["id"], "bye")
            daemon.expect_exit(0, CEILING)


if __name__ == "__main__":
    suite.main()
