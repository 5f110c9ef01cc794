#!/usr/bin/env python3
"""Nothing a task starts outlives it, whatever it does; what a task finds when it begins; two daemons beside each other."""

import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from task_project import TaskTestCase, utc  # noqa: E402

# Each leaves processes behind that do their best to get away.
ESCAPES = {
    "setsid": "setsid sleep 300 & setsid -f sleep 300",
    "double fork": "(setsid sh -c '(sleep 300 &) &' &)",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 &",
    "ignores TERM": "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' & "
                    "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &",
    "200 children": "i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done",
    "stopped": "sleep 300 & kill -STOP $!",
    "forgets its environment": "env -i setsid sleep 300 & (env -i sleep 300 &)",
}


def stat_of(pid):
    """State and parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return words[0], int(words[1])
    except OSError:
        return None


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def below(root):
    """The processes that descend from ROOT."""
    parents = {pid: stat[1] for pid in all_pids() if (stat := stat_of(pid))}
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


class ContainmentTestCase(TaskTestCase):
    settings = 'default_agent = "shell"\nmax_running = 1\n'

    def begin(self, prompt, **params):
        """Runs PROMPT, which must say `ready`, then returns the task's id and its keeper."""
        id = self.submit(prompt, **params)
        eventually(lambda: "ready" in self.call("task.output", taskId=id)["result"]["data"], what="a running task")
        record = eventually(lambda: (task := self.get(id))["state"] != "queued" and task, what="a running task")
        return id, stat_of(record["pid"])[1]

    def begin_held(self, prompt, **params):
        """The same with a keeper that stands still until it is told to go on: till then no limit strikes."""
        held = self.path("held")
        id = self.submit(f"kill -STOP $PPID\n{prompt.replace('echo ready', 'echo $PPID >held.new; mv held.new held')}", **params)
        eventually(lambda: os.path.exists(held), what="a task that has begun")
        with open(held, encoding="ascii") as file:
            keeper = int(file.read())
        os.unlink(held)
        return id, keeper

    def assert_gone(self, keeper):
        """Soon: it may end behind its daemon, and is then for init to reap."""
        eventually(lambda: not stat_of(keeper), what="the keeper's end")

    def assert_nothing_left(self, processes):
        """Not even a zombie."""
        left = {pid: stat for pid in processes if (stat := stat_of(pid))}
        self.assertEqual(left, {})


class NothingIsLeft(ContainmentTestCase):
    def check(self, name, end, state, reason=None, begin=None, **params):
        with self.subTest(escape=name):
            id, keeper = (begin or self.begin)(f"{ESCAPES[name]}\necho ready; wait; sleep 300", **params)
            # One that forks and ends while the list is read may be missing in it.
            tree = eventually(lambda: len(found := below(keeper)) > 1 and found, what="the task's processes")
            after = self.submit("true")
            end(id, keeper)
            record = self.wait(id)
            self.assertEqual((record["state"], (record["error"] or {}).get("reason")), (state, reason), record)
            self.wait(after)  # the only slot was free
            self.assert_nothing_left(tree)

    def test_after_a_cancel(self):
        for name in ESCAPES:
            self.check(name, lambda id, _: self.call("task.cancel", taskId=id), "cancelled")

    def test_after_a_time_limit(self):
        for name in ESCAPES:
            self.check(name, lambda _, keeper: os.kill(keeper, signal.SIGCONT), "failed", "timeout", begin=self.begin_held,
                       timeoutSeconds=4)

    def test_after_the_end(self):
        for name, escape in ESCAPES.items():
            with self.subTest(escape=name):
                go = os.path.join(self.project.root, f"go {name}")
                id, keeper = self.begin(f"{escape}\necho ready; until [ -e '{go}' ]; do sleep 0.05; done; exit 5")
                tree = below(keeper)
                after = self.submit("true")
                open(go, "w", encoding="ascii").close()
                self.assertEqual(self.wait(id)["exitCode"], 5)
                self.wait(after)
                self.assert_nothing_left(tree)

    def test_after_a_stop(self):
        everything = "\n".join(ESCAPES.values())
        id, keeper = self.begin(f"{everything}\necho ready; wait; sleep 300")
        tree = below(keeper)
        self.assertGreater(len(tree), 200)
        stopped = self.project.run("daemon", "stop", "--force")
        self.assertEqual(stopped.code, 0, stopped)
        self.assert_nothing_left(tree)
        self.assert_gone(keeper)
        self.pid = self.project.start()
        self.connect()
        record = self.get(id)
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "signal"), record)

    def test_nor_if_the_keeper_was_suspended(self):
        for end in (lambda: self.call("task.cancel", taskId=id), lambda: self.project.run("daemon", "stop", "--force")):
            id, keeper = self.begin("echo ready; sleep 300")
            tree = below(keeper)
            os.kill(keeper, signal.SIGSTOP)
            end()
            eventually(lambda: not any(stat_of(pid) for pid in tree), what="the end of the task")
        self.assert_nothing_left(tree)
        self.assert_gone(keeper)

    def test_the_slot_is_free_only_then(self):
        # The main process ends at once; what ignores TERM goes on for the 5 s until KILL.
        go = os.path.join(self.project.root, "go")
        id, keeper = self.begin("sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.2; done' & "
                                f"until [ -e '{go}' ]; do sleep 0.05; done")
        tree = below(keeper)
        after = self.submit("true")
        open(go, "w", encoding="ascii").close()
        self.assertEqual(self.wait(id)["state"], "completed")
        record = self.wait(after)
        self.assertEqual(record["state"], "completed")
        self.assertLess(self.told_at(id), utc(record["startedAt"]), "what is left holds up the end")
        self.assertGreater(utc(record["startedAt"]) - utc(self.get(id)["completedAt"]), 4)
        self.assert_nothing_left(tree)

    def test_cancelled_is_said_only_then(self):
        id, keeper = self.begin("trap '' TERM; echo ready; while :; do sleep 0.2; done")
        tree = below(keeper)
        self.assertEqual(self.call("task.cancel", taskId=id)["result"], {"cancelled": True})
        self.assertEqual(self.get(id)["state"], "running")
        self.assertEqual(self.wait(id)["state"], "cancelled")
        self.assert_nothing_left(tree)

    def test_no_zombies_under_the_daemon(self):
        for id in [self.submit("(sleep 0.05 &) ; true & true & true") for _ in range(20)]:
            self.wait(id)
        eventually(lambda: not [pid for pid in below(self.pid) if (stat_of(pid) or "?")[0] == "Z"], what="no zombie")


FINDS = r"""
import json, os, signal, sys
print(json.dumps({
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)),
    "stdin": os.readlink("/proc/self/fd/0"),
    "ignored": [l.split()[1] for l in open("/proc/self/status") if l[:7] in ("SigIgn:", "SigBlk:")],
    "session": os.getsid(0) == os.getpid(), "group": os.getpgid(0) == os.getpid(),
    "umask": os.umask(0), "id": os.environ.get("DUET_TASK_ID")}))
"""


class WhatATaskFinds(ContainmentTestCase):
    settings = ContainmentTestCase.settings + f"""
[agents.look]
command = ["{sys.executable}", "-S", "{{prompt}}"]
"""

    def test_a_clean_place(self):
        with open(self.path("look.py"), "w", encoding="utf-8") as file:
            file.write(FINDS)
        self.project.run("daemon", "stop")
        before = os.umask(0o027)
        try:
            with open(os.devnull, "rb") as extra:
                os.set_inheritable(extra.fileno(), True)
                # Python ignores SIGPIPE and SIGXFSZ, and leaves that to its children if it is told to.
                self.project.start(pass_fds=(extra.fileno(),), restore_signals=False)
        finally:
            os.umask(before)
        self.connect()
        id = self.submit(self.path("look.py"), agent="look")
        found = json.loads(self.wait(id)["result"])
        ours = f"{1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1):016x}"  # Python sets these for itself
        self.assertEqual(found, {"descriptors": [0, 1, 2], "stdin": "/dev/null", "ignored": ["0" * 16, ours],
                                 "session": True, "group": True, "umask": 0o027, "id": id})


class TwoProjects(ContainmentTestCase):
    def test_do_not_touch_each_others_tasks(self):
        other = self.new_project()
        other.write_settings(self.settings)
        other.start()
        self.addCleanup(other.run, "daemon", "stop", "--force")
        theirs = other.call("task.submit", params={"prompt": "echo ready; sleep 300"})["result"]["taskId"]
        mine, keeper = self.begin("echo ready; sleep 300")
        self.assertEqual(mine, theirs)  # the same number in both
        record = eventually(lambda: (task := other.call("task.get", params={"taskId": theirs})["result"])["pid"] and task)
        os.kill(keeper, signal.SIGKILL)  # what is left of mine is looked for among all processes
        self.assertEqual(self.wait(mine)["error"]["reason"], "lost")
        self.project.kill(self.pid)
        self.pid = self.project.start()
        self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
        after = other.call("task.get", params={"taskId": theirs})["result"]
        self.assertEqual((after["state"], after["pid"]), ("running", record["pid"]))
        self.assertTrue(other.is_running(record["pid"]))


if __name__ == "__main__":
    suite.main()
