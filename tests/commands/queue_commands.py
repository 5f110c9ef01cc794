#!/usr/bin/env python3
"""Commands that change the queue: hold, release, edit, restart, remove, clean, explain, pause, agents."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from project import ProjectTestCase  # noqa: E402
from terminal import Terminal  # noqa: E402

SETTINGS = """
[groups.slow]
max_running = 1
[agents.echo]
command = ["printf", "%s", "{prompt}"]
"""


class QueueTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.write_settings(SETTINGS)
        self.project.start()

    def run_task(self, *words, **options):
        return self.project.run("task", *words, **options)

    def submit(self, *words):
        result = self.run_task("submit", "--agent", "echo", *words)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out.strip()

    def get(self, id, format):
        return self.run_task("get", id, "--format", format).out.rstrip("\n")

    def assert_says(self, words, text, code=0):
        result = self.project.run(*words)
        self.assertEqual((result.out, result.code), (text, code), result)


class Queueing(QueueTestCase):
    def test_a_delayed_task_waits_and_says_until_when(self):
        id = self.submit("x", "--delay", "1h")
        self.assertRegex(self.get(id, "{notBefore}"), r"^\d{4}-.*Z$")
        text = self.run_task("explain", id).out
        self.assertRegex(text, rf"^{id} is queued\n  it does not start before [^TZ]*, in \d+ min\n    ")
        self.assertEqual(json.loads(self.run_task("explain", id, "--json").out)["reasons"][0]["reason"], "not-before")
        later = self.submit("x", "--at", "2099-01-02 03:04")
        self.assertRegex(self.get(later, "{notBefore}"), r"^2099-01-0[123]T")
        for when, why in (("noon", "tomorrow 9:30"), ("2001-01-01 10:00", "has passed")):
            self.assert_refused(self.run_task("submit", "x", "--at", when), 1, why)
        self.assert_refused(self.run_task("submit", "x", "--at", "+1h", "--delay", "1h"), 1, "exclude each other")

    def test_held_ones_wait_until_they_are_released(self):
        id = self.submit("x", "--delay", "1h")
        self.assert_says(["task", "hold", id], f"{id} is held\n")
        self.assert_says(["task", "hold", id[5:]], f"{id} is held already\n")
        self.assertRegex(self.run_task("list").out, rf"(?m)^{id} +held ")
        self.assertIn("it is held", self.run_task("explain", id).out)
        self.assert_says(["task", "release", id], f"{id} is released\n")
        self.assert_says(["task", "release", id], f"{id} was not held\n")
        ended = self.submit("y")
        self.run_task("wait", ended)
        result = self.run_task("hold", ended, id)
        self.assertEqual((result.out, result.code), (f"{id} is held\n", 1), result)
        self.assertIn(ended, result.err)

    def test_a_list_is_narrowed(self):
        slow = self.submit("x", "--group", "slow", "--label", "for=me", "--label", "n=1")
        other = self.submit("y", "--label", "for=you", "--priority", "3")
        ids = lambda *words: self.run_task("list", "--format", "{id}", *words).out.split()  # noqa: E731
        self.assertEqual(ids("--group", "slow"), [slow])
        self.assertEqual(ids("--label", "for=me", "--label", "n=1"), [slow])
        self.assertEqual(ids("--label", "for=me", "--label", "n=2"), [])
        self.assertEqual(ids("--sort", "oldest"), [slow, other])
        self.assertEqual(ids("--before", other), [slow])
        self.assertEqual(ids("--since", "1h", "--agent", "echo"), [other, slow])
        self.assertEqual(ids("--agent", "shell"), [])
        self.assertRegex(self.run_task("get", slow).out, r"(?m)^group +slow\nlabels +for=me, n=1$")
        self.assertRegex(self.run_task("list", "--columns", "id,group,labels").out, rf"(?m)^{slow} +slow +for=me n=1$")
        self.assert_refused(self.run_task("list", "--since", "soon"), 1, "yesterday 9:30")
        self.assert_refused(self.run_task("submit", "x", "--agent", "echo", "--group", "nobody"), 1, "slow")

    def test_the_queue_pauses_and_goes_on(self):
        self.assert_says(["queue", "pause"], "the queue is paused: what runs goes on, nothing new starts\n")
        self.assert_says(["queue", "pause"], "the queue is paused already\n")
        id = self.submit("x", "--group", "slow")
        self.assertIn("the queue is paused\n    resume it: queue resume", self.run_task("explain", id).out)
        self.assertRegex(self.project.run("queue", "status").out, r"^the queue is paused: 0 of 3 running, 1 queued\n")
        self.assert_says(["queue", "pause", "slow"], "group slow is paused: what runs goes on, nothing new starts\n")
        self.assert_says(["queue", "resume"], "the queue is open again\ngroup slow is still paused\n")
        self.assertRegex(self.project.run("queue", "status", "slow").out,
                         r"the queue is open: .*\n\nGROUP  STATE   RUNNING  QUEUED\nslow   paused  0 of 1   1\n$")
        self.assert_says(["queue", "resume", "slow"], "group slow is open again\n")
        self.assertEqual(self.run_task("wait", id).code, 0)
        for options in ([], ["--json"]):
            self.assert_refused(self.project.run("queue", "status", "nobody", *options), 1, "no group 'nobody'", "default, slow")
        self.assertFalse(self.project.run("queue", "status", "--json").json()["paused"])

    def test_agents_are_listed(self):
        lines = self.project.run("agent", "list").out.splitlines()
        self.assertRegex(lines[0], r"^AGENT +STATE +RUNNING +QUEUED +GROUP +PROGRAM$")
        self.assertTrue(any(re.match(r"echo +0 +0 +default +printf$", line) for line in lines), lines)
        self.assert_says(["agent", "release", "echo"], "agent echo was not held\n")
        self.assert_refused(self.project.run("agent", "release", "nobody"), 1, "nobody")

    def test_agents_are_told_with_whether_they_are_there(self):
        told = self.project.run("agent", "list", "--json").json()
        self.assertEqual(set(told), {"default", "agents"})
        agents = {agent["name"]: agent for agent in told["agents"]}
        self.assertTrue(agents["echo"]["available"])
        self.assertEqual(agents["echo"]["program"], "printf")
        self.assertEqual([name for name, agent in agents.items() if agent["isDefault"]],
                         [] if told["default"] is None else [told["default"]])

    def test_shells_are_told_agents_and_groups(self):
        self.assertEqual(self.offered("agent"), ["claude", "echo", "shell"])
        self.assertEqual(self.offered("group"), ["default", "slow"])
        self.assertEqual(self.project.run("candidates", "rule").out, "")

    def test_a_key_that_is_used_names_its_task_and_what_differs(self):
        id = self.submit("x", "--key", "k")
        self.assertEqual(self.submit("x", "--key", "k"), id)
        self.assert_refused(self.run_task("submit", "--agent", "echo", "y", "--key", "k", "--priority", "2"), 1,
                            f"the key belongs to {id} already, where priority and prompt are different")


class Again(QueueTestCase):
    def test_a_task_is_run_again(self):
        first = self.submit("x")
        self.run_task("wait", first)
        self.assertEqual(self.run_task("restart", first, "-f").out, "x")
        self.assertEqual(self.get("2", "{metadata.restartOf} {prompt}"), f"{first} x")
        self.assert_says(["task", "restart", first, "--in-place"], f"{first}\n")
        self.assertEqual(self.run_task("wait", first).code, 0)
        self.assertEqual(self.get(first, "{attempts}"), "2")
        self.assert_refused(self.run_task("restart", "99", "-f"), 123, "task-99")

    def test_what_has_ended_is_removed(self):
        first = self.submit("x", "--group", "slow")
        waiting = self.submit("y", "--delay", "1h")
        for _ in range(3):  # each runs only when nothing of the one before is left
            self.run_task("wait", self.submit("z", "--group", "slow"))
        result = self.run_task("remove", first, waiting, "99")
        self.assertEqual((result.out, result.code), (f"{first} removed\n", 1), result)
        self.assertRegex(result.err, rf"{waiting} stays: .*\n.*task-99 stays: ")
        self.assert_says(["task", "clean", "--older", "7d"], "0 tasks removed\n")
        self.assert_says(["task", "clean", "--state", "failed"], "0 tasks removed\n")
        self.assertRegex(self.run_task("clean").out, r"^[23] tasks removed")


class Editing(QueueTestCase):
    def setUp(self):
        super().setUp()
        self.id = self.submit("the\nprompt", "--delay", "1h", "--label", "a=b")

    def editing_with(self, script):
        """The environment for an editor that runs SCRIPT on the file."""
        editor = os.path.join(self.project.place.name, "editor")
        with open(editor, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(editor, 0o700)
        return {"VISUAL": editor, "TMPDIR": self.project.place.name}

    def edit(self, script):
        return self.run_task("edit", self.id, env=self.editing_with(script))

    def test_options_change_it(self):
        result = self.run_task("edit", self.id, "--priority", "7", "--group", "slow", "--label", "c=d", "--label", "a=",
                               "--prompt", "another")
        self.assertEqual((result.out, result.code), (f"{self.id} changed\n", 0), result)
        self.assertEqual(self.get(self.id, "{priority} {group} {labels} {prompt}"), '7 slow {"c":"d"} another')
        self.assertEqual(self.run_task("edit", self.id, "--delay", "0", "--format", "{notBefore}").out, "\n")
        self.assertEqual(self.run_task("wait", self.id).code, 0)
        self.assert_refused(self.run_task("edit", self.id, "--priority", "1"), 1, "is completed: only a queued task")

    def test_text_that_is_none_is_refused(self):
        self.assert_refused(self.run_task("edit", self.id, "--prompt", "-", input=b"rm f\xe9"), 1, "not UTF-8")
        result = self.run_task("edit", self.id, "--prompt", b"rm f\xe9")
        self.assertNotEqual(result.code, 0)
        self.assertIn("the value of option '--prompt' is not UTF-8", result.err)

    def test_an_editor_changes_it(self):
        result = self.edit("sed -i 's/^priority = 0/priority = 4/; s/^prompt/words/; s/^not-before.*/not-before =/' \"$1\"")
        self.assertEqual((result.out, result.code), (f"{self.id} changed\n", 0), result)
        self.assertEqual(self.run_task("wait", self.id).code, 0)
        self.assertEqual(self.get(self.id, "{priority} {result}"), "4 the\nwords")
        self.assertEqual([name for name in os.listdir(self.project.place.name) if name.startswith("duet-task")], [])

    def test_what_is_left_as_it_was_changes_nothing(self):
        self.assertEqual(self.edit("true").out, f"{self.id} is unchanged\n")
        result = self.run_task("edit", self.id, "--json", env=self.editing_with("true"))
        self.assertEqual(result.json()["id"], self.id, "the record as it is")
        self.assert_refused(self.edit("exit 3"), 1, "the editor .* failed; nothing was changed")

    def test_a_fault_keeps_the_text(self):
        for script, fault in (("sed -i 's/^priority = 0/priority = high/'", "line 2: priority is 'high'"),
                              ("sed -i 's/^group = .*/group = nobody/'", "slow")):
            result = self.edit(f'{script} "$1"')
            self.assert_refused(result, 1, fault, "the text is kept in ")
            path = re.search(r"kept in (\S+)", result.err).group(1)
            with open(path, encoding="utf-8") as file:
                self.assertIn("the\nprompt\n", file.read())
        self.assertEqual(self.get(self.id, "{priority} {group}"), "0 default")

    def test_a_person_may_edit_again(self):
        script = "grep -q high \"$1\" && sed -i 's/high/9/' \"$1\" || sed -i 's/^priority = 0/priority = high/' \"$1\""
        with Terminal() as terminal:
            streams = {name: terminal.slave for name in ("stdin", "stdout", "stderr")}
            with self.project.popen("task", "edit", self.id, env=self.editing_with(script), **streams) as process:
                self.assertTrue(terminal.screen.wait_until(lambda data: b"Edit again? [Y/n]" in data, PATIENCE))
                terminal.type(b"\n")
                self.assertEqual(process.wait(PATIENCE), 0, terminal.screen.text())
        self.assertEqual(self.get(self.id, "{priority}"), "9")


if __name__ == "__main__":
    suite.main()
