#!/usr/bin/env python3
"""What people see of tasks on a terminal and what scripts read: formats, columns, progress, lists that are watched."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402
from terminal import Terminal  # noqa: E402

SETTINGS = """
default_agent = "echo"
[agents.echo]
command = ["printf", "%s", "{prompt}"]
[agents.where]
command = ["pwd"]
"""


class ViewTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.write_settings(SETTINGS)
        self.project.start()

    def submit(self, script, *options):
        result = self.project.run("task", "submit", "--agent", "shell", *options, "--", script)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out.strip()

    def on_terminal(self, terminal, *words):
        """The program with its output on TERMINAL, which is its own."""
        return self.project.popen(*words, stdin=terminal.slave, stdout=terminal.slave, stderr=terminal.slave,
                                  env={"TERM": "xterm-256color"}, start_new_session=True)

    def shows(self, terminal, pattern):
        found = terminal.screen.wait_until(lambda data: re.search(pattern.encode(), bytes(data)), PATIENCE)
        self.assertTrue(found, f"{pattern}: not in {terminal.screen.text()!r}")


class Scripts(ViewTestCase):
    def test_a_format_prints_what_it_names(self):
        id = self.submit("exit 3")
        self.assertEqual(self.project.run("task", "wait", id, "--format", "{id}|{state}|{error.reason}|{signal}|{{}}").out,
                         f"{id}|failed|exit||{{}}\n")
        for words in (["get", id], ["list"], ["wait", id]):
            with self.subTest(words):
                result = self.project.run("task", *words, "--format", r"{exitCode}\t{prompt}")
                self.assertEqual(result.out, "3\texit 3\n", result)
        self.assertEqual(self.project.run("task", "stats", "--format", "{failed} of {total}").out, "1 of 1\n")
        result = self.project.run("task", "submit", "x", "--format", "{id} {state} {metadata.cwd}")
        place = "" if store.SHARED else self.project.root  # a shared queue has it relative to the project's root
        self.assertRegex(result.out, rf"^task-2 (queued|running|completed) {place}\n$")
        result = self.project.run("chat", "send", "hello", "-f", "--format", "{state} {result} {priority}")
        self.assertEqual((result.out, result.code), ("completed hello 5\n", 0))

    def test_a_format_that_is_wrong_does_nothing(self):
        self.assert_refused(self.project.run("task", "submit", "x", "--format", "{stat}"), 1, "no field 'stat'", "'state' is meant",
                            "createdAt")
        self.assert_refused(self.project.run("task", "submit", "x", "-f", "--format", "{id"), 123, "not closed")
        self.assert_refused(self.project.run("task", "list", "--json", "--format", "{id}"), 1, "exclude each other")
        self.assertEqual(self.project.run("task", "list", "--json").out, "[]\n")

    def test_columns_are_chosen(self):
        id = self.submit("exit 3")
        self.project.run("task", "wait", "1")
        lines = self.project.run("task", "list", "--columns", "exit,id,error").out.splitlines()
        self.assertEqual([line.split(maxsplit=2) for line in lines],
                         [["EXIT", "ID", "ERROR"], ["3", id, "exited with code 3"]])
        self.assert_refused(self.project.run("task", "list", "--columns", "id,ext"), 1, "no column 'ext'", "'exit' is meant")

    def test_a_number_is_a_task(self):
        self.submit("exit 4")
        self.assertEqual(self.project.run("task", "wait", "1").code, 4)
        self.assertEqual(self.project.run("task", "get", "1", "--format", "{id}").out, "task-1\n")
        self.assertEqual(self.project.run("task", "submit", "7", "--after", "1", "--format", "{prompt} {state}").out, "7 failed\n")

    def test_where_a_task_works(self):
        sub = os.path.join(self.project.root, "sub")
        os.mkdir(sub)
        root = self.project.root
        for cwd, options, place in ((root, [], root), (sub, [], sub), ("/", ["--project", root], root),
                                    (root, ["--cwd", "sub"], sub), (sub, ["--cwd", "/", *store.HERE_FLAG], "/")):
            for words in (["task", "submit"], ["chat", "send"]):
                if "--here" in options and words[0] == "chat":
                    continue
                with self.subTest(words=words, cwd=cwd, options=options):
                    result = self.project.run(*words, "--agent", "where", "-f", "x", *options, cwd=cwd)
                    self.assertEqual((result.out, result.code), (place + "\n", 0), result)
        self.assert_refused(self.project.run("task", "submit", "x", "--cwd", "nowhere"), 1, "nowhere is no folder")

    def test_the_environment_and_retries_reach_the_task(self):
        result = self.project.run("task", "submit", "--agent", "shell", "-f", "--env", "A=b=c", "--env", "B=", 'echo "$A.$B"')
        self.assertEqual(result.out, "b=c.\n", result)
        id = self.submit("exit 1", "--retries", "2")
        self.assertEqual(self.project.run("task", "get", id, "--format", "{metadata.retries}").out, "2\n")
        self.project.run("task", "cancel", id)

    def test_all_are_cancelled(self):
        running = [self.submit("exec sleep 60") for _ in range(3)]
        eventually(lambda: self.project.call("task.stats")["result"]["running"] == 3, what="they run")
        queued = [self.submit("exec sleep 60") for _ in range(3)]
        ended = self.submit("true", "--after", self.submit("true", "--priority", "9"), "--priority", "9")
        self.assertEqual(self.project.run("task", "cancel", "--all", "--state", "queued", "--format", "{id}").out.split(),
                         [ended, "task-7", *queued[::-1]])
        self.assertEqual(self.project.run("task", "stats", "--format", "{running} {queued}").out, "3 0\n")
        result = self.project.run("task", "cancel", "--all")
        lines = sorted(result.out.splitlines())  # it waits for a second at most, and they may take longer
        self.assertEqual([re.sub("cancelling$", "cancelled", line) for line in lines], [f"{id} cancelled" for id in running])
        self.assertEqual(self.project.run("task", "wait", *running).code, 130)
        self.assertEqual(self.project.run("task", "cancel", "--all").out, "nothing to cancel\n")
        self.assert_refused(self.project.run("task", "cancel"), 1, "--all")
        self.assert_refused(self.project.run("task", "cancel", "--all", "1"), 1, "takes no ID")
        self.assert_refused(self.project.run("task", "cancel", "1", "--state", "queued"), 1, "goes with --all")

    def test_several_are_told_apart(self):
        ids = [self.submit("printf 'a\\nb'"), self.submit("echo c; exit 2")]
        self.assertEqual(self.project.run("task", "wait", *ids).code, 2)
        shown = f"{ids[0]} | a\n{ids[0]} | b\n{ids[1]} | c\n"
        self.assertEqual(self.project.run("task", "output", *ids, ids[0]).out, shown)
        result = self.project.run("task", "output", "-f", *ids)
        self.assertEqual((sorted(result.out.splitlines()), result.code), (shown.splitlines(), 2), result)

    def test_events_in_a_pipe_are_messages(self):
        self.project.run("task", "wait", self.submit("true"))
        with self.project.popen("events", "--since", "1") as events:
            if store.SHARED:
                self.assertIn(b'"event.workerChanged"', events.stdout.readline())
            for kind in ("Queued", "Started", "Completed"):
                self.assertRegex(events.stdout.readline().decode(), rf'^{{"jsonrpc":.*"event\.task{kind}"')
            events.kill()

    def test_what_a_shell_may_offer(self):
        self.submit("exit 1")
        live = self.submit("sleep 60")
        self.project.run("task", "wait", "1")
        self.assertEqual(self.offered("task", "duet-rpc"), [live, "task-1"])
        self.assertEqual(self.offered("live-task"), [live])
        self.assertEqual(self.offered("ended-task"), ["task-1"])
        self.assertEqual(self.offered("live-task", "--", "duet-rpc", "--project", self.project.root, "", cwd="/"), [live])
        self.project.run("daemon", "stop", "--force")
        result = self.project.run("candidates", "task")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""), result)


class OnATerminal(ViewTestCase):
    def test_events_are_for_people(self):
        self.project.run("task", "wait", self.submit("exit 3"))
        with Terminal() as terminal, self.on_terminal(terminal, "events", "--since", "1", "--no-color") as process:
            self.shows(terminal, r"\d\d:\d\d:\d\d  task-1    failed     shell  exit 3  after \d")
            self.submit("true")
            self.shows(terminal, r"\d\d:\d\d:\d\d  task-2    queued     shell\r\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
        with Terminal() as terminal, self.on_terminal(terminal, "events", "--since", "1", "--json") as process:
            self.shows(terminal, '{"jsonrpc"')
            process.kill()

    def test_a_wait_shows_how_far_it_is(self):
        first, second = self.submit("sleep 60"), self.submit("sleep 60")
        with Terminal() as terminal, self.on_terminal(terminal, "task", "wait", first, second) as process:
            self.shows(terminal, rf"0 of 2 done; running: {first} for [0-9.ms]+, {second} for")
            self.project.run("task", "cancel", first)
            self.shows(terminal, rf"{first} cancelled\r\n")
            self.shows(terminal, rf"1 of 2 done; running: {second} for")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
            self.shows(terminal, rf"the tasks go on; 'duet-rpc task wait {first} {second}' comes back")

    def test_an_interrupted_follower_says_how_to_come_back(self):
        id = self.submit("echo up; sleep 60")
        with self.project.popen("task", "output", "-f", id) as process:
            self.assertEqual(process.stdout.readline(), b"up\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=PATIENCE)[1].decode(),
                             f"duet-rpc: {id} goes on; 'duet-rpc task output -f {id}' comes back, "
                             f"'duet-rpc task cancel {id}' ends it\n")
            self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(self.project.run("task", "get", id, "--format", "{state}").out, "running\n")
        link = os.path.join(self.project.place.name, "my shop")
        os.symlink(self.project.root, link)
        with self.project.popen("task", "output", "-f", id, "--project", link) as process:
            self.assertEqual(process.stdout.readline(), b"up\n")
            process.send_signal(signal.SIGINT)
            self.assertIn(f"task output -f {id} --project '{link}'' comes back", process.communicate(timeout=PATIENCE)[1].decode())

    def test_an_interrupted_follower_of_several_loses_no_line_without_an_end(self):
        self.addCleanup(self.project.run, "task", "cancel", "--all")
        first, second = self.submit("printf 'up\nhalf'; sleep 60"), self.submit("sleep 60")
        with self.project.popen("task", "output", "-f", first, second) as process:
            self.assertEqual(process.stdout.readline().decode(), f"{first} | up\n")
            process.send_signal(signal.SIGINT)
            out, told = process.communicate(timeout=PATIENCE)
            self.assertEqual(out.decode(), f"{first} | half\n")
            self.assertIn("the tasks go on", told.decode())
            self.assertEqual(process.returncode, -signal.SIGINT)

    def test_a_list_is_painted_again_when_something_changes(self):
        with Terminal() as terminal, self.on_terminal(terminal, "task", "list", "--watch", "--no-color") as process:
            self.shows(terminal, r"\x1b\[\?1049h")
            self.shows(terminal, r"0 running(.|\s)*no tasks")
            id = self.submit("sleep 60")
            self.shows(terminal, rf"1 running(.|\s)*{id}  running")
            daemon = self.project.pid()
            self.project.kill(daemon)
            self.shows(terminal, "the daemon is gone")
            self.project.start()
            self.project.run("task", "cancel", id)
            self.shows(terminal, rf"{id}  cancelled")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGTERM)
            self.shows(terminal, r"\x1b\[\?25h\x1b\[\?1049l$")

    def test_a_list_is_watched_on_terminals_only(self):
        self.assert_refused(self.project.run("task", "list", "--watch"), 1, "stdout is none", "events")
        self.assert_refused(self.project.run("task", "list", "--watch", "--json"), 1, "neither --json nor --format")


if __name__ == "__main__":
    suite.main()
