"""For test files of the black-box kind: `file.py --program PATH [--store postgresql] [unittest options]`."""

import os
import sys
import unittest

import store
from daemon import Daemon

_options = {}


def program():
    return _options["program"]


def option(name):
    """The value of --NAME, or None."""
    return _options.get(name)


def is_sanitized():
    """Built with AddressSanitizer, which has its own ways with memory and is slow."""
    with open(program(), "rb") as file:
        return b"__asan_init" in file.read()


def rpc(*arguments, **daemon_options):
    """`duet-rpc rpc ARGUMENTS`, started."""
    return Daemon([program(), "rpc", *arguments], **daemon_options)


class TestCase(unittest.TestCase):
    def has_failed(self):
        """Asked by a clean-up: what failed can still be looked at."""
        result = self._outcome.result
        return any(getattr(test, "test_case", test) is self for test, _ in result.failures + result.errors)

    def assert_version(self, daemon, id="still there?"):
        """The daemon answers, and nothing came before this answer."""
        self.assertIn("version", daemon.call("version", id)["result"])


def main():
    for name in ("program", "version", "rounds", "seconds", "megabytes", "edits"):
        flag = f"--{name}"
        if flag in sys.argv:
            at = sys.argv.index(flag)
            _options[name] = sys.argv[at + 1]
            del sys.argv[at:at + 2]
    if "program" not in _options:
        sys.exit("usage: --program PATH is needed")
    _options["program"] = os.path.abspath(_options["program"])
    store.begin()
    unittest.main(verbosity=2)
