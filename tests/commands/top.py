#!/usr/bin/env python3
"""`top` on a terminal: what it shows, what keys do, what is left of it when it ends in whatever way, what it costs."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402
from terminal import Terminal  # noqa: E402

LEAVES = b"\x1b[?1049l"  # the other screen of an xterm
ENTERS = b"\x1b[?1049h"
SHOWS_CURSOR = b"\x1b[?25h"
QUIET_SECONDS = 2  # how long a screen at rest is watched


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def wakeups(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))


# What a shell does with one job, and nothing else: it changes no modes of the terminal.
SHELL = r"""
import os, signal, sys
def take_terminal(group):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    os.tcsetpgrp(0, group)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    take_terminal(os.getpid())
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    take_terminal(os.getpgrp())
    if not os.WIFSTOPPED(status):
        os.write(1, b"[ended %d]" % os.waitstatus_to_exitcode(status))
        break
    os.write(1, b"[stopped]")
    os.read(0, 100)
    take_terminal(job)
    os.killpg(job, signal.SIGCONT)
while os.read(0, 100):
    pass
"""


class TopOnTerminal:
    """`top` as a job of something like a shell, on a terminal of its own."""

    def __init__(self, test, *words, columns=80, rows=24, env=None):
        self.terminal = Terminal()
        test.addCleanup(self.terminal.__exit__)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.terminal.slave)
        slave = self.terminal.slave
        environment = test.project.environment({"TERM": "xterm-256color", **(env or {})})
        self.shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, suite.program(), "top", *words], stdin=slave, stdout=slave, stderr=slave,
            cwd=test.project.root, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        test.addCleanup(self.end)

    def end(self):
        """The end of its session takes the terminal from everybody in it."""
        self.shell.kill()
        self.shell.wait()

    def pid(self):
        """The process that the shell knows."""
        return eventually(lambda: [pid for pid in children(self.shell.pid) if b"top" in command_of(pid)],
                          what="top")[0]

    def resize(self, columns, rows):
        fcntl.ioctl(self.terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def drawing(self):
        """The process that draws."""
        return eventually(lambda: [pid for pid in children(self.pid()) if b"top" in command_of(pid)],
                          what="the process that draws")[0]

    def guard(self):
        return eventually(lambda: [pid for pid in children(self.pid()) if b"--guard-terminal" in command_of(pid)],
                          what="the guard")[0]

    def wait_for(self, *texts, since=0):
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode()
            if not self.terminal.screen.wait_until(lambda seen: data in seen[since:], PATIENCE):
                raise AssertionError(f"{text!r} is not in {self.terminal.screen.text()[since:]!r}")
        return self

    def shown(self):
        return len(self.terminal.screen.data)

    def type(self, keys):
        self.terminal.type(keys if isinstance(keys, bytes) else keys.encode())

    def exit_code(self):
        """As a shell would have it: negative for a signal."""
        found = self.terminal.screen.wait_until(lambda data: re.search(rb"\[ended (-?\d+)\]", data), PATIENCE)
        if not found:
            raise AssertionError(f"it has not ended: {self.terminal.screen.text()!r}")
        return int(found.group(1))

    def modes(self):
        return termios.tcgetattr(self.terminal.slave)

    def is_given_back(self):
        data = bytes(self.terminal.screen.data)
        left = data.rfind(LEAVES)
        return left > data.rfind(ENTERS) and SHOWS_CURSOR in data and self.modes() == self.before


class TopTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.daemon = self.project.start()
        self.addCleanup(self.project.run, "daemon", "stop", "--force")

    def submit(self, script, **params):
        answer = self.project.call("task.submit", params={"prompt": script, "agent": "shell", **params})
        return answer["result"]["taskId"]

    def state(self, id):
        return self.project.call("task.get", params={"taskId": id})["result"]["state"]

    def top(self, *words, **options):
        return TopOnTerminal(self, *words, **options).wait_for("RUNNING")

    def assert_given_back(self, top):
        eventually(top.is_given_back, what=f"the terminal as it was; it got {bytes(top.terminal.screen.data[-200:])!r}")


class Refusals(TopTestCase):
    def test_what_is_no_terminal_is_refused(self):
        self.assert_refused(self.project.run("top"), 1, "top draws on a terminal, and this is none")
        self.assert_refused(self.project.run("top", "--json"), 1, "top is for people")

    def test_a_terminal_that_cannot_be_drawn_on_is_refused(self):
        for name, words in (("dumb", "cannot move its cursor"), ("nonsense-9", "'nonsense-9', which is not known"),
                            ("", "TERM is not set")):
            with self.subTest(name):
                top = TopOnTerminal(self, env={"TERM": name})
                self.assertEqual(top.exit_code(), 1)
                top.wait_for(words)
                self.assertEqual(top.modes(), top.before)

    def test_without_a_daemon_the_screen_is_left_alone(self):
        self.project.run("daemon", "stop")
        top = TopOnTerminal(self)
        self.assertEqual(top.exit_code(), 3)
        top.wait_for("no daemon is running")
        self.assertNotIn(ENTERS, top.terminal.screen.data)

    def test_a_trace_does_not_go_to_the_screen(self):
        top = TopOnTerminal(self, "--trace")
        self.assertEqual(top.exit_code(), 1)
        top.wait_for("--trace would write over the screen")


class Ends(TopTestCase):
    def test_q_gives_the_terminal_back(self):
        top = self.top()
        self.assertNotEqual(top.modes(), top.before)
        top.type("q")
        self.assertEqual(top.exit_code(), 0)
        self.assertTrue(top.is_given_back())

    def test_signals_that_end_it_give_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number.name):
                top = self.top()
                os.kill(top.pid(), number)
                self.assertEqual(top.exit_code(), 128 + number)
                self.assertTrue(top.is_given_back())

    def test_who_draws_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGABRT):
            with self.subTest(number.name):
                top = self.top()
                guard = top.guard()
                os.kill(top.drawing(), number)
                self.assertEqual(top.exit_code(), 128 + number)
                self.assertTrue(top.is_given_back(), "before whoever started it goes on")
                top.wait_for(f"top was ended by {number.name}")
                self.assertFalse(self.project.is_running(guard))

    def test_who_waits_is_killed(self):
        top = self.top()
        drawing, guard = top.drawing(), top.guard()
        os.kill(top.pid(), signal.SIGKILL)
        self.assertEqual(top.exit_code(), -signal.SIGKILL)
        self.project.wait_gone(drawing)
        self.assert_given_back(top)
        self.project.wait_gone(guard)

    def test_both_are_killed_at_once(self):
        top = self.top()
        drawing, guard = top.drawing(), top.guard()
        os.kill(drawing, signal.SIGSTOP)  # so that it cannot help
        os.killpg(top.pid(), signal.SIGKILL)
        self.project.wait_gone(guard)
        self.assert_given_back(top)

    def test_a_shell_that_reads_already_keeps_its_modes(self):
        top = self.top()
        guard = top.guard()
        reading = termios.tcgetattr(top.terminal.slave)
        reading[3] |= termios.ISIG  # as readline has it
        termios.tcsetattr(top.terminal.slave, termios.TCSANOW, reading)
        os.killpg(top.pid(), signal.SIGKILL)
        self.project.wait_gone(guard)
        top.wait_for(LEAVES)
        self.assertEqual(top.modes(), termios.tcgetattr(top.terminal.slave))
        self.assertFalse(top.modes()[3] & termios.ICANON)

    def test_it_is_suspended_and_comes_back(self):
        top = self.top()
        top.type(b"\x1a")
        top.wait_for("[stopped]")
        self.assertTrue(top.is_given_back())
        seen = top.shown()
        top.type("\n")
        top.wait_for(ENTERS, "RUNNING", since=seen)
        os.kill(top.pid(), signal.SIGTSTP)
        top.wait_for("[stopped]", since=seen)
        self.assertTrue(top.is_given_back())
        seen = top.shown()
        top.type("\n")
        top.wait_for(ENTERS, since=seen)
        top.type("q")
        self.assertEqual(top.exit_code(), 0)
        self.assertTrue(top.is_given_back())


class Screens(TopTestCase):
    def test_tasks_come_and_go_and_are_followed(self):
        top = self.top()
        os.mkfifo(os.path.join(self.project.root, "fifo"))
        id = self.submit("echo first words; read line < fifo; echo last words; exit 3")
        top.wait_for(id, "first words")
        seen = top.shown()
        top.type("\r")
        top.wait_for("OUTPUT", "first words", since=seen)
        with open(os.path.join(self.project.root, "fifo"), "w", encoding="ascii") as file:
            file.write("go\n")
        top.wait_for("last words", "exited with code 3", since=seen)
        seen = top.shown()
        top.type("q")
        top.wait_for("ENDED", "exit 3", since=seen)

    def submit_many(self, count, **params):
        with self.project.connect() as connection:
            for i in range(count):
                connection.send(json.dumps({"jsonrpc": "2.0", "id": i, "method": "task.submit",
                                            "params": {"prompt": "true", "agent": "shell", **params}}))
            for i in range(count):
                connection.answer(i)

    def test_what_ended_last_is_there_however_old_it_is(self):
        os.mkfifo(os.path.join(self.project.root, "fifo"))
        begun = time.monotonic()
        id = self.submit("read line < fifo # oldest")
        self.submit_many(55)
        eventually(lambda: self.project.call("task.stats")["result"]["completed"] == 55, what="the other ones")
        with open(os.path.join(self.project.root, "fifo"), "w", encoding="ascii") as file:
            file.write("go\n")
        eventually(lambda: self.state(id) == "completed", what="its end")
        top = self.top().wait_for("# oldest")
        whole = top.terminal.screen.wait_until(lambda seen: b"56/min" in seen, PATIENCE)
        self.assertTrue(whole or time.monotonic() - begun - PATIENCE > 45, "all of them have ended within a minute")

    def test_a_cancel_is_asked_for(self):
        id = self.submit("sleep 60")
        eventually(lambda: self.state(id) == "running")
        top = self.top().wait_for(id)
        top.type("c")
        top.wait_for(f"Cancel {id}?")
        top.type("n")
        top.wait_for(f"{id} goes on")
        self.assertEqual(self.state(id), "running")
        top.type("cy")
        eventually(lambda: self.state(id) == "cancelled", what="the cancel")
        top.wait_for("cancelled")

    def test_the_queue_is_paused_and_goes_on(self):
        if not any(method["name"] == "queue.pause" for method in self.project.call("listMethods")["result"]):
            self.skipTest("this daemon has no queue.pause")
        top = self.top()
        top.type("p")
        top.wait_for("the queue is paused: nothing new starts")
        id = self.submit("true")
        top.wait_for(id)
        self.assertEqual(self.state(id), "queued")
        top.type("p")
        eventually(lambda: self.state(id) == "completed", what="the task of a queue that goes on")

    def test_a_drain_is_told_as_long_as_it_lasts(self):
        id = self.submit("exec sleep 60")
        eventually(lambda: self.state(id) == "running", what="a task to wait for")
        stop = self.project.popen("daemon", "stop", "--drain")
        eventually(lambda: self.project.call("queue.status")["result"]["stopping"], what="the drain")
        self.top().wait_for("the daemon is stopping: nothing new starts")
        self.project.run("daemon", "stop", "--force")
        stop.communicate(timeout=PATIENCE)

    def test_another_size_is_another_layout(self):
        for i in range(30):
            self.submit(f"sleep 60 # {i}")
        top = self.top(columns=60, rows=8)
        self.assertNotIn(b"task-30", top.terminal.screen.data)
        seen = top.shown()
        top.resize(120, 60)
        top.wait_for("task-30", since=seen)
        for columns, rows in ((1, 1), (5, 3), (19, 2), (1000, 300), (80, 24)):
            top.resize(columns, rows)
        seen = top.shown()
        top.type("?")
        top.wait_for("suspend; fg brings it back", since=seen)

    def test_what_others_wrote_does_not_reach_the_terminal_as_it_is(self):
        evil = "\x1b]0;stolen\x07\x1b[2J\x1b[31m\x9b31m\u202eabc\x00\x08"
        id = self.submit("printf '\\033]0;stolen\\007\\033[5i\\377seen\\n'; sleep 60 # " + evil.replace("\x00", ""))
        top = self.top().wait_for(id, "seen")
        seen = top.shown()
        top.type("\r")
        top.wait_for("OUTPUT", since=seen)
        for bad in (b"\x1b]0;", b"\x1b[5i", b"\x1b[31m\x9b", b"\xe2\x80\xae", b"\x08abc"):
            self.assertNotIn(bad, top.terminal.screen.data)

    def test_a_daemon_that_goes_is_waited_for(self):
        top = self.top()
        self.project.kill(self.daemon)
        top.wait_for("The daemon is gone")
        seen = top.shown()
        self.daemon = self.project.start()
        id = self.submit("sleep 60")
        top.wait_for(id, since=seen)
        top.type("q")
        self.assertEqual(top.exit_code(), 0)


class Cost(TopTestCase):
    def test_nothing_is_drawn_and_hardly_anything_done_at_rest(self):
        top = self.top().wait_for("q quit", "nothing runs")
        drawing = top.drawing()
        eventually(lambda: self.draws_nothing(top), what="all that the daemon had to tell is drawn")
        seen, before, begun = top.shown(), wakeups(drawing), time.monotonic()
        time.sleep(QUIET_SECONDS)  # what is counted is what happens meanwhile
        self.assertEqual(bytes(top.terminal.screen.data[seen:]), b"")
        self.assertLessEqual(wakeups(drawing) - before, 4 * (time.monotonic() - begun))

    @staticmethod
    def draws_nothing(top):
        seen = top.shown()
        time.sleep(1)
        return top.shown() == seen

    def test_a_flood_of_output_costs_no_more_than_a_line(self):
        id = self.submit("yes words-of-a-flood")
        top = self.top().wait_for(id, "words-of-a-flood")
        drawing, begun = top.drawing(), time.monotonic()
        seen, before = top.shown(), wakeups(drawing)
        time.sleep(QUIET_SECONDS)
        woken, drawn, seconds = wakeups(drawing) - before, top.shown() - seen, time.monotonic() - begun
        self.assertLessEqual(woken, 30 * seconds)
        self.assertLessEqual(drawn, 4096 * seconds)
        self.project.call("task.cancel", params={"taskId": id})

    def test_a_thousand_tasks_are_drawn_at_most_ten_times_a_second(self):
        top = self.top()
        began, seen = time.monotonic(), top.shown()
        with self.project.connect() as connection:
            for i in range(1000):
                connection.send(json.dumps({"jsonrpc": "2.0", "id": i, "method": "task.submit",
                                            "params": {"prompt": "true", "agent": "shell", "priority": i % 7}}))
            for i in range(1000):
                connection.answer(i)
        eventually(lambda: self.project.call("task.stats")["result"]["completed"] == 1000, 4 * PATIENCE, "the tasks")
        top.wait_for("1000", since=seen)
        draws = bytes(top.terminal.screen.data[seen:]).count(b"\x1b[24;")  # each ends in the last row
        self.assertLessEqual(draws, 10 * (time.monotonic() - began) + 1)
        self.assertGreater(draws, 0)
        top.type("q")
        self.assertEqual(top.exit_code(), 0)


if __name__ == "__main__":
    suite.main()
