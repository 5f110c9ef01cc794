"""`POST /mcp` as a carrier for the tests of the MCP door: each message is a request of its own, its answer a JSON text or a stream."""

import base64
import json
import os
import select
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "doors"))

from mcp_client import PATIENCE, VERSION_KEY, Asking, Failure, McpTestCase  # noqa: E402

from door_client import HttpConnection, message  # noqa: E402

NAMED = {"tools/call": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}


def header_text(value):
    """As a header can hold it."""
    is_plain = value.isascii() and value.isprintable() and value.strip() == value
    return value if is_plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def mirrored(body, revision=None):
    """The fields that repeat a body."""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    params = parsed.get("params") if isinstance(parsed, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return {"MCP-Protocol-Version": revision} if revision else {}
    fields = {"MCP-Protocol-Version": meta[VERSION_KEY], "Mcp-Method": parsed["method"]}
    name = params.get(NAMED.get(parsed["method"]))
    if isinstance(name, str):
        fields["Mcp-Name"] = header_text(name)
    return fields


class Post:
    """One request under way, and what has come of its answer."""

    def __init__(self, connection, id):
        self.connection, self.id = connection, id
        self.status, self.fields, self.comments, self.is_over = None, None, 0, False

    def bodies(self):
        """The messages that are whole by now."""
        data = self.connection.data
        if self.fields is None:
            if b"\r\n\r\n" not in data:
                return
            head = self.connection.response(is_head=True)
            self.status, self.fields = head.status, head.fields
        if "content-length" in self.fields:
            length = int(self.fields["content-length"])
            if len(data := self.connection.data) >= length:
                self.is_over = True
                if length:
                    yield self.connection.read(length)
            return
        while b"\n\n" in self.connection.data:
            event = self.connection.read_until(b"\n\n").decode()
            lines = dict(line.split(":", 1) for line in event.split("\n"))
            if "data" in lines:
                yield lines["data"].lstrip().encode()
            else:
                self.comments += 1


class HttpDoor(Asking):
    """A client of `POST /mcp`."""

    has_session = False
    most_at_once = 100

    def __init__(self, url, token):
        super().__init__()
        self.url, self.token = url, token
        self.revision = None
        self.posts, self.idle, self.bodies = [], [], []
        self.statuses = {}

    def close(self):
        for connection in [post.connection for post in self.posts] + self.idle:
            connection.socket.close()
        self.posts, self.idle = [], []

    def send(self, body):
        """Begins a request; its answer comes by next_message()."""
        try:
            id = json.loads(body).get("id")
        except (ValueError, AttributeError):
            id = None
        connection = self.idle.pop() if self.idle else HttpConnection(self.url)
        fields = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/event-stream",
                  **mirrored(body, self.revision)}
        connection.send(message(connection.host, "POST", "/mcp", fields, body))
        self.posts.append(Post(connection, id))
        return self.posts[-1]

    def cancel(self, id):
        """A closed stream is the cancel."""
        for post in [post for post in self.posts if post.id == id]:
            post.connection.socket.close()
            self.posts.remove(post)

    def next_body(self, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not self.bodies:
            self.read_some(deadline)
        return self.bodies.pop(0)

    def hear_all(self, patience=PATIENCE):
        """Until no request is under way any more; what came is kept."""
        deadline = time.monotonic() + patience
        while self.posts:
            self.read_some(deadline)
        while self.bodies:
            self.take(0)

    def read_some(self, deadline):
        sockets = {post.connection.socket: post for post in self.posts}
        ready = select.select(list(sockets), [], [], max(0, deadline - time.monotonic()))[0]
        if not ready:
            raise Failure(f"no message in time; {len(self.posts)} requests are under way")
        for each in ready:
            self.read(sockets[each])

    def read(self, post):
        has_more = post.connection.more()
        self.bodies += post.bodies()
        if post.status is not None:
            self.statuses[json.dumps(post.id)] = post.status
        if post.is_over and has_more and post.fields.get("connection") != "close":
            self.posts.remove(post)
            self.idle.append(post.connection)
        elif not has_more or post.is_over:
            post.connection.socket.close()
            self.posts.remove(post)

    def next_message(self, patience=PATIENCE):
        return json.loads(self.next_body(patience))

    def initialize(self, version="2025-11-25"):
        result = super().initialize(version)
        self.revision = result["protocolVersion"]
        return result

    def status_of(self, method, params=None):
        """The status, and the answer."""
        id = self.post(method, params)
        answer = self.answer(id)
        return self.statuses[json.dumps(id)], answer


class HttpCarrier:
    """In front of a class of cases: they run by HTTP. What only a process can do is left out."""

    url = None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in dir(cls):
            if getattr(getattr(cls, name), "is_stdio_only", False):
                setattr(cls, name, None)

    def setUp(self):
        self.tokens = {}
        super().setUp()

    def open_http(self):
        if not self.project.reachable():
            self.project.start("--http")
        self.url = self.project.call("daemon.status")["result"]["subsystems"]["http"]["url"]

    def token(self, role="own"):
        if role not in self.tokens:
            result = self.project.run("token", "new", f"test-{role}", "--role", role)
            self.assertEqual(result.code, 0, result)
            self.tokens[role] = result.out.strip()
        return self.tokens[role]

    def http_door(self, role="own"):
        self.open_http()
        door = HttpDoor(self.url, self.token(role))
        self.addCleanup(door.close)
        return door

    def door(self, *words, **_):
        """Words of `duet-rpc mcp` are what a token's role and the user's settings say here."""
        return self.http_door("observe" if "--read-only" in words else "own")

    def shell_door(self, *words, **options):
        self.project.write_user_settings('default_agent = "shell"\n[mcp]\nagents = ["shell"]\n')
        return self.ready_door(*words, **options)


class McpHttpTestCase(HttpCarrier, McpTestCase):
    """With an open door, and requests that are spelt out."""

    def setUp(self):
        super().setUp()
        self.project.write_user_settings('default_agent = "shell"\n[mcp]\nagents = ["shell"]\n')
        self.open_http()

    def ask(self, body, method="POST", token="own", **fields):
        """One request with fields of one's own; None leaves one out."""
        wanted = {"Authorization": f"Bearer {self.token(token)}" if token else None,
                  "Accept": "application/json, text/event-stream", **(mirrored(body) if body else {})}
        wanted.update({name.replace("_", "-"): value for name, value in fields.items()})
        with self.connect() as connection:
            given = {name: value for name, value in wanted.items() if value is not None}
            connection.send(message(given.pop("Host", connection.host), method, "/mcp", given, body))
            return connection.response()

    def connect(self):
        connection = HttpConnection(self.url)
        self.addCleanup(connection.socket.close)
        return connection

    def begin(self, body, role="own"):
        """A request whose last byte is not sent yet: its connection, and that byte."""
        connection = self.connect()
        fields = {"Authorization": f"Bearer {self.token(role)}", "Accept": "application/json, text/event-stream", **mirrored(body)}
        whole = message(connection.host, "POST", "/mcp", fields, body)
        connection.send(whole[:-1])
        return connection, whole[-1:]

    def code(self, response, status):
        self.assertEqual(response.status, status, response)
        return response.json()["error"]["code"]


__all__ = ["HttpCarrier", "HttpDoor", "McpHttpTestCase", "Post"]
