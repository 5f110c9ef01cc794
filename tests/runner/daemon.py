"""A server under test: started, spoken to, read, ended. Every wait has a deadline.

The framing here is written for the tests alone and strict: a frame's header is `Content-Length: N` and nothing else.
It shares no code with the program, so that a mistake made on both sides of the wire cannot hide.
"""

import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

PATIENCE = 60.0  # seconds for what the contract gives no bound for; a loaded machine is no failure


class Failure(AssertionError):
    """What was promised did not happen."""


def frame(body):
    """BODY (text or bytes) with its header."""
    data = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def request(method, id=1, **members):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, **members}, ensure_ascii=False)


def notification(method, **members):
    return json.dumps({"jsonrpc": "2.0", "method": method, **members}, ensure_ascii=False)


class LspFraming:
    """`Content-Length: N\\r\\n\\r\\n` and N bytes."""

    header = re.compile(rb"Content-Length: (0|[1-9][0-9]*)\r\n\r\n")

    @staticmethod
    def encode(body):
        return frame(body)

    @classmethod
    def cut(cls, data):
        """(body, bytes used) of the first whole frame, or None when more bytes are needed."""
        match = cls.header.match(data)
        if not match:
            if len(data) < 40 and b"\n\r\n" not in data and b"Content-Length: ".startswith(bytes(data[:16])):
                return None
            raise Failure(f"output that is no frame: {bytes(data[:120])!r}")
        end = match.end() + int(match.group(1))
        return (bytes(data[match.end():end]), end) if len(data) >= end else None


class LineFraming:
    """One message a line."""

    @staticmethod
    def encode(body):
        data = body.encode("utf-8") if isinstance(body, str) else bytes(body)
        return data + b"\n"

    @staticmethod
    def cut(data):
        end = data.find(b"\n")
        return None if end < 0 else (bytes(data[:end]), end + 1)


class Stream:
    """Collects what comes out of a descriptor, so that the writer never waits for us."""

    def __init__(self, descriptor):
        self.data = bytearray()
        self.ended = False
        self.changed = threading.Condition()
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self):
        while True:
            try:
                piece = os.read(self._descriptor, 1 << 20)
            except OSError:  # a terminal whose other side is gone
                piece = b""
            with self.changed:
                self.data += piece
                self.ended = not piece
                self.changed.notify_all()
            if not piece:
                return

    def wait_until(self, happened, patience):
        """The first true result of HAPPENED(data), or None at the end of the stream or of the patience."""
        deadline = time.monotonic() + patience
        with self.changed:
            while True:
                result = happened(self.data)
                left = deadline - time.monotonic()
                if result or self.ended or left <= 0:
                    return result or None
                self.changed.wait(left)

    def finished(self):
        """The collector has ended: the descriptor may be closed."""
        self._thread.join(1.0)
        return not self._thread.is_alive()

    def text(self):
        with self.changed:
            return self.data.decode("utf-8", "backslashreplace")


class Peer:
    """One end of a conversation: bytes out through SEND, messages in through a Stream."""

    def __init__(self, framing, send, incoming):
        self.framing = framing
        self.incoming = incoming
        self.send_bytes = send

    def send(self, body):
        self.send_bytes(self.framing.encode(body))

    def next_body(self, patience=PATIENCE):
        """The next message as bytes; None if there is none in time or the stream ended."""
        found = self.incoming.wait_until(self.framing.cut, patience)
        if found is None:
            return None
        body, used = found
        with self.incoming.changed:
            del self.incoming.data[:used]
        return body

    def next_message(self, patience=PATIENCE):
        body = self.next_body(patience)
        if body is None:
            raise Failure(f"no message within {patience} s")
        return json.loads(body.decode("utf-8"))

    def call(self, method, id=1, patience=PATIENCE, **members):
        """Sends a request and returns the very next message, which must carry its id."""
        self.send(request(method, id, **members))
        answer = self.next_message(patience)
        if answer.get("id") != id:
            raise Failure(f"expected the answer to {id!r}, got {answer}")
        return answer

    def unread(self):
        with self.incoming.changed:
            return bytes(self.incoming.data)


def clean_environment(extra=None):
    """Our environment without what would change the program's behaviour, and EXTRA."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DUET_RPC_LOG", "NO_COLOR")}
    environment.update(extra or {})
    return environment


class Daemon(Peer):
    """A child that speaks on its standard streams.

    STDIN, STDOUT and STDERR are what subprocess takes; a pipe is made by default. With READ_STDOUT false nobody
    reads the output pipe until `read_stdout()`. The process is ended, by its id, when the `with` block is left.
    """

    def __init__(self, argv, env=None, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 read_stdout=True, read_stderr=True, **popen):
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=clean_environment(env),
                                        bufsize=0, **popen)
        self.started = time.monotonic()
        self.pid = self.process.pid
        out = Stream(self.process.stdout.fileno()) if self.process.stdout and read_stdout else None
        self.stderr = Stream(self.process.stderr.fileno()) if self.process.stderr and read_stderr else None
        super().__init__(LspFraming, self._write, out)
        if self.process.stdin:
            os.set_blocking(self.process.stdin.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        for pipe, stream in ((self.process.stdout, self.incoming), (self.process.stderr, self.stderr)):
            if pipe and (stream is None or stream.finished()):
                pipe.close()

    def read_stdout(self):
        self.incoming = Stream(self.process.stdout.fileno())

    def _write(self, data, patience=PATIENCE):
        unsent = self.write_some(data, patience)
        if unsent:
            raise Failure(f"the program read {len(data) - len(unsent)} of {len(data)} bytes in {patience} s")

    def write_some(self, data, patience):
        """Writes what is taken within PATIENCE of the last progress; returns what was not."""
        descriptor, left = self.process.stdin.fileno(), memoryview(data)
        while left:
            if not select.select([], [descriptor], [], patience)[1]:
                break
            try:
                left = left[os.write(descriptor, left[:1 << 20]):]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise Failure("the program has closed its input") from None
        return bytes(left)

    def unsent_in_pipe(self):
        """How many bytes of ours the program has not taken yet."""
        return struct.unpack("i", fcntl.ioctl(self.process.stdin.fileno(), termios.FIONREAD, bytes(4)))[0]

    def close_input(self):
        self.process.stdin.close()

    def signal(self, number):
        self.process.send_signal(number)

    def wait_exit(self, patience=PATIENCE):
        """The exit code, negative for a signal, as soon as the process has ended."""
        if self.process.poll() is None:
            handle = os.pidfd_open(self.pid)
            try:
                if not select.select([handle], [], [], patience)[0]:
                    raise Failure(f"still running after {patience} s")
            finally:
                os.close(handle)
        return self.process.wait()

    def expect_exit(self, code, patience=PATIENCE):
        """Ends with CODE in time, all output having been taken."""
        got = self.wait_exit(patience)
        if got != code:
            raise Failure(f"exit code {got}, expected {code}")
        if self.incoming:
            self.incoming.wait_until(lambda data: False, PATIENCE)
            if self.unread():
                raise Failure(f"output nobody expected: {self.unread()[:300]!r}")

    def expect_stderr(self, text, patience=PATIENCE):
        if not self.stderr.wait_until(lambda data: text.encode("utf-8") in data, patience):
            raise Failure(f"stderr lacks {text!r}")

    def stderr_text(self):
        """All of stderr; the process has ended."""
        self.stderr.wait_until(lambda data: False, PATIENCE)
        return self.stderr.text()


class SocketServer:
    """A program that listens on a Unix socket whose path is its last argument; connect() gives a Peer."""

    def __init__(self, argv, env=None):
        self.folder = tempfile.TemporaryDirectory(prefix="duet-socket-")
        self.path = os.path.join(self.folder.name, "s")
        self.daemon = Daemon([*argv, self.path], env=env, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.daemon.__exit__(*exception)
        self.folder.cleanup()

    def connect(self, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(self.path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                if self.daemon.process.poll() is not None or time.monotonic() > deadline:
                    raise Failure("the server does not listen") from None
                time.sleep(0.005)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(PATIENCE), 0))
        peer = Peer(LineFraming, connection.sendall, Stream(os.dup(connection.fileno())))
        peer.socket = connection
        return peer


def signal_named(name):
    return getattr(signal, "SIG" + name)


def eventually(condition, patience=PATIENCE, what="the condition"):
    """Waits until CONDITION() is true and returns it."""
    deadline = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {patience} s")
        time.sleep(0.005)
