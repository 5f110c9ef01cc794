#!/usr/bin/env python3
"""What people do with the queue: groups, pauses, holds, delays, edits, restarts, removals, usage limits of agents."""

import datetime
import glob
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402
from task_project import TaskTestCase  # noqa: E402


def utc(seconds_from_now):
    time_then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds_from_now)
    return time_then.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class QueueTestCase(TaskTestCase):
    settings = """
default_agent = "shell"
max_running = 2
[groups.batch]
max_running = 1
[groups.night]
paused = true
[agents.slow]
command = ["/bin/sh", "-c", "{prompt}"]
max_running = 1
group = "batch"
priority = 7
retries = 1
env = { COLOUR = "blue" }
"""

    def ok(self, method, **params):
        answer = self.call(method, **params)
        self.assertIn("result", answer, answer)
        return answer["result"]

    def reasons(self, id):
        return [reason["reason"] for reason in self.ok("task.explain", taskId=id)["reasons"]]

    def restart_daemon(self):
        self.project.kill(self.pid)
        self.pid = self.project.start()
        self.connect()

    def kinds(self):
        """Of all events so far, when they have their numbers."""
        self.project.store.await_numbers()
        with self.project.connect() as connection:
            connection.send(request("events.subscribe", 1, params={"since": 1}))
            answer, early = connection.answer(1)
            events = list(early)
            while len(events) < answer["result"]["next"] - 1:
                events.append(connection.next_message())
            return [(event["method"].removeprefix("event."), event["params"]) for event in events]

    def block(self, name="go", **params):
        """A task that runs until let_go()."""
        id = self.submit(f"until [ -e {self.path(name)} ]; do sleep 0.02; done", **params)
        eventually(lambda: self.get(id)["state"] == "running", what="the task that holds a slot")
        return id

    def let_go(self, name="go"):
        with open(self.path(name), "w", encoding="ascii"):
            pass


class Groups(QueueTestCase):
    def test_a_group_and_an_agent_have_their_limits(self):
        first = self.block(group="batch")
        second = self.submit("true", group="batch")
        third = self.submit("true", agent="slow")
        self.assertEqual(self.wait(self.submit("true"))["state"], "completed")
        self.assertEqual(self.reasons(second), ["group-slot"])
        reason = self.ok("task.explain", taskId=third)["reasons"][0]
        self.assertEqual((reason["reason"], reason["group"], reason["running"], reason["limit"]),
                         ("group-slot", "batch", 1, 1))
        self.let_go()
        for id in (first, second, third):
            self.assertEqual(self.wait(id)["state"], "completed")

    def test_an_agents_settings_are_the_defaults_of_its_tasks(self):
        record = self.wait(self.submit("echo $COLOUR", agent="slow", labels={"kind": "x", "for": "me"}))
        self.assertEqual((record["group"], record["priority"], record["metadata"]["retries"], record["result"]),
                         ("batch", 7, 1, "blue\n"))
        self.assertEqual(record["labels"], {"kind": "x", "for": "me"})
        record = self.wait(self.submit("echo $COLOUR; false", agent="slow", group="default", priority=0, retries=0,
                                       env={"COLOUR": "red"}))
        self.assertEqual((record["group"], record["priority"], record["attempts"], record["result"]),
                         ("default", 0, 1, "red\n"))

    def test_an_unknown_group_is_refused_with_those_there_are(self):
        error = self.error("task.submit", prompt="true", group="bath")
        self.assertEqual((error["code"], error["data"]["param"], error["data"]["accepted"]),
                         (-32602, "group", ["default", "batch", "night"]))
        self.assertEqual(self.error("queue.pause", group="bath")["code"], -32602)

    def test_lists_are_narrowed_and_sorted(self):
        self.ok("queue.pause")
        a = self.submit("true", group="batch", labels={"k": "1"})
        b = self.submit("true", priority=5, labels={"k": "1", "l": "2"})
        c = self.submit("true", agent="slow", priority=2)

        def listed(**params):
            return [task["id"] for task in self.ok("task.list", **params)]
        self.assertEqual(listed(group="batch"), [c, a])
        self.assertEqual(listed(group="default"), [b])
        self.assertEqual(listed(agent="slow", state="queued"), [c])
        self.assertEqual(listed(labels={"k": "1"}), [b, a])
        self.assertEqual(listed(labels={"k": "1", "l": "2"}), [b])
        self.assertEqual(listed(labels={"k": "2"}), [])
        self.assertEqual(listed(sort="oldest", limit=2), [a, b])
        self.assertEqual(listed(sort="oldest", before=b), [c])
        self.assertEqual(listed(sort="priority"), [b, c, a])
        self.assertEqual(listed(sort="ended"), [])
        self.assertEqual(self.error("task.list", sort="ended", before=b)["data"]["param"], "before")
        self.assertEqual(listed(since=utc(-60)), [c, b, a])
        self.assertEqual(listed(since=utc(60)), [])
        self.assertEqual(self.error("task.list", since="yesterday")["data"]["param"], "since")


class Pauses(QueueTestCase):
    def test_a_pause_outlives_the_daemon(self):
        self.assertEqual(self.ok("queue.pause"), {"paused": True, "changed": True, "pausedGroups": ["night"]})
        self.assertEqual(self.ok("queue.pause")["changed"], False)
        id = self.submit("true")
        self.restart_daemon()
        status = self.ok("queue.status")
        self.assertEqual((status["paused"], status["queued"], status["running"]), (True, 1, 0))
        self.assertEqual(self.reasons(id), ["paused"])
        self.assertTrue(self.ok("queue.resume")["changed"])
        self.assertEqual(self.wait(id)["state"], "completed")
        self.assertEqual([kind for kind, _ in self.kinds() if kind.startswith("queue")], ["queuePaused", "queueResumed"])

    def test_a_paused_group_starts_nothing_and_others_go_on(self):
        self.ok("queue.pause", group="batch")
        waiting = self.submit("true", group="batch")
        night = self.submit("true", group="night")
        self.assertEqual(self.wait(self.submit("true"))["state"], "completed")
        self.assertEqual((self.reasons(waiting), self.reasons(night)), (["group-paused"], ["group-paused"]))
        self.restart_daemon()
        self.assertEqual(self.ok("queue.resume", group="night")["pausedGroups"], ["batch"])
        self.assertEqual(self.wait(night)["state"], "completed")
        self.restart_daemon()  # what was said counts more than the settings
        self.assertEqual(self.wait(self.submit("true", group="night"))["state"], "completed")
        self.assertEqual(self.get(waiting)["state"], "queued")
        self.ok("queue.resume", group="batch")
        self.assertEqual(self.wait(waiting)["state"], "completed")


class Holds(QueueTestCase):
    def test_a_held_task_does_not_start_until_it_is_released(self):
        self.ok("queue.pause")
        id = self.submit("true")
        self.assertEqual(self.ok("task.hold", taskId=id), {"held": True, "changed": True})
        self.assertEqual(self.ok("task.hold", taskId=id), {"held": True, "changed": False})
        self.restart_daemon()
        self.ok("queue.resume")
        self.assertEqual(self.wait(self.submit("true"))["state"], "completed")
        self.assertEqual((self.get(id)["held"], self.reasons(id)), (True, ["held"]))
        self.assertEqual(self.ok("task.release", taskId=id), {"held": False, "changed": True})
        self.assertEqual(self.wait(id)["state"], "completed")
        error = self.error("task.hold", taskId=id)
        self.assertEqual((error["code"], error["data"]["reason"]), (-32001, "not-queued"))
        self.assertEqual(self.error("task.hold", taskId="task-99")["code"], -32000)

    def test_a_delay_is_kept_over_a_restart(self):
        late = self.submit("true", delaySeconds=3600)
        at = self.submit("true", notBefore=utc(3600))
        soon = self.submit("true", delaySeconds=0.2)
        self.assertEqual(self.wait(soon)["state"], "completed")
        self.assertGreaterEqual(self.get(soon)["startedAt"], self.get(soon)["notBefore"])
        self.restart_daemon()
        for id in (late, at):
            reason = self.ok("task.explain", taskId=id)["reasons"][0]
            self.assertEqual(reason["reason"], "not-before")
            self.assertEqual(reason["until"], self.get(id)["notBefore"])
            self.assertTrue(3000 < reason["seconds"] <= 3600, reason)
        self.assertIsNone(self.ok("task.edit", taskId=late, delaySeconds=0)["notBefore"])
        self.ok("task.edit", taskId=at, notBefore=utc(0.1))
        for id in (late, at):
            self.assertEqual(self.wait(id)["state"], "completed")
        for wrong in ({"delaySeconds": -1}, {"notBefore": "14:00"}, {"delaySeconds": 1, "notBefore": utc(1)}):
            self.assertEqual(self.error("task.submit", prompt="true", **wrong)["code"], -32602)


class Changes(QueueTestCase):
    def test_a_queued_task_is_edited(self):
        self.ok("queue.pause")
        first = self.submit("true")
        id = self.submit("echo old", key="k")
        record = self.ok("task.edit", taskId=id, prompt="echo new", priority=4, group="batch", after=[first],
                         labels={"a": "b"})
        self.assertEqual((record["prompt"], record["priority"], record["group"], record["metadata"]["after"]),
                         ("echo new", 4, "batch", [first]))
        self.assertEqual(self.submit("echo old", key="k"), id)  # the key stands for what was asked for
        error = self.error("task.edit", taskId=first, after=[id])
        self.assertEqual((error["code"], error["data"]["reason"]), (-32602, "cycle"))
        self.restart_daemon()
        self.assertEqual(self.error("task.edit", taskId=first, after=[id])["data"]["reason"], "cycle")
        self.assertEqual(self.reasons(id), ["after", "paused"])
        self.ok("queue.resume")
        self.assertEqual(self.wait(id)["result"], "new\n")
        self.assertEqual(self.error("task.edit", taskId=id, priority=1)["code"], -32001)
        changed = [event["changed"] for kind, event in self.kinds() if kind == "taskEdited"]
        self.assertEqual(changed, [["prompt", "priority", "group", "after", "labels"]])

    def test_what_an_edit_may_not_say(self):
        self.ok("queue.pause")
        id = self.submit("true")
        for wrong in ({}, {"prompt": " "}, {"group": "nowhere"}, {"after": [id]}, {"prompt": "a\0b"}):
            self.assertEqual(self.error("task.edit", taskId=id, **wrong)["code"], -32602, wrong)
        self.assertEqual(self.error("task.edit", taskId=id, after=["task-77"])["code"], -32000)

    def test_a_task_is_restarted_as_a_new_one(self):
        first = self.submit("echo x >> runs; exit 3", priority=2, group="batch", labels={"a": "b"}, key="k",
                            delaySeconds=0.1)
        self.wait(first)
        again = self.ok("task.restart", taskId=first)["taskId"]
        record = self.wait(again)
        self.assertEqual((record["metadata"]["restartOf"], record["priority"], record["group"], record["labels"]),
                         (first, 2, "batch", {"a": "b"}))
        self.assertEqual((record["state"], record["exitCode"], record["notBefore"]), ("failed", 3, None))
        self.assertEqual(self.get(first)["attempts"], 1)

    def test_a_task_is_not_restarted_with_less_than_it_had(self):
        id = self.submit("echo $COLOUR", env={"COLOUR": "red"})
        self.wait(id)
        for in_place in (False, True):
            if store.SHARED:  # which erases it
                error = self.error("task.restart", taskId=id, inPlace=in_place)
                self.assertEqual((error["code"], error["data"]["reason"]), (-32602, "env-gone"))
            else:
                again = self.ok("task.restart", taskId=id, inPlace=in_place)["taskId"]
                self.assertEqual(self.wait(again)["result"], "red\n")

    def test_a_task_is_restarted_in_place(self):
        id = self.submit(f"echo x; [ -e {self.path('good')} ]", retries=1)
        record = self.wait(id)
        self.assertEqual((record["state"], record["attempts"]), ("failed", 2))
        self.ok("queue.pause")
        self.assertEqual(self.ok("task.restart", taskId=id, inPlace=True), {"taskId": id, "state": "queued"})
        self.assertEqual(self.error("task.restart", taskId=id, inPlace=True)["data"]["reason"], "not-ended")
        record = self.get(id)
        self.assertEqual((record["state"], record["error"], record["completedAt"], record["result"]),
                         ("queued", None, None, None))
        self.restart_daemon()
        self.let_go("good")
        self.ok("queue.resume")
        record = self.wait(id)
        self.assertEqual((record["state"], record["attempts"], record["attemptsNotCounted"]), ("completed", 3, 2))
        output, offset, done = "", 0, False
        while not done:
            piece = self.ok("task.output", taskId=id, offset=offset)
            output, offset, done = output + piece["data"], piece["next"], piece["done"]
        self.assertEqual(output, "x\nx\nx\n")

    def test_ended_tasks_are_removed_with_their_output(self):
        ids = [self.submit("echo x", group="batch") for _ in range(4)]
        for id in ids:
            self.wait(id)
        blocker = self.block(group="batch")  # which runs only when nothing of them is left
        later = self.submit("true", after=[ids[0], blocker])
        answer = self.ok("task.remove", taskIds=[ids[0], ids[1], blocker, "task-99"])
        self.assertEqual(answer["removed"], [ids[1]])
        self.assertEqual([(kept["taskId"], kept["reason"], kept.get("by")) for kept in answer["kept"]],
                         [(ids[0], "needed", later), (blocker, "not-ended", None), ("task-99", "unknown", None)])
        self.assertEqual(self.error("task.get", taskId=ids[1])["code"], -32000)
        self.assertEqual(self.ok("task.clean", state="failed"), {"removed": 0, "kept": 0})
        self.assertEqual(self.ok("task.clean", olderSeconds=3600), {"removed": 0, "kept": 0})
        self.assertEqual(self.ok("task.clean", state="completed"), {"removed": 2, "kept": 1})
        self.assertEqual(self.error("task.clean", state="running")["code"], -32602)
        self.let_go()
        self.wait(later)
        eventually(lambda: self.ok("task.clean") and self.ok("task.stats")["total"] == 0, what="nothing is left")
        outputs = os.path.join(self.project.state, "tasks-*" if store.SHARED else "tasks", "*.out")
        eventually(lambda: not glob.glob(outputs), what="no output is left")
        self.restart_daemon()
        self.assertEqual(self.submit("true"), "task-7")  # an id is never used again


class Draining(QueueTestCase):
    def test_a_drain_waits_for_what_runs_and_starts_nothing(self):
        running = self.block()
        queued = self.submit("true", after=[running])
        self.assertEqual(self.ok("daemon.stop", drain=True), {"stopping": True})
        error = self.error("task.submit", prompt="true")
        self.assertEqual((error["code"], error["data"].get("outcome")), (-32003, "none" if store.SHARED else None))
        self.assertEqual(self.get(running)["state"], "running")
        self.assertTrue(self.ok("queue.status")["stopping"])
        self.let_go()
        self.project.wait_gone(self.pid)
        self.pid = self.project.start()
        self.connect()
        self.assertEqual(self.get(running)["state"], "completed")
        self.assertEqual(self.wait(queued)["state"], "completed")

    def test_a_drain_has_an_end(self):
        running = self.block()
        self.ok("daemon.stop", drain=True, timeoutSeconds=0.2)
        self.project.wait_gone(self.pid)
        self.pid = self.project.start()
        self.connect()
        self.assertEqual(self.get(running)["error"]["reason"], "signal")


class UsageLimits(QueueTestCase):
    TASKS = 50
    settings = """
default_agent = "model"
max_running = 4
[agents.model]
command = ["/bin/sh", "fake_agent", "{prompt}"]
hold = { exit_codes = [75], output = "usage limit.*(?<until>\\\\d+)", for = "15m" }
"""
    # Works from the time on that stands in a file; before that it tells until when it may not.
    AGENT = """
echo "$1" >> begun
if [ "$(date +%s)" -lt "$(cat until)" ]; then echo "usage limit reached|$(cat until)" >&2; exit 75; fi
echo "$1" >> worked
"""

    def setUp(self):
        super().setUp()
        with open(self.path("fake_agent"), "w", encoding="ascii") as file:
            file.write(self.AGENT)
        self.set_until(time.time() + 3600)

    def set_until(self, seconds):
        with open(self.path("until.new"), "w", encoding="ascii") as file:
            file.write(str(int(seconds)))
        os.rename(file.name, self.path("until"))

    def lines(self, name):
        if not os.path.exists(self.path(name)):
            return []
        with open(self.path(name), encoding="ascii") as file:
            return file.read().split()

    def count_kind(self, wanted):
        return [kind for kind, _ in self.kinds()].count(wanted)

    def held(self):
        return [agent["name"] for agent in self.ok("agent.list")["agents"] if "heldUntil" in agent]

    def test_tasks_wait_for_the_end_of_a_usage_limit(self):
        limit = int(time.time()) + 25  # for as many submits as there are tasks, and a restart
        self.set_until(limit)
        ids = [self.submit(f"job-{n}", retries=0) for n in range(self.TASKS)]
        eventually(lambda: self.held() == ["model"], what="the agent is held")
        met = len(self.lines("begun"))
        self.assertLessEqual(met, 4)
        self.restart_daemon()
        self.assertEqual(self.held(), ["model"])
        reason = next(r for r in self.ok("task.explain", taskId=ids[-1])["reasons"] if r["reason"] == "agent-held")
        until = datetime.datetime.fromisoformat(reason["until"][:-1] + "+00:00").timestamp()
        self.assertLess(abs(until - limit), 1 if store.SHARED else 0.001)  # by the database's clock
        records = [self.wait(id) for id in ids]
        self.assertEqual({record["state"] for record in records}, {"completed"})
        self.assertEqual(sorted(self.lines("worked")), sorted(f"job-{n}" for n in range(self.TASKS)))
        self.assertEqual(sum(record["attemptsNotCounted"] for record in records), len(self.lines("begun")) - self.TASKS)
        self.assertTrue(all(r["attempts"] - r["attemptsNotCounted"] == 1 for r in records))
        eventually(lambda: self.count_kind("agentReleased") == 1, what="the agent's release is told")
        self.assertEqual(self.count_kind("agentHeld"), 1)

    def test_a_held_agent_is_released_by_hand(self):
        id = self.submit("job")
        eventually(lambda: self.held() == ["model"], what="the agent is held")
        eventually(lambda: self.get(id)["state"] == "queued", what="the task is queued again")
        self.set_until(0)
        self.assertEqual(self.ok("agent.release", name="model"), {"released": True})
        record = self.wait(id)
        self.assertEqual((record["state"], record["attempts"], record["attemptsNotCounted"]), ("completed", 2, 1))
        self.assertEqual(self.ok("agent.release", name="model"), {"released": False})
        self.assertEqual(self.error("agent.release", name="nobody")["code"], -32602)


class Kills(QueueTestCase):
    """Whatever was acknowledged holds, whenever the daemon is killed."""
    settings = 'default_agent = "shell"\nmax_running = 1\n[groups.a]\n[groups.b]\n'
    ROUNDS = 6

    def act(self, chance, truth):
        """Asks for one thing; what is acknowledged goes into the truth."""
        id = chance.choice(truth["ids"])
        what = chance.randrange(6)
        if what == 0:
            truth["held"][id] = self.ok("task.hold", taskId=id)["held"]
        elif what == 1:
            truth["held"][id] = self.ok("task.release", taskId=id)["held"]
        elif what == 2:
            truth["priority"][id] = self.ok("task.edit", taskId=id, priority=chance.randrange(9))["priority"]
        elif what == 3:
            truth["group"][id] = self.ok("task.edit", taskId=id, group=chance.choice("ab"))["group"]
        else:
            group = chance.choice("ab")
            method = "queue.pause" if what == 4 else "queue.resume"
            truth["paused"][group] = self.ok(method, group=group)["paused"]

    def check(self, truth):
        for id in truth["ids"]:
            record = self.get(id)
            self.assertEqual(record["state"], "queued", record)
            for name in ("held", "priority", "group"):
                wanted = truth[name].get(id)
                self.assertTrue(wanted is None or record[name] == wanted, (name, wanted, record))
        groups = {group["name"]: group["paused"] for group in self.ok("queue.status")["groups"]}
        for name, paused in truth["paused"].items():
            self.assertEqual(groups[name], paused)

    def test_what_was_acknowledged_survives(self):
        chance = random.Random(os.environ.get("DUET_SEED"))
        self.ok("queue.pause")
        truth = {"ids": [self.submit("true") for _ in range(8)], "held": {}, "priority": {}, "group": {}, "paused": {}}
        for _ in range(self.ROUNDS):
            for _ in range(chance.randrange(1, 25)):
                self.act(chance, truth)
            # One that nobody waits for is on its way when the daemon is killed: it holds or does not.
            id = chance.choice(truth["ids"])
            self.connection.send(request("task.edit", 7, params={"taskId": id, "priority": 99}))
            truth["priority"].pop(id, None)
            self.restart_daemon()
            self.check(truth)
        for group in "ab":
            self.ok("queue.resume", group=group)
        self.ok("queue.resume")
        for id in truth["ids"]:
            self.ok("task.release", taskId=id) if self.get(id)["held"] else None
        for id in truth["ids"]:
            self.assertEqual(self.wait(id)["state"], "completed")


if __name__ == "__main__":
    suite.main()
