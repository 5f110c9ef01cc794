#!/usr/bin/env python3
"""What a task writes: kept as it is, read by offset, bounded on disk and in memory.

    output.py --program PATH [--megabytes N]      what the largest task writes, 300 unless given
"""

import base64
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from project import memory  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

MIB = 1 << 20
KEPT = 64 * MIB
LINE = 64  # bytes: each line of the large task says its own number

# Writes ARGV[1] bytes in lines that tell where they are.
WRITER = f"""
import sys
total = int(sys.argv[1]) // {LINE}
for first in range(0, total, 4096):
    lines = ["%0{LINE - 1}d\\n" % number for number in range(first, min(first + 4096, total))]
    sys.stdout.write("".join(lines))
"""


def line(number):
    return b"%063d\n" % number


def expected(offset, size):
    """What the large task wrote there."""
    first, last = offset // LINE, (offset + size) // LINE
    return b"".join(map(line, range(first, last + 1)))[offset - first * LINE:][:size]


class OutputTestCase(TaskTestCase):
    def read(self, id, offset=0, limit=MIB, encoding="base64"):
        return self.call("task.output", taskId=id, offset=offset, limit=limit, encoding=encoding)["result"]

    def bytes_at(self, id, offset, limit=MIB):
        return base64.b64decode(self.read(id, offset, limit)["data"])


class Large(OutputTestCase):
    def test_the_middle_is_dropped_and_its_extent_is_exact(self):
        size = int(suite.option("megabytes") or 300) * MIB
        with open(self.path("writer.py"), "w", encoding="utf-8") as file:
            file.write(WRITER)
        id = self.submit(f"exec {sys.executable} writer.py {size}")
        before = memory(self.pid)
        record = self.call("task.wait", taskId=id, timeoutSeconds=30)
        while record["result"]["state"] == "running":
            record = self.call("task.wait", taskId=id, timeoutSeconds=30)
        self.assertEqual(record["result"]["state"], "completed")
        self.assertEqual(record["result"]["result"].encode(), expected(size - 65536, 65536))
        self.assertLess(memory(self.pid, "VmHWM") - before, 16 * MIB)

        self.assertEqual(self.bytes_at(id, 0), expected(0, MIB))
        gap = self.read(id, size // 2)
        self.assertEqual(set(gap), {"offset", "data", "next", "done", "dropped"})
        tail = gap["offset"]
        self.assertEqual(base64.b64decode(gap["data"]), expected(tail, MIB))
        head = KEPT // 2
        before_gap = self.read(id, head - 100)
        self.assertEqual((base64.b64decode(before_gap["data"]), before_gap["next"], before_gap["done"]),
                         (expected(head - 100, 100), head, False))
        at_gap = self.read(id, head, 4096)
        self.assertEqual((at_gap["offset"], at_gap["dropped"]), (tail, gap["dropped"]))
        self.assertEqual(tail - head, size - KEPT)  # nothing else is missing
        self.assertEqual(self.bytes_at(id, size - 5000), expected(size - 5000, 5000))
        end = self.read(id, size)
        self.assertEqual((end["data"], end["next"], end["done"]), ("", size, True))
        with self.project.popen("task", "output", id) as process:
            self.assertEqual(process.stdout.read(head), expected(0, head))
            mark = b"[%d bytes dropped]" % (size - KEPT)
            rest = process.stdout.read(200).lstrip(b"\n")
            self.assertTrue(rest.startswith(mark), rest[:80])
            process.kill()


class Exact(OutputTestCase):
    def test_invalid_text_is_shown_and_not_fatal(self):
        id = self.submit(r"printf 'a\377\200b\342\202\254\342\202'")
        self.wait(id)
        self.assertEqual(self.bytes_at(id, 0), b"a\xff\x80b\xe2\x82\xac\xe2\x82")
        self.assertEqual(self.read(id, encoding="utf-8")["data"].rstrip("\ufffd"), "a\ufffd\ufffdb\u20ac")
        self.assertEqual(self.get(id)["result"].rstrip("\ufffd"), "a\ufffd\ufffdb\u20ac")

    def test_no_character_is_cut(self):
        id = self.submit("i=0; while [ $i -lt 200 ]; do printf '\u20ac\U0001f600x'; i=$((i+1)); done")
        self.wait(id)
        for limit in range(4, 16):
            offset, text = 0, ""
            while not (piece := self.read(id, offset, limit, "utf-8"))["done"] or piece["data"]:
                text, offset = text + piece["data"], piece["next"]
            self.assertEqual(text, "\u20ac\U0001f600x" * 200)

    def test_a_grandchild_that_holds_the_pipe_does_not_delay_the_end(self):
        id = self.submit("sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.1; touch alive; done' & "
                         "until [ -s child ]; do sleep 0.05; done; echo out; exit 4")
        record = self.wait(id)
        with open(self.path("child"), encoding="ascii") as file:
            self.project.wait_gone(int(file.read()))  # it has 5 s
        self.assertLess(self.told_at(id), os.stat(self.path("alive")).st_mtime, "it was waited for")
        self.assertEqual((record["state"], record["exitCode"], record["result"]), ("failed", 4, "out\n"))

    def test_following_across_restarts_gives_the_file(self):
        with open(self.path("writer.py"), "w", encoding="utf-8") as file:
            file.write(WRITER.replace("    sys.stdout.write", "    __import__('time').sleep(0.02)\n    sys.stdout.write"))
        size = 24 * MIB
        id = self.submit(f"exec {sys.executable} writer.py {size}")
        with self.project.popen("task", "output", "-f", id) as follower, open(self.path("copy"), "wb") as copy:
            restarts = [6 * MIB, 12 * MIB, 18 * MIB, size + 1]
            received = 0
            while piece := follower.stdout.read1(MIB):
                copy.write(piece)
                received += len(piece)
                if received > restarts[0]:
                    restarts.pop(0)
                    self.project.kill(self.pid, signal.SIGKILL)
                    self.pid = self.project.start()
            self.assertEqual(follower.wait(PATIENCE), 0, follower.stderr.read())
        self.connect()
        self.assertEqual(len(restarts), 1)
        with open(self.path("copy"), "rb") as copy:
            self.assertTrue(copy.read() == expected(0, size), "not the same bytes")


if __name__ == "__main__":
    suite.main()
