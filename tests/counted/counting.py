"""Servers under a counter, and the little that these tests say to them.

A figure is the difference of two runs that differ in the number of requests alone, so that starting and ending cancel
out. Counts do not depend on how busy the machine is.

count.py in this folder counts for any server.
"""

import contextlib
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

PATIENCE = 60  # seconds; callgrind is fifty times slower than the processor


def websocket_length(size, mask_bit):
    """In its shortest form."""
    if size < 126:
        return bytes([mask_bit | size])
    return bytes([mask_bit | 126]) + size.to_bytes(2, "big") if size < 65536 else bytes([mask_bit | 127]) + size.to_bytes(8, "big")


class Server:
    """A running server, and one conversation with it.

    `command` has @ where the socket's path goes; without one the server is on stdin and stdout, with LSP framing. With
    the word `websocket` in it there are a WebSocket's frames on the socket, without a handshake.
    `wrapper` is put before it.
    """

    def __init__(self, command, wrapper=()):
        self._scratch = tempfile.TemporaryDirectory(prefix="duet-counted-")
        self.path = os.path.join(self._scratch.name, "s")
        self.on_socket = "@" in command
        self.is_websocket = "websocket" in command
        words = [*wrapper, *(self.path if word == "@" else word for word in command)]
        pipe = subprocess.DEVNULL if self.on_socket else subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0,
                                        start_new_session=True)
        self.sockets = []
        if self.on_socket:
            self.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for each in self.sockets:
            each.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        self._scratch.cleanup()

    def connect(self):
        """One more connection; the last one is used from now on."""
        deadline = time.monotonic() + PATIENCE
        while True:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(PATIENCE)
            try:
                client.connect(self.path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                client.close()
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.01)
        self.sockets.append(client)

    def _descriptor(self):
        return self.sockets[-1].fileno() if self.on_socket else self.process.stdin.fileno()

    def send(self, data):
        if self.on_socket:
            self.sockets[-1].sendall(data)
            return
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor(), rest):]

    def receive(self, most):
        if self.on_socket:
            return self.sockets[-1].recv(most)
        return os.read(self.process.stdout.fileno(), most)

    def framed(self, body):
        """As the server sends it."""
        if self.is_websocket:
            return b"\x81" + websocket_length(len(body), 0) + body
        return body + b"\n" if self.on_socket else b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def asked(self, body):
        """As it is sent to the server."""
        if not self.is_websocket:
            return self.framed(body)
        mask = b"\x37\xfa\x21\x3d"
        key = (mask * (len(body) // 4 + 1))[:len(body)]
        masked = (int.from_bytes(body, "big") ^ int.from_bytes(key, "big")).to_bytes(len(body), "big")
        return b"\x81" + websocket_length(len(body), 0x80) + mask + masked

    def expect(self, data):
        """Reads exactly this."""
        got = bytearray()
        while len(got) < len(data):
            part = self.receive(len(data) - len(got))
            assert part, f"the server ended the conversation after {bytes(got[-200:])!r}"
            got += part
        assert got == data, f"got {bytes(got[:200])!r}, expected {data[:200]!r}"

    def ask(self, method, result, times=1, window=1, pause=0):
        """Requests, `window` of them at once, and their answers."""
        request = self.asked(b'{"jsonrpc":"2.0","id":123456789,"method":"%s"}' % method)
        answer = self.framed(b'{"jsonrpc":"2.0","id":123456789,"result":%s}' % result)
        for _ in range(times // window):
            self.send(request * window)
            self.expect(answer * window)
            time.sleep(pause)

    def echo(self, size, piece=None):
        """One large message there and back; `piece`: the server has read so much before more is sent."""
        params = b'{"pad":"%s"}' % (b"x" * size)
        message = self.asked(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":%s}' % params)
        if not piece and not self.on_socket:
            fcntl.fcntl(self._descriptor(), fcntl.F_SETPIPE_SZ, 1024 * 1024)
        for begin in range(0, len(message), piece or len(message)):
            self.send(message[begin:begin + piece] if piece else message)
            if piece:
                self._wait_until_read()
        self.expect(self.framed(b'{"jsonrpc":"2.0","id":1,"result":%s}' % params))

    def _wait_until_read(self):
        question = termios.TIOCOUTQ if self.on_socket else termios.FIONREAD
        deadline = time.monotonic() + PATIENCE
        while struct.unpack("i", fcntl.ioctl(self._descriptor(), question, b"\0" * 4))[0] != 0:
            assert time.monotonic() < deadline, "the server does not read"
            time.sleep(0.0002)

    def end(self):
        """Ends as people end it: end of input, or SIGTERM."""
        if self.on_socket:
            os.killpg(self.process.pid, signal.SIGTERM)
        else:
            self.process.stdin.close()
        self.process.wait(PATIENCE)

    def kill_inner(self):
        """Kills what the wrapper runs, so that only the wrapper sees the end."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            os.kill(int(children.read()), signal.SIGKILL)
        self.process.wait(PATIENCE)

    def resident_kib(self):
        """Counted page by page; VmRSS is an estimate."""
        return self._proc_number("smaps_rollup", r"Rss:\s+(\d+)")

    def peak_kib(self):
        return self._proc_number("status", r"VmHWM:\s+(\d+)")

    def _proc_number(self, file, pattern):
        with open(f"/proc/{self.process.pid}/{file}", encoding="ascii") as lines:
            return int(re.search(pattern, lines.read()).group(1))


def _counted(command, talk, end, wrapper, pattern):
    with tempfile.TemporaryDirectory(prefix="duet-counted-") as scratch:
        path = os.path.join(scratch, "log")
        with Server(command, [word.replace("LOG", path) for word in wrapper]) as server:
            talk(server)
            end(server)
        with open(path, encoding="utf-8") as lines:
            found = re.search(pattern, lines.read())
    assert found, f"{wrapper[0]} counted nothing"
    return int(found.group(1))


def system_calls(command, talk):
    """How many the server makes while `talk(server)` talks to it, its start included, its end not."""
    return _counted(command, talk, Server.kill_inner, ["strace", "-f", "-c", "-o", "LOG"],
                    r"(?m)^\s*100\.00\s+\S+\s+\S+\s+(\d+)\s+(?:\d+\s+)?total$")


def instructions(command, talk):
    """The same for instructions in user space, its end included."""
    return _counted(command, talk, Server.end,
                    ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=LOG"],
                    r"Collected : (\d+)")


def per_request(count, command, method, result, few=200, many=3200):
    """What `count` (one of the two above) says a request costs a server that waits for it.

    Without the pause a server that strace slows down would find some requests there before it waits.
    """
    low, high = (count(command, lambda server, n=n: server.ask(method, result, n, pause=0.0002)) for n in (few, many))
    return (high - low) / (many - few)


def can_trace():
    """Some containers forbid ptrace."""
    return subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def take_option(name):
    """The value of --NAME, taken out of sys.argv."""
    flag = f"--{name}"
    if flag not in sys.argv:
        sys.exit(f"{flag} PATH is needed")
    at = sys.argv.index(flag)
    value = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value
