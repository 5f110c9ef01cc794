#!/usr/bin/env python3
"""stdout and stderr of a task: told apart, in the order in which they were written; and output that went to make room."""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

MIB = 1 << 20
ROUNDS = 200

# Writes a line to each stream by turns. Each waits until the last one has been read: only then is their order known.
WRITER = f"""
import fcntl, os, struct, termios
def put(stream, text):
    os.write(stream, text)
    while struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, b"    "))[0]: pass
for number in range({ROUNDS}):
    put(1, b"out %d\\n" % number)
    put(2, b"err %d \\xc3\\xa4\\n" % number)
"""
OUT = "".join(f"out {number}\n" for number in range(ROUNDS))
ERR = "".join(f"err {number} ä\n" for number in range(ROUNDS))
BOTH = "".join(f"out {number}\nerr {number} ä\n" for number in range(ROUNDS))


class StreamsTestCase(TaskTestCase):
    def write_by_turns(self):
        with open(self.path("writer.py"), "w", encoding="utf-8") as file:
            file.write(WRITER)
        return f"{sys.executable} writer.py"

    def read(self, id, stream, limit=MIB, offset=0):
        """All of it, piece by piece."""
        text = ""
        while True:
            piece = self.call("task.output", taskId=id, offset=offset, limit=limit, stream=stream)["result"]
            text += piece["data"]
            self.assertGreaterEqual(piece["offset"], offset)
            if piece["done"]:
                return text
            self.assertGreater(piece["next"], offset)
            offset = piece["next"]


class Streams(StreamsTestCase):
    def test_each_can_be_read_and_both_are_in_order(self):
        id = self.submit(self.write_by_turns())
        record = self.wait(id)
        self.assertEqual(record["result"], OUT)
        for limit in (MIB, 1000, 7):
            self.assertEqual(self.read(id, "stdout", limit), OUT)
            self.assertEqual(self.read(id, "stderr", limit), ERR)
        self.assertEqual(self.read(id, "both"), BOTH)
        self.assertEqual(self.call("task.output", taskId=id)["result"]["data"], BOTH)
        self.assertEqual(self.error("task.output", taskId=id, stream="stdin")["code"], -32602)

    def test_attempts_follow_each_other(self):
        id = self.submit("echo o; echo e >&2; exit 1", retries=1)
        self.wait(id)
        self.assertEqual((self.read(id, "stdout"), self.read(id, "stderr")), ("o\no\n", "e\ne\n"))

    def test_the_command_line_prints_one_or_both(self):
        id = self.submit(self.write_by_turns())
        for words, text in ((["--stderr"], ERR), (["--stdout"], OUT), ([], BOTH), (["--stdout", "--stderr"], BOTH)):
            result = self.project.run("task", "output", "--follow", *words, id)
            self.assertEqual((result.code, result.out), (0, text), words)
            self.assertEqual(self.project.run("task", "output", *words, id).out, text)
        self.assertEqual(self.project.run("task", "output", "--stderr", "--json", id).json()["data"], ERR)

    def test_events_say_which(self):
        self.call("events.subscribe", kinds=["taskOutput"])
        self.submit("while [ ! -e go ]; do sleep 0.05; done; echo o; echo e >&2; echo o2")
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        told = {"stdout": "", "stderr": ""}
        while True:
            params = self.connection.next_message()["params"]
            if params["data"] == "":
                break
            told[params["stream"]] += params["data"]
        self.assertEqual(told, {"stdout": "o\no2\n", "stderr": "e\n"})

    def test_they_are_known_after_any_kill(self):
        id = self.submit("echo o; echo e >&2; touch written; sleep 60")
        record = eventually(lambda: os.path.exists(self.path("written")) and self.get(id)["pid"] and self.get(id),
                            what="a running task")
        eventually(lambda: self.call("task.output", taskId=id)["result"]["next"] == 4, what="its output")
        with open(f"/proc/{record['pid']}/stat", encoding="ascii") as file:
            keeper = int(file.read().rsplit(")", 1)[1].split()[1])
        self.project.kill(self.pid)
        os.kill(keeper, signal.SIGKILL)
        self.pid = self.project.start()
        self.connect()
        self.assertEqual(self.wait(id)["error"]["reason"], "lost")
        self.assertEqual((self.read(id, "stdout"), self.read(id, "stderr")), ("o\n", "e\n"))


class Room(StreamsTestCase):
    settings = 'default_agent = "shell"\nkeep_output = "1M"\n'

    def test_the_oldest_output_goes_and_the_record_says_so(self):
        ids = []
        for _ in range(2):  # one after the other, so that it is known which is older
            ids.append(self.submit(f"head -c {400 * 1024} /dev/zero"))
            self.assertFalse(self.wait(ids[-1])["outputDropped"])
        last = self.submit(f"head -c {600 * 1024} /dev/zero >&2")
        self.wait(last)
        gone = ids[0]
        eventually(lambda: self.get(gone)["outputDropped"], what="the oldest output goes")
        self.assertFalse(self.get(ids[1])["outputDropped"])
        piece = self.call("task.output", taskId=gone)["result"]
        self.assertEqual(piece, {"offset": 400 * 1024, "data": "", "next": 400 * 1024, "done": True,
                                 "dropped": 400 * 1024})
        self.assertEqual(self.project.run("task", "output", gone).out, f"[{400 * 1024} bytes dropped]\n")
        self.assertEqual(len(self.read(last, "stderr", 4 * MIB)), 600 * 1024)
        self.assertFalse(self.get(last)["outputDropped"])

    def test_a_running_task_keeps_its_own(self):
        id = self.submit(f"head -c {2 * MIB} /dev/zero; touch written; while [ ! -e go ]; do sleep 0.05; done")
        eventually(lambda: os.path.exists(self.path("written")), what="its output")
        self.wait(self.submit("echo x"))
        # Its writer has ended when all is in the pipe.
        eventually(lambda: len(self.call("task.output", taskId=id, limit=4 * MIB)["result"]["data"]) == 2 * MIB, what="all of it")
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        self.wait(id)
        eventually(lambda: self.get(id)["outputDropped"], what="its output goes")


if __name__ == "__main__":
    suite.main()
