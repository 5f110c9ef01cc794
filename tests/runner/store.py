"""Where the daemons under test keep their tasks: each in a file of its own, or, with `--store postgresql`, in a database of each
project's own on one real server, which this process starts and ends.

What a test says in settings stays as it is: `settings(text)` adds the `[cluster]` that a store needs, and what belongs to the queue
there (`keep_tasks` and its like) is taken out and set in the database. README.md beside this folder lists what may differ.
"""

import atexit
import os
import re
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import server  # noqa: E402

TEMPLATE = "queue"
CLUSTER = '\n[cluster]\nproject = "site"\nname = "here"\naccept = ["shell"]\n'
OF_THE_QUEUE = re.compile(r"^(queue_capacity|keep_days|keep_tasks|keep_output) *= *(\S+)$\n?", re.MULTILINE)
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _taken_from_the_command_line():
    if "--store" not in sys.argv:
        return "sqlite"
    at = sys.argv.index("--store")
    kind = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    if kind not in ("sqlite", "postgresql"):
        sys.exit("--store sqlite or --store postgresql")
    return kind


KIND = _taken_from_the_command_line()
SHARED = KIND == "postgresql"
HERE = {"here": True} if SHARED else {}  # of submits that need this machine: a PATH or a folder outside of the project
HERE_FLAG = ["--here"] if SHARED else []  # the same on the command line
MORE_IN_RECORDS = ["worker", "onLost", "needs", "submittedBy"] if SHARED else []


def only_sqlite(why):
    """For tests and classes about something that a shared queue has not, or has otherwise; WHY says which."""
    return unittest.skipIf(SHARED, f"with SQLite only: {why}")


class _Server:
    """Started once, with a database that all others are copies of."""

    def __init__(self):
        self.number = 0
        self.lock = threading.Lock()
        self.server = server.Server()
        atexit.register(self.server.__exit__)
        self.server.__enter__()
        self.server.make_database(TEMPLATE)
        self.server.script(server.schema_text(), TEMPLATE)
        self.session = server.Session(self.server.conninfo())
        atexit.register(self.session.close)

    def new_database(self):
        with self.lock:
            self.number += 1
            name = f"project{self.number}"
            self.session.ask(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        self.server.sql("SELECT duet.found_v1('site')", name)  # a copy of one that was founded would be refused
        return name


_server = None


def begin():
    """Before the first test. Ends the process with ctest's word for skipped if a server is wanted and not installed."""
    if SHARED:
        server.skip_unless_installed()
        _the_server()


def _the_server():
    global _server
    _server = _server or _Server()
    return _server


class Store:
    """Of one project. Without `--store postgresql` it is nothing and changes nothing."""

    def __init__(self):
        self._database = None
        self._lock = threading.Lock()

    def database(self):
        with self._lock:
            self._database = self._database or _the_server().new_database()
            return self._database

    def sql(self, text):
        return _the_server().server.sql(text, self.database())

    def await_numbers(self):
        """A shared queue numbers events a moment after the changes that they tell of."""
        if SHARED:
            server.eventually("all events are numbered", lambda: self.sql("SELECT 1 FROM duet.event WHERE seq IS NULL LIMIT 1") == [])

    def environment(self):
        return {"DUET_RPC_STORE": _the_server().server.url(self.database())} if SHARED else {}

    def settings(self, text):
        """TEXT as a daemon with this store is to have it."""
        if not SHARED:
            return text
        for name, value in OF_THE_QUEUE.findall(text):
            self.sql(f"SELECT duet.set_v1('{name}', '{_number(value)}')")
        return OF_THE_QUEUE.sub("", text) + ("" if "[cluster]" in text else CLUSTER)


def _number(value):
    value = value.strip("'\"")
    return int(value[:-1]) * UNITS[value[-1]] if value[-1] in UNITS else int(value)
