"""Clients by the hundred that never read, or stop half-way. Whatever the daemon does about them, they stay as they are."""

import base64
import os
import socket
import ssl
import struct

DISCOVER = b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}'
HALF_HEAD = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
PATIENCE = 60


def hello():
    """What a client says first in TLS 1.3, whole."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake without the other side")


def masked(text):
    mask = os.urandom(4)
    stream = (mask * (len(text) // 4 + 1))[:len(text)]
    return bytes([0x81, 0x80 | len(text)]) + mask + bytes(a ^ b for a, b in zip(text, stream))


class Crowd:
    def __init__(self, http_port, token, tls_port):
        self.http_port, self.token, self.tls_port = http_port, token, tls_port
        self.clients = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        for client in self.clients:
            # A reset instead of a farewell: thousands of those would be in the kernel's hands for a minute.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        self.clients = []

    def come(self, port, data):
        client = socket.socket()
        self.clients.append(client)
        client.settimeout(PATIENCE)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        try:
            client.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had to make way already
        return client

    def silent_websockets(self, count, requests):
        """Each asks for more than it is ever given, and reads no byte of it."""
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = (f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   f"Sec-WebSocket-Key: {key}\r\nAuthorization: Bearer {self.token}\r\n\r\n").encode()
        for _ in range(count):
            client = self.come(self.http_port, upgrade)
            if not client.recv(12).startswith(b"HTTP/1.1 101"):
                raise AssertionError("the upgrade was refused")
            client.sendall(masked(DISCOVER) * requests)

    def half_heads(self, count):
        for _ in range(count):
            self.come(self.http_port, HALF_HEAD)

    def half_handshakes(self, count):
        """Every other one stops in its first message, the rest when it is their turn to show a certificate."""
        whole = hello()
        for number in range(count):
            self.come(self.tls_port, whole if number % 2 else whole[:len(whole) // 2])
