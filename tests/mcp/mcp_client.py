"""Clients of the MCP door for the tests: messages in, messages out, notifications kept apart. They share no code with any SDK.

What a client asks and hears is the same whatever carries it: a `Door` is a process that speaks lines, and http_carrier.py has
one for `POST /mcp`."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

from daemon import PATIENCE, Daemon, Failure, LineFraming, eventually, notification, request  # noqa: E402
from project import ProjectTestCase  # noqa: E402

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
TASKS = "io.modelcontextprotocol/tasks"

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"


def modern(params=None, tasks=False, **meta):
    """Params of a modern request."""
    capabilities = {"extensions": {TASKS: {}}} if tasks else {}
    return {**(params or {}), "_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: capabilities, **meta}}


def stdio_only(test):
    """A test of what only a process can do, or only a client that is remembered."""
    test.is_stdio_only = True
    return test


class Asking:
    """A client, on top of send() and next_message()."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.notifications = []
        self.answers = {}
        self.last_id = 0

    def post(self, method, params=None, id=None):
        """Sends a request and returns its id."""
        if id is None:
            self.last_id += 1
            id = self.last_id
        self.send(request(method, id, **({} if params is None else {"params": params})))
        return id

    def take(self, patience):
        message = self.next_message(patience)
        if "method" in message:
            self.notifications.append(message)
        else:
            self.answers[json.dumps(message.get("id"))] = message

    def answer(self, id, patience=PATIENCE):
        """The answer to ID, whichever come before it."""
        deadline = time.monotonic() + patience
        while json.dumps(id) not in self.answers:
            self.take(max(0.01, deadline - time.monotonic()))
        return self.answers.pop(json.dumps(id))

    def ask(self, method, params=None, patience=PATIENCE):
        return self.answer(self.post(method, params), patience)

    def initialize(self, version="2025-11-25"):
        result = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "test", "version": "1"}})["result"]
        self.send(notification("notifications/initialized"))
        return result

    def post_tool(self, name, arguments=None, **params):
        return self.post("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def tool(self, name, arguments=None, patience=2 * PATIENCE, **params):
        """The result of a tool of the legacy era."""
        answer = self.answer(self.post_tool(name, arguments, **params), patience)
        if "result" not in answer:
            raise Failure(f"{name}: {answer}")
        return answer["result"]

    def structured(self, name, arguments=None, patience=2 * PATIENCE, **params):
        """The structured result of a call that must succeed."""
        result = self.tool(name, arguments, patience, **params)
        if result.get("isError") or "structuredContent" not in result:
            raise Failure(f"{name}: {result}")
        return result["structuredContent"]

    def error(self, name, arguments=None, patience=2 * PATIENCE):
        """The text of a call that must fail as a tool does."""
        result = self.tool(name, arguments, patience)
        if not result.get("isError"):
            raise Failure(f"{name} did not fail: {result}")
        return result["content"][0]["text"]

    def wait_for(self, happened, patience=PATIENCE):
        """The first notification that HAPPENED says yes to; those before it are dropped."""
        deadline = time.monotonic() + patience
        while True:
            while self.notifications:
                message = self.notifications.pop(0)
                if happened(message):
                    return message
            self.take(max(0.01, deadline - time.monotonic()))


class Door(Asking, Daemon):
    """`duet-rpc mcp WORDS`, started."""

    has_session = True
    most_at_once = 200  # that a test may ask without hearing an answer

    def __init__(self, command, **options):
        super().__init__(command, **options)
        self.framing = LineFraming

    def cancel(self, id):
        self.send(notification("notifications/cancelled", params={"requestId": id, "reason": "timer"}))


class McpTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.project.run, "daemon", "stop", "--force", "--if-running")  # with what its tasks left

    def door(self, *words, cwd=None, env=None, **options):
        """`duet-rpc mcp WORDS`, started in the project, before anything was said."""
        child = Door([self.project.program, "mcp", *words], env=self.project.environment(env),
                     cwd=cwd or self.project.root, **options)
        self.addCleanup(child.__exit__)
        return child

    def ready_door(self, *words, version="2025-11-25", **options):
        door = self.door(*words, **options)
        door.initialize(version)
        return door

    def shell_door(self, *words, **options):
        """One that offers the agent shell, which is the default one here."""
        self.project.write_user_settings('default_agent = "shell"\n')
        return self.ready_door("--agents", "shell", *words, **options)

    def make_gate(self):
        """A task that reads from `gate` waits there until open_gate()."""
        os.mkfifo(os.path.join(self.project.root, "gate"))

    def open_gate(self):
        def is_open():
            try:
                handle = os.open(os.path.join(self.project.root, "gate"), os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody waits yet
                return False
            os.write(handle, b"\n")
            os.close(handle)
            return True
        eventually(is_open, 60, "a task that waits at the gate")

    def write(self, name, text):
        path = os.path.join(self.project.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
