"""A project with its daemon: commands run in it, connections to its socket. Every wait has a deadline."""

import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import store
import suite
from daemon import PATIENCE, Failure, eventually, request

HIDDEN = ("AIWG_IPC_DEBUG", "DUET_RPC_CONFIG", "DUET_RPC_CONNECT", "DUET_RPC_IDENTITY", "DUET_RPC_LOG", "DUET_RPC_STORE", "LISTEN_FDS", "LISTEN_PID",
          "NO_COLOR", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")

NOBODY = 65534


class Result:
    """How a command ended and what it printed."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit code {self.code}, stdout {self.out!r}, stderr {self.err!r}"


class Connection:
    """A client's socket, a message a line; read by whoever waits, not by a thread."""

    def __init__(self, path, patience=PATIENCE):
        folder, name = os.path.split(path)
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)  # an address has room for 107 bytes only
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Python's own timeout makes the socket non-blocking, and then a full backlog is an error at once.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", *divmod(int(patience * 1e6), 10**6)))
        try:
            self.socket.connect(f"/proc/self/fd/{handle}/{name}")
            self.socket.settimeout(patience)
        except OSError:
            self.socket.close()
            raise
        finally:
            os.close(handle)
        self.data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        self.socket.close()

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, text):
        self.send_bytes(text.encode("utf-8") + b"\n")

    def next_line(self, patience=PATIENCE):
        """The next line without its end; None when the connection has ended."""
        deadline = time.monotonic() + patience
        start = 0
        while (end := self.data.find(b"\n", start)) < 0:
            start = len(self.data)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                raise Failure(f"no line within {patience} s")
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                piece = b""
            if not piece:
                if self.data:
                    raise Failure(f"the connection ended inside a line: {bytes(self.data[:100])!r}")
                return None
            self.data += piece
        line = bytes(self.data[:end])
        del self.data[:end + 1]
        return line

    def next_message(self, patience=PATIENCE):
        line = self.next_line(patience)
        if line is None:
            raise Failure("the connection has ended")
        return json.loads(line.decode("utf-8"))

    def next_event(self, patience=PATIENCE):
        """The next message that does not tell of a worker of a shared queue, which comes and goes at a time of its own."""
        while True:
            message = self.next_message(patience)
            if message.get("method") != "event.workerChanged":
                return message

    def answer(self, id, patience=PATIENCE):
        """The answer to ID and the notifications that came before it."""
        events = []
        while True:
            message = self.next_message(patience)
            if "method" not in message:
                if message.get("id") != id:
                    raise Failure(f"expected the answer to {id!r}, got {message}")
                return message, events
            events.append(message)

    def call(self, method, id=1, patience=PATIENCE, **members):
        """The answer; events that come before it are passed over."""
        self.send(request(method, id, **members))
        return self.answer(id, patience)[0]

    def ends(self, patience=PATIENCE):
        """The connection ends within PATIENCE; returns the messages that came before."""
        messages = []
        while (line := self.next_line(patience)) is not None:
            messages.append(json.loads(line.decode("utf-8")))
        return messages


class Process(subprocess.Popen):
    """One that a test which fails does not wait for."""

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, trace)


class Project:
    """A folder that is a project, in a place of its own. What its daemons leave behind ends with the `with` block."""

    def __init__(self, under="project", program=None):
        self.program = program or suite.program()
        self.place = tempfile.TemporaryDirectory(prefix="duet-project-")
        self.home = os.path.join(self.place.name, "home")
        self.root = os.path.join(self.place.name, under)
        self.state = os.path.join(self.root, ".aiwg", "daemon")
        self.socket = os.path.join(self.state, "daemon.sock")
        os.makedirs(self.home)
        os.makedirs(os.path.join(self.root, ".git"))
        self.pids = set()
        self.needs_no_trust = True  # its settings file is that of the test, named by DUET_RPC_CONFIG
        self.store = store.Store()
        if store.SHARED:
            self.write_user_settings("")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.clean_up()

    def clean_up(self):
        for pid in self.pids | {self.lock_holder()} - {None}:
            if self.is_ours(pid):
                os.kill(pid, signal.SIGKILL)
                self.wait_gone(pid)
        self.place.cleanup()

    def is_ours(self, pid):
        """PID is a daemon of this project, and no other process that has got its number since."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return os.fsencode(self.root) in file.read().split(b"\0")
        except OSError:
            return False

    def environment(self, extra=None):
        kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        kept.update(HOME=self.home, XDG_CONFIG_HOME=os.path.join(self.home, ".config"),
                    XDG_STATE_HOME=os.path.join(self.home, ".local", "state"), **self.store.environment())
        own = os.path.join(self.root, ".duet-rpc.toml")
        if self.needs_no_trust and os.path.lexists(own):
            kept["DUET_RPC_CONFIG"] = own
        kept.update(extra or {})
        return {name: value for name, value in kept.items() if value is not None}

    def write_user_settings(self, text):
        """The user's own file, which counts wherever the project is and whenever it is written."""
        path = os.path.join(self.home, ".config", "duet-rpc", "config.toml")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.store.settings(text))
        os.chmod(path, 0o600)

    def write_settings(self, text):
        """The project's own file, which counts without trust if it is there when a command begins."""
        path = os.path.join(self.root, ".duet-rpc.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.store.settings(text))
        os.chmod(path, 0o600)

    def remember_port(self, word):
        """The door WORD, `http` or `tls`, is at a port that the system gives to nobody else while the daemon is away."""
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            end = int(file.read().split()[0])
        if end <= 2048:
            return
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        with open(os.path.join(self.state, word + ".port"), "w", encoding="ascii") as file:
            file.write(f"{random.SystemRandom().randrange(end // 2, end)}\n")
        os.chmod(file.name, 0o600)

    def popen(self, *words, env=None, cwd=None, program=None, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return Process([program or self.program, *words], env=self.environment(env), cwd=cwd or self.root, **options)

    def run(self, *words, input=None, patience=60, **options):
        """Runs the program in the project to its end."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        with self.popen(*words, **options) as process:
            try:
                out, err = process.communicate(input, timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Failure(f"{' '.join(words)}: still running after {patience} s") from None
        return Result(process.returncode, out.decode("utf-8", "backslashreplace"),
                      err.decode("utf-8", "backslashreplace"))

    def run_as_nobody(self, *words, **options):
        """The same as another user, with a copy of the program: what was built may stand where others may not go."""
        os.chmod(self.place.name, 0o755)
        copy = os.path.join(self.place.name, "duet-rpc")
        shutil.copy(self.program, copy)
        return self.run(*words, program=copy, user=NOBODY, group=NOBODY, extra_groups=[], **options)

    def start(self, *words, **options):
        """Starts the daemon and returns its pid."""
        result = self.run("daemon", "start", "--json", *words, **options)
        if result.code != 0:
            raise Failure(f"daemon start: {result}")
        pid = result.json()["pid"]
        self.pids.add(pid)
        return pid

    def connect(self, patience=PATIENCE):
        return Connection(self.socket, patience)

    def call(self, method, **members):
        """Asks on a connection of its own."""
        with self.connect() as connection:
            return connection.call(method, **members)

    def pid(self):
        return self.call("daemon.status")["result"]["pid"]

    def log(self):
        with open(os.path.join(self.state, "daemon.log"), encoding="utf-8", errors="backslashreplace") as file:
            return file.read()

    def lock_holder(self):
        """Who holds daemon.lock, by /proc/locks."""
        try:
            status = os.stat(os.path.join(self.state, "daemon.lock"))
        except OSError:
            return None
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        with open("/proc/locks", encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words[1] == "FLOCK" and words[5] == place:
                    return int(words[4])
        return None

    @staticmethod
    def is_running(pid):
        """With all its threads: the first of them may be gone while another one still holds the files."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            return not select.select([handle], [], [], 0)[0]
        finally:
            os.close(handle)

    def wait_gone(self, pid, patience=PATIENCE):
        eventually(lambda: not self.is_running(pid), patience, f"the end of process {pid}")

    def kill(self, pid, number=signal.SIGKILL):
        os.kill(pid, number)
        if number == signal.SIGKILL:
            self.wait_gone(pid)

    def reachable(self):
        """The pid of the daemon that answers a ping now, or None."""
        try:
            with self.connect(2) as connection:
                return connection.call("daemon.status", patience=2)["result"]["pid"]
        except (OSError, Failure):
            return None


class ProjectTestCase(suite.TestCase):
    """Tests with a project each."""

    def setUp(self):
        self.project = self.new_project()

    def new_project(self, under="project", program=None):
        project = Project(under, program)
        self.addCleanup(project.clean_up)
        self.addCleanup(self.show_log_if_failed, project)
        return project

    def show_log_if_failed(self, project):
        if not self.has_failed():
            return
        try:
            log = project.log()
        except OSError as error:
            log = str(error)
        print(f"\n--- the daemon's log of {project.root}, its end:\n{log[-4000:]}", file=sys.stderr)

    def assert_refused(self, result, code, *texts):
        """One line on stderr that has TEXTS, nothing on stdout."""
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "", result)
        self.assertEqual(result.err.count("\n"), 1, result)
        for text in texts:
            self.assertRegex(result.err, text)

    def offered(self, *words, **options):
        """What a shell may offer, without what it says of each. A daemon that does not answer a shell soon is passed over."""
        lines = eventually(lambda: self.project.run("candidates", *words, **options).out, what=f"candidates {words}").splitlines()
        return [line.split("\t")[0] for line in lines]

    def assert_logged(self, pattern):
        """PATTERN is in the daemon's log, or comes soon: a thread of its own writes it."""
        return eventually(lambda: re.search(pattern, self.project.log()), what=f"{pattern} in the log")

    def assert_answers(self, project=None):
        self.assertTrue((project or self.project).call("ping")["result"]["pong"])


@contextlib.contextmanager
def held(pid):
    """The daemon finds all that is done meanwhile at once, and none of it half done."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"{field}:\s+(\d+)", file.read()).group(1)) * 1024
