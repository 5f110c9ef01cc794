#!/usr/bin/env python3
"""`task`, `automation` and `chat` as people and scripts use them: what is printed, exit codes, following a task."""

import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase, Result  # noqa: E402
from terminal import run_on_terminal  # noqa: E402

SETTINGS = r"""
[agents.echo]
command = ["printf", "%s", "{prompt}"]
[agents.cat]
command = ["cat"]
stdin = "prompt"
[[rules]]
id = "saved"
trigger = { source = "watch", type = "file.create", pattern = "inbox/*" }
action = { type = "agent", agent = "shell", prompt = "cat \"$DUET_PATH\"" }
requires_approval = true
[[rules]]
id = "yearly"
trigger = { cron = "0 0 1 1 *" }
action = { type = "notify", message = "a new year" }
"""


class TaskTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.write_settings(SETTINGS)
        os.mkdir(os.path.join(self.project.root, "inbox"))
        self.daemon = self.project.start()

    def write(self, name, text):
        with open(os.path.join(self.project.root, name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o600)

    def submit(self, script, *options):
        result = self.project.run("task", "submit", "--agent", "shell", *options, "--", script)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertRegex(result.out, r"\Atask-[1-9][0-9]*\n\Z")
        return result.out.strip()

    def get(self, id):
        return self.project.run("task", "get", id, "--json").json()


class Submitting(TaskTestCase):
    def test_words_are_joined_and_arrive_as_they_are(self):
        for words, prompt in ((["it's", '"so"', "$(pwd)", "`x`"], 'it\'s "so" $(pwd) `x`'), (["two\nlines"], "two\nlines"),
                              (["--", "--json", "-f"], "--json -f"), (["żółć", "日本"], "żółć 日本")):
            with self.subTest(words):
                result = self.project.run("task", "submit", "--agent", "echo", "--follow", *words)
                self.assertEqual((result.out, result.code), (prompt, 0), result)

    def test_a_megabyte_comes_from_stdin(self):
        prompt = ("0123456789abcde\n" * 65536).encode()
        result = self.project.run("task", "submit", "--agent", "cat", "--follow", "-", input=prompt)
        self.assertEqual((len(result.out), result.out == prompt.decode(), result.code), (len(prompt), True, 0))

    def test_a_prompt_that_says_nothing_is_refused(self):
        for words in (["task", "submit", ""], ["task", "submit", " ", "\n"], ["chat", "send", "\t"]):
            with self.subTest(words):
                self.assert_refused(self.project.run(*words), 1, "the text is empty")
        self.assert_refused(self.project.run("task", "submit", "-", input=b"\n"), 1, "the text is empty")

    def test_bytes_that_are_no_text_are_refused(self):
        self.assert_refused(self.project.run("task", "submit", "--agent", "echo", b"\xff"), 1, "not UTF-8")

    def test_it_runs_where_it_was_submitted_with_that_path(self):
        folder = os.path.join(self.project.root, "sub")
        os.mkdir(folder)
        path = "/nowhere:" + os.environ["PATH"]
        result = self.project.run("task", "submit", "--agent", "shell", "--follow", *store.HERE_FLAG, 'pwd; echo "$PATH"',
                                  cwd=folder, env={"PATH": path})
        self.assertEqual(result.out, f"{folder}\n{path}\n")

    def test_json_is_what_the_daemon_gave(self):
        result = self.project.run("task", "submit", "--agent", "echo", "x", "--json").json()
        self.assertEqual(set(result), {"taskId", "state"})
        record = self.project.run("task", "submit", "--agent", "echo", "x", "--json", "--follow").json()
        self.assertEqual((record["state"], record["result"]), ("completed", "x"))

    def test_options_reach_the_task(self):
        first = self.submit("sleep 60")
        id = self.submit("true", "--priority", "-5", "--key", "k", "--time-limit", "90s", "--after", first)
        record = self.get(id)
        self.assertEqual((record["priority"], record["state"]), (-5, "queued"))
        self.assertEqual(record["metadata"]["after"], [first])
        self.assertEqual(record["metadata"]["timeoutSeconds"], 90)
        self.assertEqual(self.submit("true", "--priority", "-5", "--key", "k", "--time-limit", "90s", "--after", first), id)
        self.assertEqual(self.project.run("task", "cancel", first).code, 0)

    def test_what_is_refused_is_one_line(self):
        self.assert_refused(self.project.run("task", "submit", "--agent", "nobody", "x"), 1,
                            "no worker of the queue accepts the agent 'nobody'" if store.SHARED else
                            "there is no agent 'nobody': it must be cat, claude, echo or shell")
        self.assert_refused(self.project.run("task", "submit", "x", "--agent", "echo", "--after", "task-99"), 1, "task-99")

    def test_without_a_daemon_the_code_is_3(self):
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        for words in (["task", "submit", "x"], ["task", "list"], ["task", "output", "task-1"], ["automation", "status"],
                      ["chat", "send", "x"]):
            with self.subTest(words):
                self.assert_refused(self.project.run(*words), 3, "no daemon is running", "daemon start")
        for words in (["task", "wait", "task-1"], ["task", "output", "1", "-f"], ["task", "submit", "-f", "x"],
                      ["chat", "send", "x", "--follow"]):
            with self.subTest(words):
                self.assert_refused(self.project.run(*words), 123, "no daemon is running", "daemon start")


class Ending(TaskTestCase):
    def test_the_exit_code_is_the_tasks_own(self):
        for script, code in (("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
            with self.subTest(script):
                self.assertEqual(self.project.run("task", "submit", "--agent", "shell", "--follow", script).code, code)
                self.assertEqual(self.project.run("task", "wait", self.submit(script)).code, code)

    def test_a_task_that_failed_is_no_success_whatever_its_code(self):
        script = "trap 'exit 0' TERM; sleep 60 & wait"
        result = self.project.run("task", "submit", "--agent", "shell", "--time-limit", "3s", "--follow", script)
        self.assertEqual(result.code, 1)

    def test_of_several_the_first_that_is_not_0(self):
        ids = [self.submit(script) for script in ("true", "exit 3", "exit 4")]
        result = self.project.run("task", "wait", *ids)
        self.assertEqual(result.code, 3)
        self.assertEqual([line.split()[:2] for line in result.out.splitlines()],
                         [[ids[0], "completed"], [ids[1], "failed:"], [ids[2], "failed:"]])
        records = self.project.run("task", "wait", *ids, "--json").out.splitlines()
        self.assertEqual([json.loads(line)["exitCode"] for line in records], [0, 3, 4])

    def test_cancelled_is_130(self):
        id = self.submit("sleep 60")
        follower = self.project.popen("task", "output", "-f", id)
        result = self.project.run("task", "cancel", id)
        self.assertRegex(result.out, rf"\A{id} (cancelled|cancelling)\n\Z")  # it waits for a second at most
        self.assertEqual(result.code, 0)
        self.assertEqual(follower.wait(PATIENCE), 130)
        follower.communicate()
        self.assertEqual(self.project.run("task", "wait", id).code, 130)

    def test_followers_hear_of_a_task_that_is_ended_with_the_daemon(self):
        for prompt, code, rest in (("echo up; exec sleep 1000", 143, ""),
                                   ("trap 'echo bye; exit 5' TERM; echo up; while :; do read x; done <fifo", 5, "bye\n")):
            with self.subTest(prompt):
                id = self.submit("test -p fifo || mkfifo fifo; exec 3<>fifo; " + prompt)
                follower = self.project.popen("task", "output", "-f", id)
                waiting = self.project.popen("task", "wait", id, "--trace")
                self.assertEqual(follower.stdout.readline(), b"up\n")
                for line in waiting.stderr:
                    if b'"task.wait"' in line:
                        break
                self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
                self.assertEqual(follower.communicate(timeout=PATIENCE)[0].decode(), rest)
                waiting.communicate(timeout=PATIENCE)
                self.assertEqual((follower.returncode, waiting.returncode), (code, code))
                self.project.start()

    def test_what_cannot_be_cancelled_does_not_protect_the_others(self):
        ended, running = self.submit("true"), self.submit("sleep 60")
        self.project.run("task", "wait", ended)
        result = self.project.run("task", "cancel", "task-99", ended, running)
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out, rf"\A{running} (cancelled|cancelling)\n\Z")
        self.assertEqual(result.err.count("\n"), 2, result)

    def test_time_that_is_over_is_124(self):
        id = self.submit("sleep 60")
        for words in (["wait", id], ["output", "-f", id]):
            with self.subTest(words):
                self.assert_refused(self.project.run("task", *words, "--timeout", "3s"), 124, f"{id} has not ended")
        self.project.run("task", "cancel", id)

    def test_an_unknown_id_is_told_before_waiting(self):
        id = self.submit("sleep 60")
        self.assert_refused(self.project.run("task", "wait", id, "task-99"), 123, "task-99")
        self.assertEqual(self.project.run("task", "wait").code, 123)
        self.assertEqual(self.project.run("task", "submit", "--agent", "nobody", "-f", "x").code, 123)
        self.project.run("task", "cancel", id)


class Output(TaskTestCase):
    def bytes_of(self, *words):
        with self.project.popen("task", "output", *words) as process:
            return process.communicate(timeout=PATIENCE)[0], process.returncode

    def test_is_exact(self):
        script = r"printf 'a\000b\377\200\n\342\202'; printf 'end'"
        expected = b"a\0b\xff\x80\n\xe2\x82end"
        id = self.submit(script)
        self.project.run("task", "wait", id)
        self.assertEqual(self.bytes_of(id), (expected, 0))
        self.assertEqual(self.bytes_of("-f", id), (expected, 0))

    def test_into_a_pipe_that_does_not_block(self):
        size = 3_000_000
        id = self.submit(f"head -c {size} /dev/zero")
        self.project.run("task", "wait", id)
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        with self.project.popen("task", "output", id, stdout=write_end) as process, open(read_end, "rb") as pipe:
            os.close(write_end)
            self.assertEqual(len(pipe.read()), size)
            self.assertEqual(process.wait(PATIENCE), 0, process.stderr.read())

    def test_of_now_does_not_wait(self):
        id = self.submit("echo begun; sleep 60")
        eventually(lambda: self.bytes_of(id) == (b"begun\n", 0), what="the first line")
        self.project.run("task", "cancel", id)

    def test_is_followed_through_kills_and_restarts_of_the_daemon(self):
        lines = [f"line {i}" for i in range(50)]
        id = self.submit("i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; exit 9")
        follower = self.project.popen("task", "output", "-f", id)
        waiter = self.project.popen("task", "wait", id)
        eventually(lambda: b"line 5\n" in self.bytes_of(id)[0], what="some lines")
        self.project.kill(self.daemon)
        self.project.start()
        eventually(lambda: b"line 20\n" in self.bytes_of(id)[0], what="more lines")
        self.assertEqual(self.project.run("daemon", "restart").code, 0)
        self.project.pids.add(self.project.pid())
        self.assertEqual(follower.communicate(timeout=PATIENCE)[0].decode().splitlines(), lines)
        self.assertEqual(follower.returncode, 9)
        self.assertIn(id, waiter.communicate(timeout=PATIENCE)[0].decode())
        self.assertEqual(waiter.returncode, 9)


class Readers(TaskTestCase):
    """Who follows ends when nobody reads any more, also while there is nothing to print."""

    def assert_ends(self, *words):
        with self.project.popen(*words) as follower:
            if follower.stderr:
                follower.stderr.close()
            follower.stdout.readline()
            follower.stdout.close()
            self.assertIn(follower.wait(PATIENCE), (-13, 1), words)

    def test_of_output(self):
        id = self.submit("echo up; sleep 60")
        self.assert_ends("task", "output", "-f", id)
        self.assert_ends("task", "submit", "--agent", "shell", "-f", "echo up; sleep 60")

    def test_of_events(self):
        self.submit("true")
        self.assert_ends("events", "--since", "1")

    def test_of_events_while_no_daemon_runs(self):
        self.submit("true")
        with self.project.popen("events", "--since", "1", "--timeout", "100s") as follower:
            follower.stdout.readline()
            self.project.kill(self.daemon)
            self.assertIn(b"waiting for the next one", follower.stderr.readline())
            follower.stdout.close()
            self.assertIn(follower.wait(PATIENCE), (-13, 1))

    def test_of_the_log(self):
        self.assert_ends("daemon", "logs", "-f")


class Showing(TaskTestCase):
    def test_a_list_for_people_and_for_programs(self):
        ids = [self.submit("true"), self.submit("echo 'line\none'; exit 2")]
        self.project.run("task", "wait", *ids)
        lines = self.project.run("task", "list").out.splitlines()
        self.assertRegex(lines[0], r"^ID +STATE +AGENT +CREATED +RAN +PROMPT$")
        self.assertRegex(lines[1], rf"^{ids[1]} +failed +shell +\S.* +\S+ +echo 'line one'; exit 2$")
        self.assertRegex(lines[2], rf"^{ids[0]} +completed +shell ")
        self.assertEqual([task["id"] for task in self.project.run("task", "list", "--json").json()], ids[::-1])
        self.assertEqual([task["id"] for task in self.project.run("task", "list", "--state", "FAILED", "--json").json()],
                         ids[1:])
        self.assertEqual(len(self.project.run("task", "list", "--limit", "1").out.splitlines()), 2)

    def test_an_empty_list_says_so(self):
        self.assertEqual(self.project.run("task", "list").out, "no tasks\n")
        self.assertEqual(self.project.run("task", "list", "--json").out, "[]\n")

    def test_a_list_fits_the_terminal_and_shows_the_latest_line(self):
        id = self.submit("echo first; echo the 'latest' line; sleep 60; " + "#" * 300)
        eventually(lambda: "latest" in self.project.run("task", "output", id).out, what="output")
        argv = [suite.program(), "task", "list", "--project", self.project.root]
        for columns in (60, 80, 120):
            shown, _ = run_on_terminal(["sh", "-c", f'stty columns {columns} <&1; exec "$@"', "sh", *argv], ["stdout"],
                                       env={"NO_COLOR": "1"})
            lines = shown.replace("\r", "").strip().split("\n")
            self.assertTrue(all(len(line) <= columns for line in lines), shown)
            self.assertIn("…", lines[1])
            self.assertEqual("the latest line" in lines[1], columns == 120, shown)
        self.project.run("task", "cancel", id)

    def test_one_task(self):
        id = self.submit("echo some output; exit 2")
        self.project.run("task", "wait", id)
        text = self.project.run("task", "get", id).out
        for pattern in (rf"^id +{id}$", r"^state +failed: .*2", r"^exit code +2$", r"^  some output$"):
            self.assertRegex(text, f"(?m){pattern}")
        self.assert_refused(self.project.run("task", "get", "task-99"), 1, "task-99")

    def test_nothing_a_task_writes_can_steer_the_terminal(self):
        id = self.submit("printf '\\033[31mred\\n'; # \x1b]0;title\x07")
        self.project.run("task", "wait", id)
        for words in (["list"], ["get", id]):
            self.assertNotIn("\x1b", self.project.run("task", *words).out)

    def test_stats(self):
        self.project.run("task", "wait", self.submit("true"))
        self.assertRegex(self.project.run("task", "stats").out, r"(?m)^completed +1$")
        self.assertEqual(self.project.run("task", "stats", "--json").json()["completed"], 1)


class Automation(TaskTestCase):
    def test_rules_are_shown_and_switched(self):
        text = self.project.run("automation", "status").out
        self.assertRegex(text, r"\Aautomation is on, with 2 rules\n")
        self.assertRegex(text, r"(?m)^saved +on +file\.create inbox/\*$")
        self.assertRegex(text, r"(?m)^yearly +on +in \d.* +0 0 1 1 \*$")
        for words, told in ((["disable", "saved"], "rule saved is off"), (["disable"], "automation is off"),
                            (["enable", "saved"], "rule saved is on"), (["enable"], "automation is on")):
            result = self.project.run("automation", *words)
            self.assertEqual((result.out, result.code), (told + "\n", 0), result)
        self.assertEqual(self.project.run("automation", "disable", "--json").json(), {"enabled": False})
        self.assert_refused(self.project.run("automation", "enable", "nobody"), 1, "nobody", "saved")

    def test_a_firing_waits_for_approval(self):
        self.write("inbox/letter", "dear")
        waiting = eventually(lambda: self.project.run("automation", "status", "--json").json()["recent"], what="a firing")
        id = waiting[0]["id"]
        self.assertIn(id, self.project.run("automation", "status").out)
        result = self.project.run("automation", "approve", id)
        self.assertEqual((result.out, result.code), (f"{id} approved: task-1\n", 0), result)
        eventually(lambda: self.project.run("task", "list", "--state", "completed", "--json").json(), what="the task")
        self.assert_refused(self.project.run("automation", "approve", "nothing"), 1, "nothing")


class Chat(TaskTestCase):
    def test_a_message_becomes_a_task_of_the_default_agent(self):
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.project.write_settings('default_agent = "echo"\n' + SETTINGS)
        self.project.start()
        id = self.project.run("chat", "send", "hello", "there", "--priority", "2").out.strip()
        self.project.run("task", "wait", id)
        record = self.get(id)
        self.assertEqual((record["prompt"], record["result"], record["priority"]), ("hello there", "hello there", 2))


class FakeDaemon:
    """A server with a script: for each connection a list of answers to task.output; None ends the connection."""

    def __init__(self, *scripts):
        self.folder = tempfile.TemporaryDirectory(prefix="duet-fake-")
        self.path = os.path.join(self.folder.name, "daemon.sock")
        self.scripts = [list(script) for script in scripts]
        self.offsets = []
        self.subscriptions = 0
        self.runs = False  # what task.get says
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.server.close()
        self.folder.cleanup()

    def serve(self):
        while self.scripts:
            connection, _ = self.server.accept()
            self.connection = connection
            script = self.scripts.pop(0)
            with connection, connection.makefile("rwb") as file:
                for line in file:
                    if not self.handle(json.loads(line), script, file):
                        break

    def handle(self, message, script, file):
        def send(**members):
            file.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

        if message["method"] == "task.output":
            self.offsets.append(message["params"]["offset"])
            step = script.pop(0)
            if step is None:
                return False
            answer, events = step
            send(id=message["id"], result=answer)
            for event in events:
                name, params = event if isinstance(event, tuple) else (event, {})
                send(method=name, params={"taskId": "task-1", "seq": 1, **params})
        elif message["method"] == "events.subscribe":
            self.subscriptions += 1
            send(id=message["id"], result={"epoch": "e", "next": 1})
        elif message["method"] == "task.get" and self.runs:
            send(id=message["id"], result={"id": "task-1", "state": "running"})
        else:
            send(id=message["id"], result={"id": "task-1", "state": "failed", "exitCode": 6, "signal": None, "attempts": 1,
                                           "error": {"reason": "exit", "message": "exited with code 6"}})
        file.flush()
        return True


class RestartingDaemon(FakeDaemon):
    """For each connection the calls that come on it; the last one finds the daemon gone, but on the last connection."""

    def handle(self, message, script, file):
        if len(script) == 1:
            return False
        del script[:1]
        return super().handle(message, script, file)


class EndingDaemon(FakeDaemon):
    """The task ends right behind the answer of task.get: the event is there together with the older record."""

    def handle(self, message, script, file):
        if message["method"] == "task.get":
            told = {"taskId": "task-1", "seq": 1, "state": "failed", "exitCode": 6}
            for answer in ({"id": message["id"], "result": {"id": "task-1", "state": "queued", "exitCode": None}},
                           {"method": "event.taskFailed", "params": told}):
                file.write(json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n")
            file.flush()
            return True
        return super().handle(message, script, file)


class RunningDaemon(FakeDaemon):
    """Its task takes no notice of a cancel."""

    def handle(self, message, script, file):
        result = {"cancelled": True} if message["method"] == "task.cancel" else {"id": "task-1", "state": "running"}
        file.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
        file.flush()
        return True


class StoppingDaemon(FakeDaemon):
    """Has asked its last questions, and takes SECONDS from then on to stop: whoever waits for a task is refused at once."""

    def __init__(self, seconds):
        self.asked = 0
        self.seconds, self.is_over = seconds, threading.Event()
        super().__init__([], [])

    def stop(self):
        self.is_over.set()
        self.connection.shutdown(socket.SHUT_RDWR)

    def handle(self, message, script, file):
        if message["method"] != "task.wait" or self.is_over.is_set():
            return super().handle(message, script, file)
        self.asked += 1
        if self.asked == 1:
            threading.Timer(self.seconds, self.stop).start()
        error = {"code": -32003, "message": "Subsystem unavailable: the daemon is stopping"}
        file.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode() + b"\n")
        file.flush()
        return True


class OverflowingDaemon(FakeDaemon):
    """Tells nothing after an overflow, until one subscribes again; meanwhile the task writes its last."""

    def __init__(self):
        self.asked = 0
        super().__init__([(piece(0, b"all of it", done=True), [])])

    def handle(self, message, script, file):
        if message["method"] != "task.output" or self.subscriptions > 1:
            return super().handle(message, script, file)
        self.asked += 1
        file.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": piece(0, b"")}).encode() + b"\n")
        file.flush()
        if self.asked == 1:
            event = {"jsonrpc": "2.0", "method": "event.overflow", "params": {"seq": 1}}
            threading.Timer(0.3, lambda: self.connection.send(json.dumps(event).encode() + b"\n")).start()
        return True


class LateDaemon(FakeDaemon):
    """Tells how task-2 began and ended when its record has been read and it is gone, TOGETHER with the record or behind it; then task-1 ends."""

    def __init__(self, together):
        self.is_gone, self.together = False, together
        super().__init__([])

    def handle(self, message, script, file):
        def send(**members):
            file.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

        id, method = message["params"].get("taskId"), message["method"]
        end = {"state": "failed", "exitCode": 6, "attempts": 1}
        if id == "task-2" and self.is_gone:
            send(id=message["id"], error={"code": -32000, "message": "Task not found"})
        elif method == "task.output":
            send(id=message["id"], result=piece(0, b"words\n" if id == "task-2" else b"", done=id == "task-2" or self.is_gone))
        elif method == "task.get" and not self.is_gone:
            self.is_gone = True
            send(id=message["id"], result={"id": id, "signal": None, "error": {"reason": "exit", "message": "exited with code 6"}, **end})
            if not self.together:
                file.flush()
            for event in ("Queued", "Started", "Failed"):
                send(method="event.task" + event, params={"taskId": "task-2", "seq": 1, **end})
            send(method="event.taskFailed", params={"taskId": "task-1", "seq": 2, **end})
        else:
            return super().handle(message, script, file)
        file.flush()
        return True


def piece(offset, data, done=False, **members):
    return {"offset": offset, "data": base64.b64encode(data).decode(), "next": offset + len(data), "done": done, **members}


class Following(suite.TestCase):
    """What a real daemon does rarely: gaps, losses and overflows at the worst moments."""

    def follow(self, daemon, *options):
        return self.run_task("output", daemon, *options)

    def run_task(self, command, daemon, *options):
        project = tempfile.TemporaryDirectory(prefix="duet-project-")
        self.addCleanup(project.cleanup)
        done = subprocess.run([suite.program(), "task", command, "task-1", "--socket", daemon.path, *options],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, cwd=project.name)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def test_what_was_dropped_is_told_in_its_place(self):
        for head, shown in ((b"head\n", "head\n"), (b"head", "head\n")):
            with FakeDaemon([(piece(0, head), []), (piece(1000, b"tail", done=True), [])]) as daemon:
                result = self.follow(daemon)
                dropped = 1000 - len(head)
                self.assertEqual((result.out, result.code), (f"{shown}[{dropped} bytes dropped]\ntail", 0), result)

    def test_news_that_come_behind_the_record_do_not_make_a_task_that_is_gone_unknown(self):
        for together in (True, False):
            with LateDaemon(together) as daemon:
                result = self.follow(daemon, "task-2", "-f")
                self.assertEqual((result.out, result.code), ("task-2 | words\n", 6), result)

    def test_reading_goes_on_at_the_same_offset_after_a_loss(self):
        with FakeDaemon([(piece(0, b"one "), []), None], [None],
                        [(piece(4, b"two "), ["event.taskOutput"]), (piece(8, b""), []), None],
                        [(piece(8, b"three", done=True), [])]) as daemon:
            result = self.follow(daemon, "-f")
            self.assertEqual((result.out, result.code), ("one two three", 6), result)
            self.assertIn("task-1 failed: exited with code 6", result.err)
            self.assertEqual(daemon.offsets, [0, 4, 4, 4, 8, 8, 8])

    def test_an_event_says_when_to_read_again_and_an_overflow_to_subscribe_again(self):
        with FakeDaemon([(piece(0, b"a"), []), (piece(1, b""), ["event.overflow"]), (piece(1, b"b"), ["event.taskOutput"]),
                         (piece(2, b""), []), (piece(2, b"c", done=True), [])]) as daemon:
            result = self.follow(daemon, "-f")
            self.assertEqual((result.out, result.code), ("abc", 6), result)
            self.assertEqual(daemon.subscriptions, 2)

    def test_nothing_tells_of_what_is_written_before_one_subscribes_again(self):
        with OverflowingDaemon() as daemon:
            result = self.follow(daemon, "-f", "--timeout", "50s")
            self.assertEqual((result.out, result.code), ("all of it", 6), result)
            self.assertEqual(daemon.subscriptions, 2)

    def test_what_a_daemon_told_before_it_stopped_is_the_rest(self):
        failed = ("event.taskFailed", {"state": "failed", "exitCode": 5, "error": {"reason": "exit", "message": "m"}})
        for data, end, out, code in (("bye\n", 7, "up\nbye\n", 5), ("\ufffd", 6, "up\n", 123), ("bye\n", 9, "up\n", 123)):
            with self.subTest(data=data, end=end):
                told = [("event.taskOutput", {"offset": 3, "data": data}), failed,
                        ("event.taskOutput", {"offset": end, "data": ""})]
                daemon = FakeDaemon([(piece(0, b"up\n"), []), (piece(3, b""), told), None])
                with daemon:
                    threading.Thread(target=lambda: (daemon.thread.join(), daemon.server.close()), daemon=True).start()
                    result = self.follow(daemon, "-f", "--timeout", "5s")
                    self.assertEqual((result.out, result.code), (out, code), result)

    def test_a_daemon_that_stays_away_is_given_up(self):
        daemon = FakeDaemon([(piece(0, b"a"), []), None])
        with daemon:
            daemon.thread_end = threading.Thread(target=lambda: (daemon.thread.join(), daemon.server.close()), daemon=True)
            daemon.thread_end.start()
            result = self.follow(daemon, "-f", "--timeout", "5s")
            self.assertEqual((result.out, result.code), ("a", 123), result)

    def test_a_wait_goes_on_with_the_next_daemon(self):
        with RestartingDaemon(["task.get"], ["task.get", "task.wait"], []) as daemon:
            daemon.runs = True
            result = self.run_task("wait", daemon)
            self.assertEqual((result.out, result.code), ("task-1 failed: exited with code 6\n", 6), result)

    def test_an_event_behind_the_record_does_not_make_the_record_the_end(self):
        with EndingDaemon([]) as daemon:
            result = self.run_task("wait", daemon)
            self.assertEqual((result.out, result.code), ("task-1 failed: exited with code 6\n", 6), result)

    def test_what_still_runs_is_not_cancelled_yet(self):
        with RunningDaemon([]) as daemon:
            result = self.run_task("cancel", daemon)
            self.assertEqual((result.out, result.code), ("task-1 cancelling\n", 0), result)

    def test_a_daemon_that_is_stopping_is_not_asked_again_and_again(self):
        with StoppingDaemon(seconds=1) as daemon:
            daemon.runs = True
            result = self.run_task("wait", daemon)
            self.assertEqual((result.out, result.code), ("task-1 failed: exited with code 6\n", 6), result)
            self.assertEqual(daemon.asked, 1)

    def test_no_answer_in_time_is_124(self):
        with FakeDaemon([(piece(0, b"a"), []), (piece(1, b""), [])]) as daemon:
            self.assertEqual(self.follow(daemon, "-f", "--timeout", "3s").code, 124)


if __name__ == "__main__":
    suite.main()
