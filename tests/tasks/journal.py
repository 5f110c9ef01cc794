#!/usr/bin/env python3
"""Every state has its event and every event its state, whenever the daemon is killed; rules fire once for each event.

    journal.py --program PATH [--rounds N]      N rounds of kills, 15 unless given
"""

import collections
import itertools
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import Failure, eventually, request  # noqa: E402
from project import ProjectTestCase  # noqa: E402

CLIENTS = 6
RULES = 30  # a task that fails with code N is for rule N
PACE = 5  # failures a minute for each; a rule may fire ten times
ENDS = {"taskCompleted": "completed", "taskFailed": "failed", "taskCancelled": "cancelled"}
SETTINGS = 'default_agent = "shell"\nmax_running = 4\nqueue_capacity = 100000\nkeep_tasks = 100000\n'
RULE = """
[[rules]]
id = "rule-{0}"
trigger = {{ source = "task", type = "task.failed" }}
conditions = [ {{ field = "payload.exitCode", operator = "eq", value = {0} }} ]
action = {{ type = "agent", agent = "shell", prompt = 'echo "$DUET_EVENT_TASK_ID" >> fired' }}
"""


class History:
    """All events, read on over every end of the daemon."""

    def __init__(self, project):
        self.project = project
        self.events = {}  # by number
        self.epoch = None

    def read_on(self, patience=0.2):
        """What is there now, and what comes until it is quiet or the daemon is gone."""
        try:
            with self.project.connect() as connection:
                connection.send(request("events.subscribe", 1, params={"since": len(self.events) + 1}))
                answer, early = connection.answer(1)  # what comes before the answer is not sent again
                for message in early:
                    self.take(message)
                answer = answer["result"]
                self.epoch = self.epoch or answer["epoch"]
                assert answer["epoch"] == self.epoch and "missed" not in answer, answer
                while True:
                    self.take(connection.next_message(patience))
        except (OSError, Failure):
            pass
        # What was read before a gap may have come early, and the gap not any more: all behind it is read again.
        whole = next(number for number in itertools.count(1) if number not in self.events)
        self.events = {number: event for number, event in self.events.items() if number < whole}

    def take(self, message):
        if message["method"] != "event.taskOutput":
            params = message["params"]
            self.events[params["seq"]] = (message["method"].removeprefix("event."), params)


class Prompts:
    """Tasks of which some fail, for a rule that may still fire."""

    def __init__(self):
        self.chance = random.Random(os.environ.get("DUET_SEED"))
        self.failures = [collections.deque([0.0] * PACE, PACE) for _ in range(RULES)]

    def next(self):
        rule = self.chance.randrange(RULES)
        fails = self.chance.randrange(4 * CLIENTS) == 0 and time.monotonic() - self.failures[rule][0] > 60
        if not fails:
            return "true"
        self.failures[rule].append(time.monotonic())
        return f"exit {rule + 1}"


def submit_until_gone(project, accepted, prompts):
    try:
        with project.connect() as connection:
            while True:
                answer = connection.call("task.submit", params={"prompt": prompts.next()})
                accepted.append(answer["result"]["taskId"])
    except (OSError, Failure):
        pass


class Killed(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.write_settings(SETTINGS + "".join(RULE.format(number) for number in range(1, RULES + 1)))
        self.addCleanup(self.project.run, "daemon", "stop", "--force")

    def test_no_event_is_lost_told_twice_or_told_of_what_did_not_happen(self):
        history = History(self.project)
        accepted = []
        prompts = Prompts()
        for _ in range(int(suite.option("rounds") or 15)):
            pid = self.project.start()
            clients = [threading.Thread(target=submit_until_gone, args=(self.project, accepted, prompts))
                       for _ in range(CLIENTS)]
            clients.append(threading.Thread(target=history.read_on))
            for client in clients:
                client.start()
            time.sleep(prompts.chance.uniform(0.001, 0.2))
            self.project.kill(pid)
            for client in clients:
                client.join()
        self.project.start()
        self.wait_until_all_ended()
        last = self.project.call("events.subscribe")["result"]["next"] - 1
        eventually(lambda: history.read_on(1) or len(history.events) >= last, what="all events are read")
        self.check([history.events[number] for number in sorted(history.events)], set(accepted))

    def wait_until_all_ended(self):
        """Those that rules submit, too: of each that failed there will be one."""
        def ended():
            stats = self.project.call("task.stats")["result"]
            return stats["queued"] == 0 and stats["running"] == 0 and len(self.fired()) >= stats["failed"]
        eventually(ended, 300, "the end of all tasks")

    def fired(self):
        """The tasks that rules have fired for."""
        try:
            with open(os.path.join(self.project.root, "fired"), encoding="ascii") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def check(self, events, accepted):
        next_number = self.project.call("events.subscribe")["result"]["next"]
        self.assertEqual(len(events) + 1, next_number, "a gap")
        kinds = collections.defaultdict(list)
        for kind, params in events:
            if "taskId" in params and kind.startswith("task"):
                kinds[params["taskId"]].append(kind)
        self.assertLessEqual(accepted, set(kinds), "a task that nobody heard of")
        failed = set()
        with self.project.connect() as connection:
            for id, told in kinds.items():
                record = connection.call("task.get", params={"taskId": id})["result"]
                self.assertEqual(told[:2], ["taskQueued", "taskStarted"], (id, told))
                self.assertEqual([ENDS.get(kind) for kind in told[2:]], [record["state"]], (id, told))
                if record["state"] == "failed":
                    failed.add(id)
        self.check_rules(failed)
        print(f"{len(kinds)} tasks, {len(events)} events, {len(failed)} firings", file=sys.stderr)

    def check_rules(self, failed):
        """Each failed task has set off its rule once."""
        fired = collections.Counter(self.fired())
        self.assertEqual([id for id, count in fired.items() if count > 1], [], "fired twice")
        self.assertEqual(set(fired), set(failed))


if __name__ == "__main__":
    suite.main()
