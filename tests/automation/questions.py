#!/usr/bin/env python3
"""Rules that are asked, fired by hand, denied; programs that they run; time zones; all files of a burst."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from rule_project import RuleTestCase, shell  # noqa: E402


def run_rule(id, trigger, command, more=""):
    return (f"[[rules]]\nid = '{id}'\ntrigger = {{ {trigger} }}\n"
            f"action = {{ type = 'run', command = {json.dumps(command)}{more} }}\n")


class Questions(RuleTestCase):
    def test_a_rule_tells_what_it_would_do(self):
        self.write(".gitignore", "gen/\n")
        self.start(shell("tests", "source = 'watch', pattern = '**/*.c'", "make test",
                         "conditions = [ { field = 'payload.path', operator = 'matches', value = '_test' } ]"),
                   shell("noon", "cron = '0 12 * * *'", "true", "timezone = 'Asia/Tokyo'"))
        result = self.project.run("automation", "test", "tests", "--path", "a_test.c")
        self.assertEqual(result.code, 0, result)
        self.assertIn("would fire", result.out)
        self.assertIn("ask shell: make test", result.out)
        self.assertEqual(self.project.run("automation", "test", "tests", "--path", "./sub/../a_test.c").code, 0)
        self.assert_refused(self.project.run("automation", "test", "tests", "--path", "../a_test.c"), 1, "not in the project")
        below = os.path.join(self.project.root, "below")
        os.mkdir(below)
        shown = self.project.run("automation", "test", "tests", "--path", "a_test.c", "--json", cwd=below).json()
        self.assertEqual(shown["event"]["payload"]["path"], "below/a_test.c")
        result = self.project.run("automation", "test", "tests", "--path", "a.c", "--json")
        self.assertEqual(result.code, 1, result)
        self.assertEqual([entry["asks"] for entry in result.json()["conditions"] if not entry["holds"]],
                         ["payload.path matches _test"])
        self.assertIn("gen is ignored by .gitignore:1",
                      self.call("automation.test", ruleId="tests", path="gen/a_test.c")["result"]["hindrance"])
        at = self.call("automation.test", ruleId="noon", time="2026-06-01T03:00:00Z")["result"]
        self.assertEqual((at["matches"], at["nextAt"]), (True, "2026-06-02T03:00:00.000Z"))
        for params in ({"ruleId": "none"}, {"ruleId": "tests", "taskId": "task-1"}, {"ruleId": "noon", "time": "soon"},
                       {"ruleId": "tests", "path": "a", "time": "2026-06-01T03:00:00Z"},
                       {"ruleId": "tests", "path": "./a"}, {"ruleId": "tests", "path": "/a"}):
            self.assertEqual(self.call("automation.test", **params)["error"]["code"], -32602, params)
        self.assertEqual(self.recent(), [])

    def test_a_rule_is_fired_by_hand_and_has_a_history(self):
        self.start(shell("save", "source = 'watch', pattern = '*.c'", 'printf %s "$DUET_PATH"', "cooldown = '1h'"))
        for _ in range(2):
            result = self.project.run("automation", "fire", "save", "--path", "x.c", "--json")
            self.assertEqual(result.code, 0, result)
        self.assertEqual(self.result_of(result.json()), "x.c")
        history = self.call("automation.history", ruleId="save")["result"]
        self.assertEqual([entry["cause"] for entry in history["firings"]], ["by hand"] * 2)
        self.assertIn("by hand", self.project.run("automation", "history", "save").out)
        self.call("automation.disable", ruleId="save")
        self.assertEqual(self.call("automation.fire", ruleId="save")["error"]["code"], -32003)
        self.assert_refused(self.project.run("automation", "fire", "save"), 1, "is off")

    def test_switches_are_told(self):
        rules = [shell(id, "source = 'watch', pattern = 'a'", "true") for id in ("one", "two")]
        self.start(*rules)
        with self.project.connect() as client:
            client.call("events.subscribe", params={"kinds": ["automationChanged"]})

            def told():
                event = client.next_message()
                self.assertEqual(event["method"], "event.automationChanged")
                event["params"].pop("seq")
                return event["params"]

            self.call("automation.disable")
            self.assertEqual(told(), {"enabled": False})
            self.call("automation.disable")  # nothing changes
            self.call("automation.enable")
            self.assertEqual(told(), {"enabled": True})
            self.call("automation.disable", ruleId="two")
            self.assertEqual(told(), {"ruleId": "two", "enabled": False})
            self.settings(rules[0] + "enabled = false\n", rules[1])
            self.assertEqual(told(), {"ruleId": "one", "enabled": False})

    def test_what_waits_for_approval_is_shown_and_may_be_denied(self):
        self.start(shell("careful", "source = 'watch', pattern = 'a'", "echo dangerous", "requires_approval = true"))
        with self.project.connect() as client:
            client.call("ping")
            self.write("a")
            needed = client.next_event()
        self.assertEqual(needed["method"], "event.approvalNeeded")
        self.assertEqual(needed["params"]["would"], {"action": "agent", "prompt": "echo dangerous", "agent": "shell"})
        self.assertEqual(needed["params"]["cause"], "file.create a")
        self.assertEqual({name: needed["params"][name] for name in ("firingId", "ruleId", "count")},
                         {"firingId": "firing-1", "ruleId": "careful", "count": 1})
        self.assertIn("ask shell: echo dangerous", self.project.run("automation", "status").out)
        self.assertEqual(self.project.run("automation", "deny", "firing-1").out, "firing-1 denied\n")
        self.assertEqual(self.call("automation.approve", id="firing-1")["error"]["code"], -32602)
        self.assertEqual(self.recent()[0]["reason"], "denied")

    def test_approvals_are_given_by_number_and_by_rule(self):
        self.start(shell("careful", "source = 'watch', pattern = '*.md'", "true", "requires_approval = true"))
        for count, name in enumerate(("a.md", "b.md", "c.md"), 1):
            self.write(name)
            eventually(lambda: len(self.recent("careful")) == count, what="one more waits")
        approved = self.project.run("automation", "approve", "1")
        self.assertEqual((approved.code, approved.out), (0, "firing-1 approved: task-1\n"))
        self.assertEqual(self.result_of(self.recent(outcome="fired")[0]), "")
        self.assertEqual(self.project.run("automation", "deny", "careful").out, "firing-2 denied\nfiring-3 denied\n")
        self.assert_refused(self.project.run("automation", "approve", "careful"), 1, "nothing waits for approval")


class Programs(RuleTestCase):
    def event_read(self):
        try:
            with open(self.path("out.json"), encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):  # not all of it yet
            return None

    def test_a_program_reads_the_event(self):
        self.start(run_rule("hook", "type = 'file.create', pattern = 'in/*'", ["sh", "-c", "cat > out.json"]))
        self.write("in/a")
        event = eventually(self.event_read, what="the program has read it")
        self.assertEqual((event["ruleId"], event["type"], event["payload"]),
                         ("hook", "file.create", {"path": "in/a", "paths": ["in/a"]}))

    def test_its_failure_is_an_event(self):
        self.start(run_rule("hook", "source = 'watch', pattern = 'a'", ["sh", "-c", "echo no route >&2; exit 7"]),
                   run_rule("late", "source = 'watch', pattern = 'b'", ["sleep", "1000"], ", timeout = '200ms'"))
        with self.project.connect() as client:
            client.call("ping")
            client.call("events.subscribe", params={"kinds": ["runFailed"]})
            self.write("a")
            self.assertEqual(client.next_message()["params"]["message"], "it ended with 7: no route")
            self.write("b")
            self.assertEqual(client.next_message()["params"]["message"], "it took longer than 200 ms")


    def test_one_that_sets_itself_off_is_stopped(self):
        self.start("[watch]\nmax_chain = 3",
                   run_rule("loop", "source = 'watch', pattern = 'a'", ["sh", "-c", "date +%s%N >> a"]))
        self.write("a")
        [held] = self.await_held("chain limit")
        fired = [entry["id"] for entry in reversed(self.recent("loop", "fired"))]
        self.assertEqual(held["links"], [{"ruleId": "loop", "id": id} for id in fired])
        self.stays(3)


class Bursts(RuleTestCase):
    def test_all_files_are_there_whatever_their_names(self):
        self.start(shell("burst", "source = 'watch', pattern = 'many/*'",
                         'printf %b "$DUET_PATHS_0" | xargs -0 -n1 printf "[%s]"'))
        names = ["many/a b", "many/c\nd", "many/e\\\\f", "many/1"]
        for name in names:
            self.write(".git/" + name)
        os.rename(self.path(".git/many"), self.path("many"))
        [entry] = self.await_firings(1)
        self.assertEqual(sorted(self.result_of(entry)[1:-1].split("][")), sorted(names))

    def test_a_wrong_time_zone_is_refused(self):
        self.settings(shell("noon", "cron = '@daily'", "true", "timezone = 'Europe/Berlln'"))
        self.assert_refused(self.project.run("daemon", "start"), 1, "timezone", "Europe/Berlin")


if __name__ == "__main__":
    suite.main()
