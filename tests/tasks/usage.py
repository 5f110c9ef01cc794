#!/usr/bin/env python3
"""What a task has used: in its record and in the event of its end, as the kernel tells it to whoever waits for a process."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

MIB = 1 << 20
BURNT = 0.4  # seconds
WORK = f"""import time
memory = bytearray({200 * MIB})
memory[::4096] = b"x" * len(memory[::4096])
while time.process_time() < {BURNT}: pass
print("done")
"""


class Usage(TaskTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        child = subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.DEVNULL)
        used = os.wait4(child.pid, 0)[2]  # as /usr/bin/time does it
        child.returncode = 0
        cls.cpu, cls.memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024

    def setUp(self):
        super().setUp()
        with open(self.path("work.py"), "w", encoding="utf-8") as file:
            file.write(WORK)
        self.work = f"{sys.executable} work.py"

    def check(self, record, times=1):
        self.assertGreaterEqual(record["cpuSeconds"], times * BURNT * 0.99, record)
        self.assertLess(record["cpuSeconds"], times * (2 * self.cpu + 1), record)
        self.assertGreater(record["maxMemory"], 200 * MIB, record)
        self.assertLess(abs(record["maxMemory"] - self.memory), 40 * MIB, record)
        self.assertEqual(record["outputBytes"], times * len("done\n"), record)

    def test_a_record_says_what_the_kernel_says_and_so_does_the_event(self):
        record = self.wait(self.submit(self.work))
        self.check(record)
        self.connect()
        self.connection.send(request("events.subscribe", 1, params={"since": 1}))
        came = self.connection.answer(1)[1]  # with a shared queue it may be told before it is asked for
        while not any(event["method"] == "event.taskCompleted" for event in came):
            came.append(self.connection.next_message())
        event = next(event for event in came if event["method"] == "event.taskCompleted")
        for name in ("cpuSeconds", "maxMemory", "outputBytes"):
            self.assertEqual(event["params"][name], record[name])

    def test_the_next_daemon_knows_it_too(self):
        id = self.submit(self.work)
        eventually(lambda: self.get(id)["state"] != "queued", what="a start")
        self.project.kill(self.pid)
        self.pid = self.project.start()
        self.connect()
        self.check(self.wait(id))

    def test_attempts_are_added_up_with_all_their_processes(self):
        record = self.wait(self.submit(f"{self.work} & wait; exit 3", retries=1))
        self.assertEqual((record["state"], record["attempts"]), ("failed", 2))
        self.check(record, times=2)

    def test_a_task_that_could_not_be_started_has_used_nothing(self):
        record = self.wait(self.submit("true", cwd="/nowhere", **store.HERE))
        self.assertEqual([record[name] for name in ("cpuSeconds", "maxMemory", "outputBytes")], [None] * 3)


if __name__ == "__main__":
    suite.main()
