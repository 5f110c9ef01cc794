#!/usr/bin/env python3
"""What becomes of tasks: their order, limits, keys, retries, dependencies, agents, and what their prompts may be."""

import glob
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

RECORD = ["id", "prompt", "agent", "group", "priority", "state", "held", "createdAt", "notBefore", "retryAt", "startedAt",
          "completedAt", "pid", "exitCode", "signal", "result", "error", "attempts", "cpuSeconds", "maxMemory",
          "outputBytes", "outputDropped", "attemptsNotCounted", "labels", "metadata", *store.MORE_IN_RECORDS]


class Records(TaskTestCase):
    def test_a_record_has_exactly_what_was_promised(self):
        id = self.submit("echo out; echo err >&2; exit 3", priority=4)
        record = self.wait(id)
        self.assertEqual(list(record), RECORD)
        self.assertEqual((record["state"], record["exitCode"], record["signal"]), ("failed", 3, None))
        self.assertEqual(record["result"], "out\n")
        self.assertEqual(record["error"]["reason"], "exit")
        self.assertRegex(record["createdAt"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
        self.assertLessEqual(record["createdAt"], record["startedAt"])
        self.assertLessEqual(record["startedAt"], record["completedAt"])
        self.assertEqual(self.call("task.list")["result"][0], record)

    def test_a_signal_is_told_by_its_name(self):
        record = self.wait(self.submit("kill -KILL $$"))
        self.assertEqual((record["exitCode"], record["signal"], record["error"]["reason"]), (None, "SIGKILL", "signal"))

    def test_the_environment_of_a_task_is_shown_nowhere(self):
        id = self.submit("echo $SECRET | rev", env={"SECRET": "tobeornottobe"})
        record = self.wait(id)
        self.assertEqual(record["result"], "tobeornottobe"[::-1] + "\n")
        self.connection.send('{"jsonrpc":"2.0","id":5,"method":"task.get","params":["%s"]}' % id)
        self.assertNotIn(b"tobeornottobe", self.connection.next_line())
        with open(os.path.join(self.project.state, "daemon.log"), "rb") as file:
            self.assertNotIn(b"tobeornottobe", file.read())
        events = self.project.run("events", "--since", "1", "--timeout", "1s").out
        self.assertNotIn("tobeornottobe", events)

    def test_old_tasks_go_with_their_output(self):
        self.write_settings(self.settings + "keep_tasks = 3\n")
        os.kill(self.pid, 1)
        ids = [self.submit("echo x") for _ in range(8)]
        for id in ids:
            self.call("task.wait", taskId=id)
        eventually(lambda: self.call("task.stats")["result"]["total"] == 3, what="only three tasks are kept")
        self.assertEqual(self.error("task.get", taskId=ids[0])["code"], -32000)
        pattern = os.path.join(self.project.state, "tasks-*" if store.SHARED else "tasks", "*.out")
        eventually(lambda: len(glob.glob(pattern)) == 3, what="three outputs")
        self.assertEqual(self.submit("true"), "task-9")


class Order(TaskTestCase):
    settings = 'default_agent = "shell"\nmax_running = 1\nqueue_capacity = 5\n'

    def block(self):
        """A task that holds the only slot until a file is there."""
        id = self.submit(f"until [ -e {self.path('go')} ]; do sleep 0.02; done")
        eventually(lambda: self.get(id)["state"] == "running", what="the task that holds the slot")
        return id

    def let_go(self):
        with open(self.path("go"), "w", encoding="ascii"):
            pass

    def test_higher_priority_first_then_the_older(self):
        self.block()
        prompts = [("b", 0), ("c", 0), ("d", -5), ("a", 9)]
        ids = [self.submit(f"echo {name} >> {self.path('order')}", priority=priority) for name, priority in prompts]
        self.let_go()
        for id in ids:
            self.wait(id)
        with open(self.path("order"), encoding="ascii") as file:
            self.assertEqual(file.read().split(), ["a", "b", "c", "d"])

    def test_a_full_queue_refuses_and_a_cancel_makes_room(self):
        first = self.block()
        ids = [self.submit("true"), self.submit("true", after=[first])] + [self.submit("true") for _ in range(3)]
        eventually(lambda: self.call("queue.status")["result"]["queued"] == 5, what="the queue is known to be full")
        error = self.error("task.submit", prompt="true")
        self.assertEqual((error["code"], error["data"]), (-32002, {"capacity": 5}))
        self.assertEqual(self.call("task.cancel", taskId=ids[0])["result"], {"cancelled": True})
        eventually(lambda: "result" in self.call("task.submit", prompt="true"), what="there is room again")
        self.assertEqual(self.get(ids[0])["state"], "cancelled")
        self.assertEqual(self.error("task.cancel", taskId=ids[0])["code"], -32001)
        self.assertEqual(self.error("task.cancel", taskId="task-999")["code"], -32000)

    def test_a_running_task_is_cancelled(self):
        first = self.block()
        second = self.submit("true")
        self.assertEqual(self.call("task.cancel", taskId=first)["result"], {"cancelled": True})
        record = self.wait(first)
        self.assertEqual((record["state"], record["error"]), ("cancelled", None))
        self.assertEqual(self.wait(second)["state"], "completed")

    def test_settings_are_read_again(self):
        self.block()
        second = self.submit("true")
        self.write_settings('default_agent = "shell"\nmax_running = 2\n')
        os.kill(self.pid, 1)
        self.assertEqual(self.wait(second)["state"], "completed")

    def test_queued_tasks_stay_queued_over_a_stop(self):
        first = self.block()
        second = self.submit("true")
        self.call("daemon.stop", force=True)
        self.project.wait_gone(self.pid)
        self.project.start()
        self.connect()
        record = self.get(first)
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "signal"))
        self.assertEqual(self.wait(second)["state"], "completed")


class Wishes(TaskTestCase):
    def test_the_same_key_is_the_same_task(self):
        first = self.submit("echo once", key="k", retries=1)
        self.assertEqual(self.submit("echo once", key="k", retries=1), first)
        for other in ({"prompt": "echo twice", "retries": 1}, {"prompt": "echo once"}):
            self.assertEqual(self.error("task.submit", key="k", **other)["code"], -32602)
        self.wait(first)
        self.assertEqual(self.submit("echo once", key="k", retries=1), first)

    def test_a_failed_task_is_tried_again(self):
        script = f"echo x >> {self.path('tries')}; [ $(wc -l < {self.path('tries')}) -ge 3 ]"
        began = time.monotonic()
        record = self.wait(self.submit(script, retries=5))
        self.assertEqual((record["state"], record["attempts"], record["error"]), ("completed", 3, None))
        self.assertGreater(time.monotonic() - began, 0.75 + 1.5)

    def test_output_goes_on_over_attempts(self):
        script = f"echo x >> {self.path('tries')}; cat {self.path('tries')}; [ $(wc -l < {self.path('tries')}) -ge 2 ]"
        id = self.submit(script, retries=1)
        record = self.wait(id)
        self.assertEqual(record["result"], "x\nx\n")
        output, offset = "", 0
        while True:
            piece = self.call("task.output", taskId=id, offset=offset)["result"]
            self.assertEqual(piece["offset"], offset)
            output, offset = output + piece["data"], piece["next"]
            if piece["done"]:
                break
        self.assertEqual(output, "x\nx\nx\n")

    def test_a_time_limit_ends_a_task(self):
        record = self.wait(self.submit("sleep 60", timeoutSeconds=0.3))
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "timeout"))

    def test_tasks_wait_for_those_before(self):
        first = self.submit("sleep 0.3")
        second = self.submit("true", after=[first])
        third = self.submit("true", after=[first, second])
        self.assertEqual(self.wait(third)["state"], "completed")
        self.assertGreaterEqual(self.get(third)["startedAt"], self.get(second)["completedAt"])

    def test_a_failure_goes_on_to_those_behind(self):
        first = self.submit("sleep 0.3; false")
        second = self.submit("true", after=[first])
        third = self.submit("true", after=[second])
        record = self.wait(third)
        self.assertEqual((record["state"], record["error"]["reason"], record["attempts"]), ("failed", "dependency", 0))
        self.assertEqual(self.wait(self.submit("true", after=[first]))["error"]["reason"], "dependency")
        self.assertEqual(self.error("task.submit", prompt="true", after=["task-99"])["code"], -32000)

    def test_a_task_runs_where_it_is_told_to(self):
        os.mkdir(self.path("sub"))
        self.assertEqual(self.wait(self.submit("pwd"))["result"], self.project.root + "\n")
        self.assertEqual(self.wait(self.submit("pwd", cwd=self.path("sub")))["result"], self.path("sub") + "\n")
        record = self.wait(self.submit("pwd", cwd=self.path("nowhere")))
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "spawn"))
        self.assertNotIn(self.project.root, record["error"]["message"])

    def test_wait_gives_the_task_as_it_is_when_the_time_is_up(self):
        id = self.submit("sleep 60")
        self.assertIn(self.call("task.wait", taskId=id, timeoutSeconds=0.1)["result"]["state"], ("queued", "running"))
        self.assertEqual(self.error("task.wait", taskId="task-99")["code"], -32000)


class Prompts(TaskTestCase):
    settings = '''
[agents.argv]
command = ["printf", "%s", "{prompt}"]
[agents.deaf]
command = ["echo", "always the same"]
[agents.stdin]
command = ["cat"]
stdin = "prompt"
'''

    def output(self, id):
        return self.call("task.output", taskId=id, limit=4 << 20)["result"]["data"]

    def test_a_prompt_arrives_as_it_was_sent(self):
        prompt = "quotes \" ' ` $(touch x) ${HOME} \\n \n\ttab ä € 😀 %s; rm -rf"
        for agent in ("argv", "stdin"):
            id = self.submit(prompt, agent=agent)
            self.assertEqual(self.wait(id)["state"], "completed")
            self.assertEqual(self.output(id), prompt)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_a_nul_goes_through_stdin_only(self):
        id = self.submit("a\0b", agent="stdin")
        self.wait(id)
        self.assertEqual((self.output(id), self.get(id)["prompt"]), ("a\0b", "a\0b"))
        error = self.error("task.submit", prompt="a\0b", agent="argv")
        self.assertEqual((error["code"], error["data"]["param"]), (-32602, "prompt"))

    def test_stdin_takes_a_megabyte(self):
        prompt = "0123456789abcdef" * 65536
        id = self.submit(prompt, agent="stdin")
        self.assertEqual(self.wait(id)["state"], "completed")
        self.assertEqual(self.output(id), prompt)
        self.assertEqual(self.get(id)["prompt"], prompt)
        self.assertEqual(self.call("task.list")["result"][0]["prompt"], prompt[:1024])

    def test_what_is_too_long_for_an_argument_is_refused(self):
        self.assertEqual(self.wait(self.submit("x" * 131071, agent="argv"))["state"], "completed")
        error = self.error("task.submit", prompt="x" * 131072, agent="argv")
        self.assertEqual((error["code"], error["data"]["param"]), (-32602, "prompt"))

    def test_an_agent_may_go_without_its_prompt(self):
        id = self.submit("x" * 200000, agent="deaf")
        self.assertEqual((self.wait(id)["state"], self.output(id)), ("completed", "always the same\n"))

    def test_without_an_agent_nothing_is_taken(self):
        for method, params in (("task.submit", {"prompt": "true"}), ("chat.send", {"message": "true"})):
            error = self.error(method, **params)
            self.assertEqual((error["code"], error["data"]["set"]), (-32003, "default_agent"))
        error = self.error("task.submit", prompt="true", agent="nobody")
        if store.SHARED:  # another worker might have had it
            self.assertEqual((error["code"], error["data"]["subsystem"]), (-32003, "agents"))
        else:
            self.assertEqual((error["code"], error["data"]["accepted"]), (-32602, ["argv", "claude", "deaf", "shell", "stdin"]))

    def test_a_message_may_name_its_agent_and_place(self):
        place = self.path("place")
        os.mkdir(place)
        id = self.call("chat.send", message='pwd; echo "$A"', agent="shell", cwd=place, env={"A": "b"})["result"]["taskId"]
        record = self.wait(id)
        self.assertEqual((record["result"], record["priority"]), (f"{place}\nb\n", 5))
        self.assertEqual(record["metadata"], {"source": "chat", "cwd": "place" if store.SHARED else place, "by": "unix"})

    def test_claude_is_the_default_where_it_is_found(self):
        folder = self.path("bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "claude"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nprintf "%s|" "$@"; cat\n')
        os.chmod(file.name, 0o700)
        id = self.call("chat.send", message="hello")
        self.assertEqual(id["error"]["code"], -32003)
        path = folder + ":" + os.environ["PATH"]
        record = self.wait(self.submit("do it", env={"PATH": path}, **store.HERE))
        self.assertEqual((record["agent"], record["result"]), ("claude", "-p|do it"))

    def test_a_prompt_is_never_an_option(self):
        folder = self.path("bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "claude"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nprintf "%s|" "$@"; cat\n')
        os.chmod(file.name, 0o700)
        path = folder + ":" + os.environ["PATH"]
        record = self.wait(self.submit("--dangerous", agent="claude", env={"PATH": path}, **store.HERE))
        self.assertEqual((record["exitCode"], record["result"]), (0, "-p|--dangerous"))
        record = self.wait(self.submit("-x", agent="shell"))
        self.assertEqual(record["exitCode"], 127, record)


if __name__ == "__main__":
    suite.main()
