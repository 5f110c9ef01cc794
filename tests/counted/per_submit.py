#!/usr/bin/env python3
"""What a submit costs the project's daemon, with 64 waiting: instructions and system calls, the log's included.

Usage: per_submit.py --program PATH
"""

import contextlib
import os
import tempfile
import unittest

import counting

PROGRAM = counting.take_option("program")
WINDOW = 64
FEW, MANY = 640, 1920

SUBMIT = b'{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"Fix the tests in src and tell me why"}}\n'


def call(server, method, params):
    server.send(b'{"jsonrpc":"2.0","id":0,"method":"%s","params":%s}\n' % (method, params))
    read_answers(server, 1)


def read_answers(server, count):
    lines = b""
    while lines.count(b"\n") < count:
        part = server.receive(65536)
        assert part, "the daemon ended the conversation"
        lines += part
    assert lines.count(b'"result"') == count, lines[-500:]


def submit(server, count):
    call(server, b"queue.pause", b"{}")  # so that they stay queued
    call(server, b"events.subscribe", b'{"kinds":["daemonStopping"]}')
    for _ in range(count // WINDOW):
        server.send(SUBMIT * WINDOW)
        read_answers(server, WINDOW)


@contextlib.contextmanager
def project():
    """The command of a daemon in a project of its own, with nobody's settings."""
    with tempfile.TemporaryDirectory(prefix="duet-counted-") as place:
        root = os.path.join(place, "project")
        os.mkdir(root)
        home = {name: place for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        settings = os.path.join(place, "settings.toml")
        with open(settings, "w", encoding="ascii") as file:
            file.write('default_agent = "shell"\n')
        os.chmod(settings, 0o600)
        os.environ.update(home, DUET_RPC_CONFIG=settings, DUET_RPC_LOG=os.path.join(root, "log"))
        yield [PROGRAM, "daemon", "start", "--foreground", "--project", root, "--socket", "@"]


def per_submit(count):
    costs = []
    for times in (FEW, MANY):
        with project() as command:
            costs.append(count(command, lambda server, times=times: submit(server, times)))
    return (costs[1] - costs[0]) / (MANY - FEW)


class PerSubmit(unittest.TestCase):
    def assert_cost(self, count, most):
        cost = per_submit(count)
        print(f"a submit of {WINDOW} waiting: {cost:,.2f} {count.__name__}")
        self.assertLessEqual(cost, most)

    def test_a_submit_is_at_most_55000_instructions(self):
        self.assert_cost(counting.instructions, 55000)

    @unittest.skipUnless(counting.can_trace(), "strace may not trace here")
    def test_many_submits_share_their_system_calls(self):
        self.assert_cost(counting.system_calls, 0.75)


if __name__ == "__main__":
    unittest.main(verbosity=2)
