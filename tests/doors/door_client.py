"""Clients of the HTTP door for tests: bytes in, bytes out, strict. They share no code with the program."""

import base64
import hashlib
import json
import os
import select
import socket
import struct
import time
import urllib.parse

from daemon import PATIENCE, Failure, request
from project import ProjectTestCase


class Response:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:200]!r}"


class HttpConnection:
    """A TCP connection to the door."""

    def __init__(self, url, patience=PATIENCE):
        parts = urllib.parse.urlsplit(url)
        self.host = parts.netloc
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self, patience=PATIENCE):
        """Reads something; False at the end."""
        if not select.select([self.socket], [], [], patience)[0]:
            raise Failure(f"nothing within {patience} s, after {bytes(self.data[-200:])!r}")
        try:
            piece = self.socket.recv(1 << 20)
        except ConnectionResetError:
            raise Failure("the connection was reset") from None
        self.data += piece
        return bool(piece)

    def read_until(self, end, patience=PATIENCE):
        while end not in self.data:
            if not self.more(patience):
                raise Failure(f"the connection ended: {bytes(self.data[:200])!r}")
        head, _, rest = bytes(self.data).partition(end)
        self.data = bytearray(rest)
        return head

    def read(self, size):
        while len(self.data) < size:
            if not self.more():
                raise Failure("the connection ended inside a body")
        body = bytes(self.data[:size])
        del self.data[:size]
        return body

    def response(self, is_head=False, patience=PATIENCE):
        lines = self.read_until(b"\r\n\r\n", patience).decode("ascii").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        if version != "HTTP/1.1":
            raise Failure(lines[0])
        fields = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            if name.lower() in fields:
                raise Failure(f"{name} is there twice")
            fields[name.lower()] = value
        length = int(fields.get("content-length", 0))
        return Response(int(status), fields, b"" if is_head else self.read(length))

    def ask(self, method, target, fields=None, body=None, is_head=None):
        self.send(message(self.host, method, target, fields, body))
        return self.response(method == "HEAD" if is_head is None else is_head)

    def ends(self, patience=PATIENCE):
        """The connection ends; returns what came before."""
        while self.more(patience):
            pass
        return bytes(self.data)


def message(host, method, target, fields=None, body=None):
    fields = {"Host": host, **(fields or {})}
    if body is not None:
        body = body if isinstance(body, bytes) else body.encode()
        fields.setdefault("Content-Type", "application/json")
        fields.setdefault("Content-Length", str(len(body)))
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return head.encode("latin-1") + b"\r\n" + (body or b"")


class WebSocket(HttpConnection):
    """A client's side of RFC 6455: what it sends is masked, what it gets must not be."""

    TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

    def __init__(self, url, token=None, fields=None):
        super().__init__(url)
        self.shake_hands(token, fields)

    def shake_hands(self, token, fields):
        key = base64.b64encode(os.urandom(16)).decode()
        wanted = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
        if token:
            wanted["Authorization"] = f"Bearer {token}"
        wanted.update(fields or {})
        self.answer_to_upgrade = self.ask("GET", "/ws", {name: value for name, value in wanted.items() if value is not None})
        if self.answer_to_upgrade.status == 101:
            digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            if self.answer_to_upgrade.fields["sec-websocket-accept"] != base64.b64encode(digest).decode():
                raise Failure(f"wrong answer to the key: {self.answer_to_upgrade}")

    def send_frame(self, opcode, payload=b"", last=True, masked=True):
        length = len(payload)
        head = bytes([opcode | (0x80 if last else 0)])
        bit = 0x80 if masked else 0
        if length < 126:
            head += bytes([bit | length])
        elif length < 1 << 16:
            head += bytes([bit | 126]) + struct.pack(">H", length)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", length)
        if masked:
            mask = os.urandom(4)
            stream = (mask * (length // 4 + 1))[:length]
            payload = (int.from_bytes(payload, "big") ^ int.from_bytes(stream, "big")).to_bytes(length, "big")
            head += mask
        self.send(head + payload)

    def send_text(self, text):
        self.send_frame(self.TEXT, text.encode() if isinstance(text, str) else text)

    def frame(self):
        first, second = self.read(2)
        if second & 0x80:
            raise Failure("a masked frame from the server")
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.read(8))
        return first & 0x0F, self.read(length)

    def message(self, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            opcode, payload = self.frame()
            if opcode == self.TEXT:
                return json.loads(payload)
            if opcode == self.CLOSE:
                raise Failure(f"closed: {payload!r}")
        raise Failure("no message in time")

    def call(self, method, id=1, **members):
        self.send_text(request(method, id, **members))
        while True:
            answer = self.message()
            if "method" not in answer:
                return answer

    def closed_with(self):
        """The code and the reason of the server's Close; what comes before is passed over."""
        while True:
            opcode, payload = self.frame()
            if opcode == self.CLOSE:
                return struct.unpack(">H", payload[:2])[0] if payload else None, payload[2:].decode()


class DoorTestCase(ProjectTestCase):
    """A project whose daemon has its HTTP door open, and tokens by role."""

    def open_door(self, *words, settings=""):
        if settings:
            self.project.write_user_settings(settings)
        self.project.remember_port("http")
        self.project.start(*(words or ("--http",)))
        self.url = self.http_url()

    def http_url(self):
        http = self.project.call("daemon.status")["result"]["subsystems"]["http"]
        return http and http["url"]

    def token(self, name="test", role="own"):
        result = self.project.run("token", "new", name, "--role", role)
        self.assertEqual(result.code, 0, result)
        return result.out.strip()

    def connect(self):
        connection = HttpConnection(self.url)
        self.addCleanup(connection.socket.close)
        return connection

    def websocket(self, token=None, fields=None):
        client = WebSocket(self.url, token, fields)
        self.addCleanup(client.socket.close)
        return client

    def ask(self, method, target, fields=None, body=None):
        with self.connect() as connection:
            return connection.ask(method, target, fields, body)

    def rpc(self, token, text):
        return self.ask("POST", "/rpc", {"Authorization": f"Bearer {token}"}, text)

    def assert_refusal(self, response, status, word):
        self.assertEqual(response.status, status, response)
        self.assertEqual(response.json()["error"], word, response)


__all__ = ["DoorTestCase", "Failure", "HttpConnection", "WebSocket", "message", "request"]
