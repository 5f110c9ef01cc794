#!/usr/bin/env python3
"""What a daemon with a queue of its own tells and does, daemons that share one tell and do as well.

Usage: parity.py --program PATH [unittest options]
"""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from daemons import UNAVAILABLE, WRONG, FleetTestCase, setUpModule, tearDownModule  # noqa: E402, F401

OTHER = '[agents.other]\ncommand = ["/bin/sh", "-c", "{prompt}"]\n'


class Edits(FleetTestCase):
    def test_an_edit_changes_what_is_given_and_nothing_else(self):
        one, two = self.two()
        first = one.submit("true", delaySeconds=3600)
        asker = one.submit(f"{suite.program()} task submit --delay 1h --key k --timeout 10s echo", here=True)
        self.assertEqual(one.wait(asker)["state"], "completed", one.output(asker))
        id = one.output(asker).strip()
        before = one.get(id)["metadata"]
        self.assertEqual(before["cause"], {"taskId": asker, "depth": 1})
        edited = two.ok("task.edit", taskId=id, prompt="false", priority=3)
        self.assertEqual((edited["metadata"], edited["priority"]), (before, 3))
        self.assertEqual(two.ok("task.edit", taskId=id, after=[first])["metadata"], {**before, "after": [first]})
        self.assertEqual(one.ok("task.edit", taskId=id, after=[])["metadata"], before)


class Stops(FleetTestCase):
    def test_what_a_stop_ends_says_so_whatever_it_made_of_term(self):
        one, two = self.fleet.worker("one"), self.fleet.worker("two", slots=3)
        ids = {how: one.submit(f"trap '{how}' TERM; echo ready; while :; do sleep 0.05; done", needs=["name=two"])
               for how in ("exit 0", "exit 9", "trap - TERM; kill -TERM $$")}
        for id in ids.values():
            eventually(lambda id=id: "ready" in one.output(id), what="the trap stands")
        self.assertEqual(two.run("daemon", "stop").code, 0)
        told = {how: one.wait(id) for how, id in ids.items()}
        for how, record in told.items():
            self.assertEqual((record["state"], record["error"]),
                             ("failed", {"reason": "signal", "message": "ended when the daemon was stopped"}), how)
        self.assertEqual([told[how]["exitCode"] for how in ids], [0, 9, None])


class Settings(FleetTestCase):
    def set(self, worker, text):
        worker.write_user_settings(text)
        answer = worker.run("daemon", "reload")
        self.assertEqual(answer.code, 0, answer)
        return answer.out + answer.err

    def paused(self, worker):
        return {group["name"]: group["paused"] for group in worker.ok("queue.status")["groups"]}["batch"]

    def test_a_pause_in_the_settings_counts_again_when_it_is_changed(self):
        open_, closed = "[groups.batch]\npaused = false\n", "[groups.batch]\npaused = true\n"
        one = self.fleet.worker("one", cluster=closed)
        two = self.fleet.worker("two", cluster=closed)
        self.assertTrue(self.paused(one))
        two.ok("queue.resume", group="batch")
        self.assertFalse(self.paused(one))
        self.assertEqual(one.run("daemon", "restart").code, 0)
        self.assertFalse(self.paused(one), "the settings are the same")
        self.set(one, one.text.replace(closed, open_))
        self.set(one, one.text)
        eventually(lambda: self.paused(one), 5, "the setting is new")
        waits = one.submit("true", group="batch", needs=["name=one"])
        self.assertIn("group-paused", [reason["reason"] for reason in one.ok("task.explain", taskId=waits)["reasons"]])
        one.ok("queue.resume", group="batch")
        self.assertEqual(one.wait(waits)["state"], "completed")
        self.assertEqual(one.run("daemon", "stop").code, 0)
        one.write_user_settings(one.text.replace(closed, open_))
        one.start()
        one.ok("queue.resume", group="batch")
        self.assertEqual(one.run("daemon", "stop").code, 0)
        one.write_user_settings(one.text)
        one.start()
        eventually(lambda: self.paused(one), 5, "it was changed while no daemon ran")
        two.ok("queue.resume", group="batch")
        self.assertFalse(self.paused(one), "what is said after that counts")

    def test_whether_it_runs_tasks_changes_with_a_restart(self):
        one = self.fleet.worker("one", cluster="run = true")
        told = self.set(one, one.text.replace("run = true", "run = false"))
        self.assertIn("cluster.run", told)
        self.assertIn("restart", told)
        self.assertEqual(one.wait(one.submit("true"))["state"], "completed", "until then all is as it was")
        self.assertEqual(one.run("daemon", "restart").code, 0)
        id = one.submit("true")
        eventually(lambda: one.get(id).get("waitingFor") == "no worker that accepts shell", 6, "waitingFor")

    def test_how_much_output_is_kept_counts_for_what_starts_then(self):
        one = self.fleet.worker("one", slots=1, cluster='output = "1M"')
        print_much = "i=0; while [ $i -lt 2000 ]; do printf '%0100d' 0; i=$((i+1)); done"
        whole = one.submit(print_much)
        one.wait(whole)
        self.set(one, one.text.replace('"1M"', '"10K"'))
        cut = one.submit(print_much)
        one.wait(cut)
        stored = dict(self.fleet.sql("SELECT task, sum(octet_length(bytes)) FROM duet.output GROUP BY task"))
        self.assertEqual([stored[id.removeprefix("task-")] for id in (whole, cut)], ["200000", "10240"])


class Placing(FleetTestCase):
    def test_an_agent_of_a_worker_that_has_just_come_is_known(self):
        one = self.fleet.worker("one", lease="90s", lost_after="90s")
        refused = one.ask("task.submit", prompt="true", agent="other")["error"]
        self.assertEqual(refused["code"], UNAVAILABLE)
        self.fleet.worker("two", lease="90s", lost_after="90s", accept='["other"]', cluster=OTHER + "[agents.more]\ncommand = [\"true\"]")
        self.assertEqual(one.wait(one.submit("true", agent="other"))["worker"], "two")
        self.assertEqual(one.ask("task.submit", prompt="true", agent="more")["error"]["code"], UNAVAILABLE, "it is not accepted")

    def test_another_folder_is_for_here_only(self):
        one, two = self.two()
        for worker in (one, two):
            self.assertEqual(worker.ask("task.submit", prompt="true", cwd="/tmp", needs=["name=one"])["error"]["code"], WRONG)
        id = one.submit("pwd", cwd="/tmp", here=True)
        one.wait(id)
        self.assertEqual(one.output(id), "/tmp\n")

    def test_what_a_task_waits_for_is_named(self):
        one = self.fleet.worker("one", accept='["shell"]')
        two = self.fleet.worker("two", accept='["other"]', cluster='labels = ["gpu"]\n' + OTHER)
        three = self.fleet.worker("three", accept='["shell"]', cluster='labels = ["tpu"]')

        def says(text, **params):
            id = one.submit("true", **params)
            eventually(lambda: one.get(id).get("waitingFor") == text, 6, f"{text}, not {one.get(id).get('waitingFor')}")
            self.assertEqual(one.ok("task.explain", taskId=id)["reasons"][0]["text"], text)
            one.ok("task.cancel", taskId=id)

        says("no worker with gpu that accepts shell", needs=["gpu"])
        says("no worker with npu", needs=["npu"])
        says("no worker with gpu and tpu", needs=["gpu", "tpu"])
        self.assertEqual(three.run("cluster", "drain").code, 0)
        says("the only workers with tpu are draining", needs=["tpu"])
        self.assertEqual(two.run("cluster", "drain").code, 0)
        says("the only workers that accept other are draining", agent="other")

    def test_slots_are_those_of_the_queue(self):
        one, _ = self.fleet.worker("one", slots=1), self.fleet.worker("two", slots=4)
        ids = [one.submit("sleep 60") for _ in range(5)]
        for id in ids:
            one.runs(id)
        status = one.ok("queue.status")
        self.assertEqual((status["running"], status["maxRunning"]), (5, 5))
        eventually(lambda: one.ok("daemon.status")["subsystems"]["supervisor"]["maxRunning"] == 5, 6, "the same in daemon.status")


class Status(FleetTestCase):
    def test_the_table_has_the_names_of_the_json(self):
        one = self.fleet.worker("one")
        one.submit("true", needs=["nobody"])
        status = json.loads(one.run("cluster", "status", "--json").out)
        workers, lanes, database = one.run("cluster", "status").out.split("\n\n")

        def assert_named(labels, fields):
            for label in labels:
                first, *rest = label.lower().replace("-", " ").split()
                name = first + "".join(word.capitalize() for word in rest)
                self.assertTrue([field for field in fields if field in (name, name + "Ms")], (label, list(fields)))
        for table, row in ((workers, status["workers"][0]), (lanes, status["lanes"][0])):
            assert_named(re.split(r" {2,}|/", table.splitlines()[0]), row)
        assert_named([re.split(r" {2,}", line)[0] for line in database.splitlines()], status["database"])


class ZeroBytes(FleetTestCase):
    def test_what_no_task_can_have_is_not_found(self):
        one = self.fleet.worker("one")
        one.submit("true", labels={"a\0": "b", "c": "d"})
        for query in ({"agent": "a\0"}, {"group": "a\0"}, {"labels": {"a\0": "b"}}, {"labels": {"a": "b\0"}}):
            self.assertEqual(one.ok("task.list", **query), [])
        self.assertEqual(len(one.ok("task.list", labels={"c": "d"})), 1)
        self.assertEqual(one.ask("agent.release", name="a\0")["error"]["code"], WRONG)


class Rules(FleetTestCase):
    def fired(self):
        return int(self.fleet.sql("SELECT count(*) FROM duet.request WHERE metadata LIKE '%\"automation\"%'")[0][0])

    def workers_with(self, rule, count=3):
        rules = ('[[rules]]\nid = "r"\ntrigger = { source = "task", type = "task.failed" }\n'
                 f'action = {{ type = "agent", agent = "shell", prompt = "until [ -e {self.fleet.server.folder}/go ]; do sleep 0.05; done" }}\n' + rule)
        return [self.fleet.worker(f"w{number}", cluster=rules, slots=4) for number in range(count)]

    def fail_some(self, workers):
        for turn in range(4):
            workers[turn % len(workers)].wait(workers[0].submit("false"))
            time.sleep(1)  # all have heard of it

    def test_a_cooldown_is_everybodys(self):
        workers = self.workers_with('cooldown = "1h"\ntrailing = false\n')
        self.fail_some(workers)
        self.assertEqual(self.fired(), 1)

    def test_one_that_another_daemon_has_done_is_held_and_says_so(self):
        workers = self.workers_with("")
        failed = workers[0].submit("false")
        workers[0].wait(failed)

        def firings():
            found = [f for worker in workers for f in worker.ok("automation.status")["recent"]]
            return found if len(found) == len(workers) else None
        found = eventually(firings, 30, "each has listed it")
        task = next(f["taskId"] for f in found if f["outcome"] == "fired")
        self.assertEqual([f.get("reason") for f in found if f["outcome"] == "held"], [f"another daemon of the queue has done it: {task}"] * 2)

    def test_a_rule_is_busy_wherever_its_task_runs(self):
        workers = self.workers_with('when_busy = "skip"\n')
        self.fail_some(workers)
        self.assertEqual(self.fired(), 1)


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
