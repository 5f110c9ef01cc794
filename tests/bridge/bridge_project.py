"""A project whose daemon has language servers: the scripted one of tests/fakes, or real ones with their samples."""

import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402,F401
from project import ProjectTestCase, open_descriptors  # noqa: E402,F401

FAKE = os.path.join(HERE, "..", "fakes", "language_server.py")
NODE_COMMANDS = os.path.join(HERE, "..", "..", "build", "node_modules", ".bin")


def children(pid):
    """The processes below PID, without itself."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except OSError:
            continue
    found, left = [], [pid]
    while left:
        below = parents.get(left.pop(), [])
        found += below
        left += below
    return found


def uri(path):
    return "file://" + path


class BridgeTestCase(ProjectTestCase):
    """Fakes are set by self.set_servers(NAME=[options]); files *.NAME belong to NAME."""

    def set_servers(self, **servers):
        lines = []
        for name, options in servers.items():
            command = [sys.executable, FAKE, "--tape", self.path(f"{name}.tape"), "--pids", self.path(f"{name}.pids"),
                       *options]
            lines += [f"[lsp.{name}]", f"command = {json.dumps(command)}", f'files = ["*.{name}"]', "roots = []"]
        self.write(".duet-rpc.toml", "\n".join(lines) + "\n")

    def path(self, name):
        return os.path.join(self.project.root, name)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def copy_sample(self, name):
        shutil.copytree(os.path.join(HERE, "samples", name), self.project.root, dirs_exist_ok=True)

    def start(self, **options):
        return self.project.start(env={"PATH": NODE_COMMANDS + os.pathsep + os.environ["PATH"]}, **options)

    def ask(self, method, patience=60, connection=None, /, **params):
        """The result; an error fails the test."""
        answer = self.answer(method, patience, connection, **params)
        self.assertIn("result", answer, answer)
        return answer["result"]

    def answer(self, method, patience=60, connection=None, /, **params):
        if connection:
            return connection.call(method, patience=patience, params=params)
        with self.project.connect() as own:
            return own.call(method, patience=patience, params=params)

    def cause(self, method, patience=60, /, **params):
        """The typed cause of the error that must come."""
        answer = self.answer(method, patience, **params)
        self.assertIn("error", answer, answer)
        return answer["error"]["data"]["cause"]

    def tape(self, name):
        """What a fake was sent."""
        with open(self.path(f"{name}.tape"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def pids(self, name):
        """Of all processes that a fake was or started."""
        try:
            with open(self.path(f"{name}.pids"), encoding="ascii") as file:
                return [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return []

    def assert_gone(self, pids, patience=PATIENCE):
        eventually(lambda: not any(self.is_ours(pid) for pid in pids), patience, f"the end of {pids}")

    def is_ours(self, pid):
        """It runs, and in this project: by now a busy machine may have given the number to somebody else."""
        try:
            return self.project.is_running(pid) and os.readlink(f"/proc/{pid}/cwd").startswith(self.project.root)
        except OSError:
            return False

    def hover(self, path, line=1, column=1, connection=None):
        return self.ask("lsp.hover", 60, connection, file=path, line=line, column=column)["contents"]


def place_of(path, word, which=1):
    """Line and column, as people count, of the WHICH-th WORD in a file; the last one is -1."""
    with open(path, encoding="utf-8") as file:
        places = [(number, match.start() + 1) for number, line in enumerate(file, 1)
                  for match in re.finditer(rf"\b{word}\b", line)]
    return places[which if which < 0 else which - 1]
