"""Pseudo-terminals for programs that behave differently on one."""

import os
import pty
import subprocess

from daemon import PATIENCE, Stream, clean_environment


class Terminal:
    """A terminal: the program gets `slave`, the test reads and writes as the person in front of it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        self.screen = Stream(os.dup(self.master))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self.slave)
        self.screen.finished()
        os.close(self.master)

    def type(self, data):
        os.write(self.master, data)


def run_on_terminal(argv, streams=("stdout", "stderr"), env=None):
    """Runs ARGV to its end with STREAMS on a terminal; returns what the terminal showed and the exit code."""
    with Terminal() as terminal:
        places = {name: terminal.slave if name in streams else subprocess.DEVNULL for name in ("stdout", "stderr")}
        environment = clean_environment({"TERM": "xterm-256color", **(env or {})})
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, env=environment, timeout=PATIENCE, **places).returncode
        os.write(terminal.slave, b"\n[end]\n")
        terminal.screen.wait_until(lambda data: b"[end]" in data, PATIENCE)
        return terminal.screen.text().split("\r\n[end]")[0], code
