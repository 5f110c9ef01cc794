#!/usr/bin/env python3
"""Tasks that are given out: their handles, what caused them, and output that is read from its end or waited for."""

import json
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))
sys.path.insert(0, HERE)

import suite  # noqa: E402
from daemon import PATIENCE, eventually, request  # noqa: E402
from task_project import TaskTestCase  # noqa: E402


class Handles(TaskTestCase):
    def submit_with_handle(self, prompt="true", **params):
        return self.call("task.submit", prompt=prompt, handle=True, **params)["result"]

    def test_a_handle_is_another_id(self):
        answer = self.submit_with_handle()
        self.assertRegex(answer["handle"], rf"^{answer['taskId']}-[a-z2-7]{{26}}$")
        self.assertEqual(self.call("task.get", handle=answer["handle"])["result"]["id"], answer["taskId"])
        other = self.submit_with_handle()
        self.assertNotEqual(answer["handle"][-26:], other["handle"][-26:])

    def test_a_wrong_one_is_unknown(self):
        handle = self.submit_with_handle()["handle"]
        self.submit("true")
        for wrong in (handle[:-1], handle + "a", "task-1", "task-2" + handle[6:], handle[:-1] + "0", "", "x"):
            self.assertEqual(self.error("task.get", handle=wrong)["code"], -32000, wrong)
        self.assertEqual(self.error("task.get")["code"], -32602)
        self.assertEqual(self.error("task.get", taskId="task-1", handle=handle)["code"], -32602)

    def test_the_same_key_has_the_same_handle_also_after_a_kill(self):
        plain = self.submit("true", key="k")
        first = self.submit_with_handle(key="k")
        self.assertEqual(first["taskId"], plain)
        self.assertEqual(self.submit_with_handle(key="k")["handle"], first["handle"])
        self.project.kill(self.pid, signal.SIGKILL)
        self.pid = self.project.start()
        self.connect()
        self.assertEqual(self.submit_with_handle(key="k")["handle"], first["handle"])
        self.assertEqual(self.call("task.get", handle=first["handle"])["result"]["id"], plain)

    def test_it_stays_whatever_keep_tasks_says(self):
        self.write_settings(self.settings + "keep_tasks = 1\n")
        self.project.run("daemon", "reload")
        answer = self.submit_with_handle()
        others = [self.submit("true") for _ in range(4)]
        for id in (answer["taskId"], others[-1]):
            self.wait(id)
        eventually(lambda: "error" in self.call("task.get", taskId=others[0]), PATIENCE, "others go")
        self.assertEqual(self.call("task.get", handle=answer["handle"])["result"]["state"], "completed")
        eventually(lambda: self.call("task.remove", taskIds=[answer["taskId"]])["result"]["removed"], what="nothing of it is left")
        self.assertEqual(self.error("task.get", handle=answer["handle"])["code"], -32000)


class Causes(TaskTestCase):
    settings = 'default_agent = "shell"\nmax_running = 10\n'

    def nested(self, levels, more=""):
        """A task that submits one that submits one, and so on, each waiting for the next."""
        words = f"'{self.project.program}' task submit --project '{self.project.root}' --agent shell --follow --"
        prompt = "true"
        for _ in range(levels):
            prompt = f"{more}{words} {json.dumps(prompt)}"
        return prompt

    def cause(self, id):
        return self.get(id)["metadata"].get("cause")

    def test_a_task_that_a_task_submits_says_so(self):
        words = f"env -i '{self.project.program}' task submit --project '{self.project.root}' --agent shell --follow true"
        first = self.submit(words, env={"DUET_TASK_ID": "task-99"})
        self.assertEqual(self.wait(first)["state"], "completed")
        self.assertIsNone(self.cause(first))
        self.assertEqual(self.cause("task-2"), {"taskId": first, "depth": 1})

    def test_so_does_one_of_a_process_in_the_background(self):
        script = self.path("later.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"'{self.project.program}' task submit --project '{self.project.root}' --agent shell true\n"
                       f"touch '{self.path('done')}'\n")
        first = self.submit(f"setsid sh '{script}' & until [ -e '{self.path('done')}' ]; do sleep 0.05; done")
        self.assertEqual(self.wait(first)["state"], "completed")
        self.assertEqual(self.cause("task-2"), {"taskId": first, "depth": 1})

    def test_a_chain_ends_at_five(self):
        counter = self.path("count")
        program = self.path("again.sh")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"echo x >> '{counter}'\n"
                       f"'{self.project.program}' task submit --project '{self.project.root}' --agent shell --follow "
                       f"-- sh '{program}' 2>> '{self.path('said')}'\n")
        self.wait(self.submit(f"sh '{program}'"))
        with open(counter, encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 6)  # the first one, and five that it led to
        self.assertEqual([self.cause(f"task-{n}")["depth"] for n in range(2, 7)], [1, 2, 3, 4, 5])
        with open(self.path("said"), encoding="utf-8") as file:
            self.assertIn("5 tasks led to that one already", file.read())

    def test_who_is_in_no_task_has_none(self):
        self.submit("sleep 60")
        eventually(lambda: self.get("task-1")["state"] == "running", what="it runs")
        self.assertIsNone(self.cause(self.submit("true")))

    def test_the_same_key_is_the_same_task_whoever_asks(self):
        self.call("task.submit", prompt="true", agent="shell", key="k", cwd=self.project.root)
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "task.submit",
                          "params": {"prompt": "true", "agent": "shell", "key": "k", "cwd": self.project.root}})
        record = self.wait(self.submit(f"echo {json.dumps(ask)} | '{self.project.program}' connect --framing lines "
                                       f"--project '{self.project.root}'"))
        self.assertIn('"taskId":"task-1"', record["result"], record)


class Tails(TaskTestCase):
    def output(self, id, **params):
        return self.call("task.output", taskId=id, **params)["result"]

    def test_from_the_end(self):
        id = self.submit("printf 0123456789")
        self.wait(id)
        self.assertEqual(self.output(id, fromEnd=4), {"offset": 6, "data": "6789", "next": 10, "done": True})
        self.assertEqual(self.output(id, fromEnd=100)["data"], "0123456789")
        self.assertEqual(self.output(id, fromEnd=0)["data"], "")
        self.assertEqual(self.output(id, fromEnd=6, limit=2)["data"], "45")
        self.assertEqual(self.error("task.output", taskId=id, fromEnd=1, offset=1)["code"], -32602)
        self.assertEqual(self.error("task.output", taskId=id, fromEnd=-1)["code"], -32602)
        run = self.project.run("task", "output", "--tail", "4", id)
        self.assertEqual((run.code, run.out), (0, "6789"), run)
        run = self.project.run("task", "output", "--tail", "1K", id)
        self.assertEqual(run.out, "0123456789")

    def test_no_character_is_cut_at_the_beginning(self):
        id = self.submit("printf '\u20ac\U0001f600x'")
        self.wait(id)
        self.assertEqual([self.output(id, fromEnd=count)["data"] for count in range(1, 9)],
                         ["x", "x", "x", "x", "\U0001f600x", "\U0001f600x", "\U0001f600x", "\u20ac\U0001f600x"])
        self.assertEqual(self.output(id, fromEnd=2, encoding="base64")["data"], "gHg=")

    def test_follow_begins_there(self):
        marker = self.path("marker")
        id = self.submit(f"printf 'long ago\\nnow\\n'; touch '{self.path('begun')}'; "
                         f"until [ -e '{marker}' ]; do sleep 0.05; done; echo later")
        eventually(lambda: self.output(id, fromEnd=4)["data"] == "now\n", what="the first lines")
        with self.project.popen("task", "output", "-f", "--tail", "4", id) as process:
            self.assertEqual(process.stdout.readline(), b"now\n")
            open(marker, "w", encoding="ascii").close()
            self.assertEqual(process.stdout.read(), b"later\n")
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_waiting_for_more(self):
        marker = self.path("marker")
        id = self.submit(f"echo one; until [ -e '{marker}' ]; do sleep 0.05; done; echo two")
        self.assertEqual(self.output(id, waitSeconds=60)["data"], "one\n")
        begun = time.monotonic()
        nothing = self.output(id, offset=4, waitSeconds=0.2)
        self.assertEqual((nothing["data"], nothing["next"], nothing["done"]), ("", 4, False))
        self.assertGreaterEqual(time.monotonic() - begun, 0.2)
        answers = []
        with self.project.connect() as other:
            other.send(request("task.output", 1, params={"taskId": id, "offset": 4, "waitSeconds": 60}))
            thread = threading.Thread(target=lambda: answers.append(other.answer(1, 2 * PATIENCE)[0]["result"]))
            thread.start()
            open(marker, "w", encoding="ascii").close()
            thread.join()
        self.assertEqual(answers[0]["data"], "two\n")
        end = self.output(id, offset=8, waitSeconds=60)
        self.assertEqual((end["data"], end["done"]), ("", True))

    def test_waiting_for_a_task_that_never_writes(self):
        id = self.submit("sleep 600")
        with self.project.connect() as other:
            other.send(request("task.output", 1, params={"taskId": id, "waitSeconds": 60}))
            eventually(lambda: self.get(id)["state"] == "running", what="it runs")
            self.call("task.cancel", taskId=id)
            answer = other.answer(1, 2 * PATIENCE)[0]["result"]
        self.assertEqual((answer["data"], answer["done"]), ("", True))

    def test_waiting_for_a_queued_task_that_is_cancelled(self):
        id = self.submit("true", delaySeconds=3600)
        with self.project.connect() as other:
            other.send(request("task.output", 1, params={"taskId": id, "waitSeconds": 60}))
            other.send(request("ping", 2))
            self.call("task.cancel", taskId=id)
            self.assertTrue(other.answer(1, 2 * PATIENCE)[0]["result"]["done"])
            self.assertIn("result", other.answer(2)[0])

    def test_a_stop_answers_who_waits(self):
        id = self.submit("true", delaySeconds=3600)
        with self.project.connect() as other:
            other.send(request("task.output", 1, params={"taskId": id, "waitSeconds": 600}))
            self.assertEqual(self.project.run("daemon", "stop").code, 0)
            answers = [message for message in other.ends(60) if message.get("id") == 1]
        self.assertEqual(len(answers), 1, answers)


if __name__ == "__main__":
    suite.main()
