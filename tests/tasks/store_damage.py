#!/usr/bin/env python3
"""A damaged store stops the start, says what is wrong, and is left as it is; one that is taken away is noticed."""

import os
import random
import shutil
import sqlite3
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402
from project import ProjectTestCase, held  # noqa: E402

FILES = ("tasks.db", "tasks.db-wal", "tasks.db-shm")
PAGE, LOG_HEADER, FRAME_HEADER = 4096, 32, 24  # bytes, of SQLite's files


def content(path):
    with open(path, "rb") as file:
        return file.read()


class DamageTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        with open(os.path.join(self.project.root, ".duet-rpc.toml"), "w", encoding="utf-8") as file:
            file.write('default_agent = "shell"\nmax_running = 1\n')
        os.chmod(file.name, 0o600)
        self.addCleanup(self.project.run, "daemon", "stop", "--force")
        self.pid = self.project.start()
        self.submit(40)

    def submit(self, count):
        with self.project.connect() as connection:
            connection.call("task.submit", params={"prompt": "sleep 0.2"})
            for number in range(count):
                params = {"prompt": "true " + "x" * (number * 97 % 3000)}
                self.assertIn("result", connection.call("task.submit", params=params))

    def file(self, name):
        return os.path.join(self.project.state, name)

    def keep_copy(self):
        self.copies = {name: content(self.file(name)) for name in FILES if os.path.exists(self.file(name))}

    def put_back(self):
        for name in FILES:
            if name in self.copies:
                with open(self.file(name), "wb") as file:
                    file.write(self.copies[name])
            elif os.path.exists(self.file(name)):
                os.unlink(self.file(name))

    def assert_start_fails(self, *texts):
        """And `doctor` says why."""
        self.assert_refused(self.project.run("daemon", "start"), 1, "tasks[.]db", *texts)
        found = self.project.run("doctor", "--json")
        self.assertEqual(found.code, 1, found)
        self.assertIn(("store", "wrong"), [(each["subject"], each["verdict"]) for each in found.json()["findings"]])

    def cut(self, name, sizes):
        """The start fails for each of these sizes, and the file keeps it; and with the whole file it works again."""
        for size in sizes:
            self.put_back()
            os.truncate(self.file(name), size)
            with self.subTest(file=name, size=size):
                self.assert_start_fails()
                self.assertEqual(content(self.file(name)), self.copies[name][:size])
        self.put_back()
        self.pid = self.project.start()
        self.assertEqual(self.project.call("task.stats")["result"]["total"], 41)


class CutOff(DamageTestCase):
    @staticmethod
    def sizes(size):
        chance = random.Random(7)
        return [0, 1, 99, 4096, size - 1] + [chance.randrange(size) for _ in range(6)]

    def used_log(self):
        """How much of the log is in use, by the index beside it; the rest of its file is there in advance."""
        frames = struct.unpack_from("=I", self.copies["tasks.db-shm"], 16)[0]
        return LOG_HEADER + frames * (FRAME_HEADER + PAGE)

    def test_after_a_clean_stop(self):
        self.project.run("daemon", "stop", "--force")
        self.keep_copy()
        self.assertEqual(list(self.copies), ["tasks.db"])
        self.cut("tasks.db", self.sizes(len(self.copies["tasks.db"])))

    def test_after_a_kill(self):
        self.project.kill(self.pid)
        self.keep_copy()
        self.cut("tasks.db-wal", self.sizes(self.used_log())[1:])

    def test_nothing_is_lost_with_the_unused_part_of_the_log(self):
        self.project.kill(self.pid)
        self.keep_copy()
        os.truncate(self.file("tasks.db-wal"), self.used_log())
        self.project.start()
        self.assertEqual(self.project.call("task.stats")["result"]["total"], 41)


class ReadByAnother(DamageTestCase):
    def test_what_is_only_in_the_log_stays_there(self):
        """Somebody looks into the store with a tool of his own while the daemon starts."""
        other = sqlite3.connect(self.file("tasks.db"), isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM sqlite_master").fetchall()
        self.submit(5)
        self.project.kill(self.pid)
        for _ in range(2):
            pid = self.project.start()
            self.assertEqual(self.project.call("task.stats")["result"]["total"], 47)
            self.project.kill(pid)


class Strange(DamageTestCase):
    def test_an_empty_store_is_not_taken_for_a_new_one(self):
        self.project.kill(self.pid)
        with open(self.file("tasks.db"), "wb"):
            pass
        self.assert_start_fails("cut off")
        os.unlink(self.file("tasks.db"))
        self.assert_start_fails("missing")

    def test_garbage_is_reported(self):
        self.project.run("daemon", "stop", "--force")
        self.keep_copy()
        for text in (b"hello", b"x" * 100000):
            with open(self.file("tasks.db"), "wb") as file:
                file.write(text)
            self.assert_start_fails()
            self.assertEqual(content(self.file("tasks.db")), text)
        damaged = bytearray(self.copies["tasks.db"])
        damaged[5000:9000] = os.urandom(4000)
        with open(self.file("tasks.db"), "wb") as file:
            file.write(damaged)
        self.assert_start_fails("damaged")
        self.assertEqual(content(self.file("tasks.db")), bytes(damaged))

    def test_a_newer_store_is_refused(self):
        self.project.run("daemon", "stop", "--force")
        store = sqlite3.connect(self.file("tasks.db"))
        store.execute("PRAGMA user_version = 1000")
        store.close()
        self.assert_start_fails("newer")


class TakenAway(DamageTestCase):
    def assert_stops(self, take):
        """Nothing is accepted any more, and the daemon ends."""
        with self.project.connect() as connection:
            connection.call("ping")
            with held(self.pid):
                take()
                connection.send(request("task.submit", params={"prompt": "true"}))
            answer = connection.answer(1)[0]
        self.assertEqual(answer["error"]["code"], -32003, answer)
        eventually(lambda: not self.project.is_running(self.pid), what="the daemon stops")

    def replace(self):
        shutil.copy(self.file("tasks.db"), self.file("copy"))
        os.replace(self.file("copy"), self.file("tasks.db"))

    def test_a_removed_store_is_noticed(self):
        self.assert_stops(lambda: os.unlink(self.file("tasks.db")))

    def test_a_replaced_store_is_noticed(self):
        self.assert_stops(self.replace)

    def test_a_removed_log_is_noticed(self):
        self.assert_stops(lambda: os.unlink(self.file("tasks.db-wal")))


if __name__ == "__main__":
    suite.main()
