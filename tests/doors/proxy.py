"""Something between a client and a server that passes bytes on, and cuts."""

import select
import socket
import struct
import threading
import time

NO_LINGER = struct.pack("ii", 1, 0)  # closing resets the connection


class Proxy(threading.Thread):
    """Passes on to TARGET, `host:port`. With EVERY each connection is cut after so many seconds, every second one by a
    reset; each lives a bit longer than the last, so that a slow machine gets on, too. With DELAY bytes take so long, each
    way."""

    def __init__(self, target, every=None, delay=0):
        super().__init__(daemon=True)
        host, _, port = target.rpartition(":")
        self.target = (host.strip("[]"), int(port))
        self.every = every
        self.delay = delay
        self.late = []  # when to send what to whom
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.accepted = self.cuts = 0
        self.pairs = []  # two sockets, and when they are cut
        self.wants_cut = self.ending = False
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.ending = True
        self.join()
        self.server.close()

    @property
    def url(self):
        return f"tls://127.0.0.1:{self.port}"

    def cut(self):
        """All that is connected now."""
        self.wants_cut = True

    def run(self):
        while not self.ending:
            self._cut_what_is_due()
            self._send_what_is_due()
            ready = [self.server] + [end for pair in self.pairs for end in pair[:2]]
            for end in select.select(ready, [], [], 0.02)[0]:
                if end is self.server:
                    self._accept()
                else:
                    self._pass_on(end)
        for pair in list(self.pairs):
            self._close(pair)

    def _accept(self):
        client = self.server.accept()[0]
        self.accepted += 1
        try:
            server = socket.create_connection(self.target, timeout=60)
        except OSError:
            client.close()
            return
        life = self.every * 1.2 ** self.cuts if self.every else float("inf")
        self.pairs.append((client, server, time.monotonic() + life))

    def _pass_on(self, end):
        pair = next((pair for pair in self.pairs if end in pair), None)
        if pair is None:
            return
        try:
            data = end.recv(1 << 16)
            self.late.append((time.monotonic() + self.delay, pair[1] if end is pair[0] else pair[0], data))
            self._send_what_is_due()
        except OSError:
            data = b""
        if not data:
            self._close(pair)

    def _send_what_is_due(self):
        while self.late and self.late[0][0] <= time.monotonic():
            _, end, data = self.late.pop(0)
            try:
                end.sendall(data)
            except OSError:
                pass  # it is closed; who reads there finds out

    def _cut_what_is_due(self):
        everything, self.wants_cut = self.wants_cut, False
        for pair in list(self.pairs):
            if everything or time.monotonic() >= pair[2]:
                self.cuts += 1
                if self.cuts % 2:
                    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                self._close(pair)

    def _close(self, pair):
        self.pairs.remove(pair)
        for end in pair[:2]:
            end.close()
