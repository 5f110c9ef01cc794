#!/usr/bin/env python3
"""Plays transcripts: conversations with the program, written down line by line.

    transcript.py --program build/release/bin/duet-rpc [--store postgresql] tests/transcripts/stdio/*.rpc

    # what this shows                   a comment
    env NAME=VALUE                      for the next `run`; $TMP is a folder of this transcript's own
    run rpc --log-level info            starts the program; stdin and stdout carry LSP frames
    run socket-server NAME ARGUMENTS    starts the program given as --server NAME=PATH, with the path of a socket as its
                                        last argument, and connects to it: one message a line
    run daemon ARGUMENTS                starts the daemon of a project of its own and connects to it likewise
    --> {"jsonrpc":"2.0",…}             sends this text, framed, byte for byte
    --> raw "Content-Le" + repeat("x", 8000) + frame("{}")
                                        sends these bytes: strings as in Python, \\xNN is a byte; n * m is allowed
    <-- {"jsonrpc":"2.0",…}             the next message has exactly these members; the id is compared byte for byte;
                                        "<text>", "<number>" and "<any>" stand for any string, number, value;
                                        a member "name?" may be absent
    still answers                       a request is answered, and nothing comes before its answer
    repeat 3                            plays the indented lines below three times
    close input                         on a socket: of this direction only
    connect again                       leaves the connection to the server and makes another
    connection ends within 2s           the server closes it, everything it wrote having been expected above
    signal TERM
    exits 0 within 2s                   and everything it wrote has been expected above; a busy machine gets longer
    stderr has "text"                   at once or soon; also: stderr matches "regular expression"
    stderr lacks "text"                 after `exits` only
    file $TMP/log has "text"            likewise `matches` and `lacks`
    on sqlite: LINE                     LINE, if the daemons keep their tasks there; or `on postgresql:`, which --store asks for;
                                        there, event.workerChanged may come at any time and is passed over
"""

import argparse
import ast
import glob
import json
import json.scanner
import os
import re
import shlex
import socket
import sys
import tempfile
import time
from json.decoder import scanstring

import store
from daemon import PATIENCE, Daemon, Failure, SocketServer, eventually, frame, signal_named


BUSY = 30  # seconds that a busy machine may add to any bound; what it bounds would else last for ever


class Number(str):
    """A JSON number as it was written: 1, 1.0 and 1e0 are three."""


class Text(str):
    """A JSON string that remembers how it was written."""


class _Decoder(json.JSONDecoder):
    def __init__(self):
        super().__init__(parse_int=Number, parse_float=Number, parse_constant=self._refuse)
        self.parse_string = self._string
        self.scan_once = json.scanner.py_make_scanner(self)

    @staticmethod
    def _string(source, start, strict):
        value, end = scanstring(source, start, strict)
        text = Text(value)
        text.written = source[start - 1:end]
        return text, end

    @staticmethod
    def _refuse(word):
        raise ValueError(f"{word} is not JSON")


def decode(body):
    return _Decoder().decode(body)


def differences(expected, got, where="message"):
    """Lines that say where GOT is not what EXPECTED allows."""
    if expected == "<any>":
        return []
    if expected == "<text>":
        return [] if isinstance(got, Text) else [f"{where}: expected a string, got {got!r}"]
    if expected == "<number>":
        return [] if isinstance(got, Number) else [f"{where}: expected a number, got {got!r}"]
    if isinstance(expected, dict) and isinstance(got, dict):
        allowed = {name.rstrip("?"): value for name, value in expected.items()}
        found = [f"{where}: {name!r} is missing" for name in expected if name[-1:] != "?" and name not in got]
        found += [f"{where}: {name!r} was not expected" for name in got if name not in allowed]
        for name in sorted(allowed.keys() & got.keys()):
            found += differences(allowed[name], got[name], f"{where}.{name}")
        return found
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return [f"{where}: {len(got)} elements, expected {len(expected)}"]
        pairs = enumerate(zip(expected, got))
        return [line for i, (e, g) in pairs for line in differences(e, g, f"{where}[{i}]")]
    same = type(expected) is type(got) and expected == got
    if same and where.endswith(".id") and isinstance(expected, Text):
        same = expected.written == got.written
    return [] if same else [f"{where}: expected {_shown(expected)}, got {_shown(got)}"]


def _shown(value):
    return getattr(value, "written", None) or (str(value) if isinstance(value, Number) else repr(value))


def raw_bytes(expression):
    """The bytes an expression of a `raw` line stands for."""
    return _evaluate(ast.parse(expression.strip(), mode="eval").body)


def _evaluate(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.encode("latin-1")
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(left, int) and isinstance(right, int):
            return left * right if isinstance(node.op, ast.Mult) else left - right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        arguments = [_evaluate(argument) for argument in node.args]
        if node.func.id == "repeat":
            return arguments[0] * arguments[1]
        if node.func.id == "frame":
            return frame(arguments[0])
    raise Failure("a raw line knows strings, numbers, +, -, *, repeat(TEXT, N) and frame(TEXT)")


class Transcript:
    """One file being played."""

    commands = [
        (r"env ([A-Z_]+)=(.*)", "set_environment"),
        (r"run socket-server (\S+) *(.*)", "run_socket_server"),
        (r"run daemon *(.*)", "run_daemon"),
        (r"run (.+)", "run"),
        (r"--> raw (.+)", "send_raw"),
        (r"--> (.+)", "send"),
        (r"<-- (.+)", "expect"),
        (r"still answers", "still_answers"),
        (r"close input", "close_input"),
        (r"connect again", "connect_again"),
        (r"connection ends within ([\d.]+)s", "connection_ends"),
        (r"signal ([A-Z]+)", "send_signal"),
        (r"exits (\d+) within ([\d.]+)s", "exits"),
        (r'stderr (has|lacks|matches) "(.*)"', "check_stderr"),
        (r'file (\S+) (has|lacks|matches) "(.*)"', "check_file"),
    ]

    def __init__(self, path, program, servers):
        self.path, self.program, self.servers = path, program, servers
        self.environment, self.conversation = {}, []
        self.daemon = self.server = self.peer = None
        self.markers = 0
        self.store = store.Store()

    def play(self):
        with open(self.path, encoding="utf-8") as file, tempfile.TemporaryDirectory(prefix="duet-") as self.folder:
            try:
                self._play_lines(list(enumerate(file.read().split("\n"), 1)))
                if self.daemon and not self.server and self.daemon.process.poll() is None:
                    raise Failure("the transcript ends while the program runs: say how it exits")
            finally:
                self._leave()

    def _play_lines(self, lines):
        position = 0
        while position < len(lines):
            number, line = lines[position]
            position += 1
            repeat = re.fullmatch(r"repeat (\d+)", line)
            if repeat:
                block = []
                while position < len(lines) and lines[position][1].startswith("  "):
                    block.append((lines[position][0], lines[position][1][2:]))
                    position += 1
                for _ in range(int(repeat.group(1))):
                    self._play_lines(block)
            elif line.strip() and not line.startswith("#"):
                self._play_line(number, line)

    def _play_line(self, number, line):
        self.conversation.append(f"{number:4}  {line[:200]}")
        wanted = re.fullmatch(r"on (sqlite|postgresql): (.*)", line)
        if wanted and wanted.group(1) != store.KIND:
            return
        line = wanted.group(2) if wanted else line
        for pattern, name in self.commands:
            match = re.fullmatch(pattern, line)
            if match:
                getattr(self, name)(*match.groups())
                return
        raise Failure("not a line this runner knows")

    def _leave(self):
        for started in (self.server, self.daemon):
            if started:
                started.__exit__(None, None, None)
        self.server = self.daemon = None

    def _here(self, text):
        return text.replace("$TMP", self.folder)

    def set_environment(self, name, value):
        self.environment[name] = self._here(value)

    def run(self, arguments):
        self._leave()
        argv = [self.program, *shlex.split(self._here(arguments))]
        self.daemon = self.peer = Daemon(argv, env=self.environment)
        self.environment = {}

    def run_socket_server(self, name, arguments):
        self._leave()
        if name not in self.servers:
            raise Failure(f"no --server {name}=PATH was given")
        self.server = SocketServer([self.servers[name], *shlex.split(arguments)], env=self.environment)
        self.daemon, self.peer = self.server.daemon, self.server.connect()
        self.environment = {}

    def run_daemon(self, arguments):
        self._leave()
        project = os.path.join(self.folder, "project")
        os.makedirs(project, exist_ok=True)
        argv = [self.program, "daemon", "start", "--foreground", "--project", project, *shlex.split(arguments)]
        env = {"HOME": self.folder, "XDG_CONFIG_HOME": self.folder, "XDG_STATE_HOME": self.folder, **self.store.environment(), **self.environment}
        settings = self.store.settings("")
        if settings:
            os.makedirs(os.path.join(self.folder, "duet-rpc"), exist_ok=True)
            with open(os.path.join(self.folder, "duet-rpc", "config.toml"), "w", encoding="utf-8") as file:
                file.write(settings)
        self.server = SocketServer([*argv, "--socket"], env=env)
        self.daemon, self.peer = self.server.daemon, self.server.connect()
        self.environment = {}

    def connect_again(self):
        self.peer.socket.shutdown(socket.SHUT_RDWR)
        self.peer.socket.close()
        self.peer = self.server.connect()

    def connection_ends(self, seconds):
        self.peer.incoming.wait_until(lambda data: False, float(seconds) + BUSY)
        if not self.peer.incoming.ended:
            raise Failure("the connection is still open")
        left = self._next_body() if self.peer.unread() else None
        if left:
            raise Failure(f"output nobody expected: {left[:300]!r}")

    def send(self, text):
        self.peer.send(text)

    def send_raw(self, expression):
        self.peer.send_bytes(raw_bytes(expression))

    def expect(self, text):
        expected = decode(text)
        body = self._next_body()
        if body is None:
            raise Failure("no message came" + (", the output ended" if self.peer.incoming.ended else ""))
        shown = body if len(body) < 400 else body[:300] + b" ..."
        self.conversation.append(f"      got {shown.decode('utf-8', 'backslashreplace')}")
        found = differences(expected, decode(body.decode("utf-8")))
        if found:
            raise Failure("; ".join(found))

    def _next_body(self):
        """A queue that daemons share tells when they come and go, at a time of its own."""
        while True:
            body = self.peer.next_body()
            if not (store.SHARED and body and b'"event.workerChanged"' in body):
                return body

    def still_answers(self):
        self.markers += 1
        marker = f"still answers {self.markers}"
        method, result = ("ping", "<any>") if self.server else ("version", {"version": "<text>"})
        self.send(json.dumps({"jsonrpc": "2.0", "id": marker, "method": method}))
        self.expect(json.dumps({"jsonrpc": "2.0", "id": marker, "result": result}))

    def close_input(self):
        if self.server:
            self.peer.socket.shutdown(socket.SHUT_WR)
        else:
            self.daemon.close_input()

    def send_signal(self, name):
        self.daemon.signal(signal_named(name))

    def exits(self, code, seconds):
        self.daemon.expect_exit(int(code), float(seconds) + BUSY)

    def check_stderr(self, verb, text):
        self._check("stderr", verb, text, self.daemon.stderr.text)

    def check_file(self, name, verb, text):
        def content():
            with open(self._here(name), encoding="utf-8", errors="backslashreplace") as file:
                return file.read()
        self._check(name, verb, text, content)

    def _check(self, what, verb, text, content):
        pattern = text if verb == "matches" else re.escape(ast.literal_eval(f'"{text}"'))
        matches = lambda: re.search(pattern, content(), re.MULTILINE)  # noqa: E731
        if verb == "lacks":
            if self.daemon.process.poll() is None:
                raise Failure("`lacks` can be known after `exits` only")
            self.daemon.stderr_text()
            if matches():
                raise Failure(f"{what} has it:\n{content()}")
        else:
            try:
                eventually(matches, PATIENCE)
            except Failure:
                raise Failure(f"{what} is\n{content()}") from None


def play(path, program, servers):
    """True if the transcript went as written."""
    transcript = Transcript(path, program, servers)
    started = time.monotonic()
    try:
        transcript.play()
    except Failure as failure:
        print(f"FAIL {path}\n" + "\n".join("    " + line for line in transcript.conversation[-25:]))
        print(f"    ^ {failure}")
        return False
    except Exception:
        print(f"FAIL {path}\n" + "\n".join("    " + line for line in transcript.conversation[-25:]))
        raise
    print(f"ok   {os.path.basename(path)} ({time.monotonic() - started:.2f} s)")
    return True


def main():
    parser = argparse.ArgumentParser(description="Plays transcripts against the program.")
    parser.add_argument("--program", required=True)
    parser.add_argument("--server", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("paths", nargs="+", help="transcripts, or folders of them")
    options = parser.parse_args()
    servers = dict(server.split("=", 1) for server in options.server)
    store.begin()
    files = []
    for path in options.paths:
        files += sorted(glob.glob(os.path.join(path, "**", "*.rpc"), recursive=True)) if os.path.isdir(path) else [path]
    if not files:
        parser.error("no transcript found")
    failed = [path for path in files if not play(path, options.program, servers)]
    print(f"{len(files) - len(failed)} of {len(files)} transcripts went as written")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
