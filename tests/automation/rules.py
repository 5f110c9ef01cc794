#!/usr/bin/env python3
"""Rules at work: files, tasks and the daemon's start set them off, and nothing lets them run away."""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from rule_project import RuleTestCase, shell  # noqa: E402


class Files(RuleTestCase):
    SAVES = shell("saves", "source = 'watch', type = 'file.modify', pattern = 'src/**/*.txt'",
                  'printf %s "$DUET_TYPE $DUET_PATH $DUET_COUNT"')

    def test_a_save_by_renaming_is_one_modification(self):
        self.write("src/a.txt", "old")
        self.start(self.SAVES)
        self.write("src/.a.txt.tmp", "new")
        os.rename(self.path("src/.a.txt.tmp"), self.path("src/a.txt"))
        [entry] = self.await_firings(1)
        self.assertEqual(self.result_of(entry), "file.modify src/a.txt 1")
        self.stays(1)

    def test_a_file_in_a_folder_that_has_just_come_is_not_missed(self):
        self.start(shell("new", "type = 'file.create', pattern = 'x/**'", 'printf %s "$DUET_PATH"'))
        self.write("x/y/z/file")
        [entry] = self.await_firings(1)
        self.assertEqual(self.result_of(entry), "x/y/z/file")

    def test_a_burst_is_one_firing_with_its_count(self):
        for number in range(5000):
            self.write(f".git/many/{number}")
        self.start(shell("burst", "source = 'watch', pattern = 'many/*'", 'printf %s "$DUET_COUNT"'))
        os.rename(self.path(".git/many"), self.path("many"))  # at once, however slow the machine is
        entry = self.await_firings(1)[-1]
        self.assertEqual(entry["count"], 5000)
        self.assertEqual(self.result_of(entry), "5000")
        self.stays(1)

    def test_ignored_files_do_not_count(self):
        self.start("[watch]\nignore = ['*.o', 'build/']", shell("all", "source = 'watch'", 'printf %s "$DUET_PATH"'))
        self.write("a.o")
        self.write("build/out")
        self.write(".git/index")
        self.write("a.c")
        [entry] = self.await_firings(1)
        self.assertEqual((self.result_of(entry), entry["count"]), ("a.c", 1))
        self.stays(1)

    def test_what_git_ignores_does_not_count_until_gitignore_says_otherwise(self):
        self.write(".gitignore", "target/\n*.o\n")
        self.write("target/old")
        self.start(shell("all", "source = 'watch'", 'printf %s "$DUET_PATH"'))
        self.write("target/new")
        self.write("a.o")
        self.write("a.c")
        [entry] = self.await_firings(1)
        self.assertEqual((self.result_of(entry), entry["count"]), ("a.c", 1))
        self.write(".gitignore", "*.o\n")
        self.await_firings(2)
        self.write("target/new", "changed")
        self.assertEqual(self.result_of(self.await_firings(3)[0]), "target/new")

    def test_a_name_is_data_for_the_shell(self):
        self.start(shell("name", "type = 'file.create', pattern = 'in/*'", 'printf %s "$DUET_PATH"'))
        name = "in/$(touch stolen) `touch stolen`; touch stolen\n'\""
        self.write(name)
        [entry] = self.await_firings(1)
        self.assertEqual(self.result_of(entry), name)
        self.assertFalse(os.path.exists(self.path("stolen")))

    def test_a_project_with_a_path_of_a_thousand_bytes(self):
        self.project = self.new_project(under="/".join(["d" * 90] * 10))
        self.start(shell("deep", "source = 'watch', pattern = 'src/*'", 'printf %s "$DUET_PATH"'))
        self.write("src/a")
        [entry] = self.await_firings(1)
        self.assertEqual(self.result_of(entry), "src/a")

    def test_the_limit_of_watches_is_named(self):
        for number in range(20):
            os.makedirs(self.path(f"folder{number}"))
        self.settings(shell("all", "source = 'watch'", "true"))
        limited = 'echo 8 > /proc/sys/user/max_inotify_watches && exec "$0" daemon start --json'
        result = self.project.run("--user", "--map-root-user", "sh", "-c", limited, self.project.program,
                                  program="unshare")
        if result.code != 0:
            self.skipTest(f"no user namespace with a limit of its own here: {result.err.strip()[-100:]}")
        self.addCleanup(self.project.run, "daemon", "stop", "--force")
        self.project.pids.add(result.json()["pid"])
        eventually(lambda: "limit of watched folders" in str(self.status()["problems"]), what="the problem")
        status = self.call("daemon.status")["result"]
        self.assertEqual(status["health"], "degraded")
        self.assertIn("limit of watched folders", str(status["problems"]))


class OtherSources(RuleTestCase):
    def test_tasks_and_the_start_of_the_daemon(self):
        self.start("default_agent = 'shell'",
                   shell("hello", "source = 'daemon'", "exit 3"),
                   shell("failed", "source = 'task', type = 'task.failed'",
                         'printf %s "$DUET_EVENT_TASK_ID $DUET_AGENT $DUET_STATE $DUET_EXIT_CODE"',
                         "conditions = [ { field = 'payload.exitCode', operator = 'gt', value = 2 } ]"))
        [hello] = self.await_firings(1, "hello")
        [failed] = self.await_firings(1, "failed")
        self.assertEqual(self.result_of(failed), f"{hello['taskId']} shell failed 3")
        origin = self.call("task.get", taskId=failed["taskId"])["result"]["metadata"]["automation"]
        self.assertEqual((origin["ruleId"], origin["depth"], origin["cause"]), ("failed", 2, hello["taskId"]))

    def test_a_notice_goes_to_every_client(self):
        self.start("[[rules]]\nid = 'note'\ntrigger = { source = 'watch', pattern = '*.txt' }\n"
                   "action = { type = 'notify', message = '{{type}}: {{payload.path}}' }")
        with self.project.connect() as client:
            client.call("ping")
            self.write("a.txt")
            notice = client.next_event()
            self.assertEqual((notice["method"], notice["params"]["message"]), ("event.notice", "file.create: a.txt"))
            fired = client.next_event()
            self.assertEqual((fired["method"], fired["params"]["ruleId"]), ("event.automationFired", "note"))


class HeldBack(RuleTestCase):
    def test_a_cooldown(self):
        self.start(shell("slow", "source = 'watch', pattern = 'a'", "true", "cooldown = '1h'\ntrailing = false"))
        self.write("a")
        self.result_of(self.await_firings(1)[0])
        self.write("a", "again")
        self.await_held("cooldown")
        self.stays(1)

    def test_a_rule_that_triggers_itself_settles(self):
        self.start(shell("loop", "source = 'watch', pattern = 'a'", "sleep 0.1; date +%s%N >> a"))
        self.write("a")
        [held] = self.await_held("chain limit")
        self.assertEqual(len(held["links"]), 8)
        self.stays(8)
        self.write("a", "by somebody else")
        self.await_firings(9)

    def test_the_last_save_of_a_cooldown_is_not_forgotten_across_a_crash(self):
        self.start(shell("slow", "source = 'watch', pattern = '*.txt'", 'printf %s "$DUET_COUNT $DUET_PATHS"',
                         "cooldown = '20s'"))
        self.write("a.txt")
        self.result_of(self.await_firings(1)[0])  # else the task would hold the next one back
        self.project.store.await_numbers()
        self.write("b.txt")
        self.await_held("cooldown")
        self.write("c.txt")
        eventually(lambda: [entry["count"] for entry in self.recent("slow", "held")[:1]] == [2], what="both saves")
        # It is on disk when something later is: a submit is answered then.
        self.assertIn("result", self.call("task.submit", prompt="true", agent="shell"))
        self.project.kill(self.pid)
        self.start()
        newest = self.await_firings(2)[0]  # when the cooldown is over
        self.assertEqual(self.result_of(newest), "2 b.txt\nc.txt\n")

    def test_two_rules_that_trigger_each_other_are_stopped(self):
        self.start("max_running = 1",
                   shell("ping", "source = 'watch', pattern = 'a'", "date +%s%N > b"),
                   shell("pong", "source = 'watch', pattern = 'b'", "date +%s%N > a"))
        self.write("a")
        [held] = self.await_held("chain limit")
        self.assertEqual([link["ruleId"] for link in held["links"]], ["ping", "pong"] * 4)
        self.assertIn("tasks or programs of rules have led to each other", str(self.status()["problems"]))
        self.stays(8)

    def test_approval_is_waited_for_across_a_crash(self):
        self.start(shell("careful", "source = 'watch', pattern = 'a'", "echo done", "requires_approval = true"))
        self.write("a")
        [entry] = self.await_held("approval")
        self.project.kill(self.pid, signal.SIGKILL)
        self.start()
        refused = self.call("automation.approve", id="nobody")["error"]
        self.assertEqual((refused["code"], refused["data"]["accepted"]), (-32602, [entry["id"]]))
        self.assertEqual(self.call("automation.approve", id=entry["id"])["result"], {"approved": True})
        [fired] = self.await_firings(1)
        self.assertEqual((fired["id"], self.result_of(fired)), (entry["id"], "done\n"))
        self.assertEqual(self.call("automation.approve", id=entry["id"])["error"]["code"], -32602)


class Switches(RuleTestCase):
    RULES = [shell("one", "source = 'watch', pattern = 'a*'", "true"),
             shell("two", "source = 'watch', pattern = 'a*'", "true")]

    def test_a_rule_stays_off_across_a_crash(self):
        self.start(*self.RULES)
        self.assertEqual(self.call("automation.disable", ruleId="one")["result"], {"enabled": False})
        self.project.kill(self.pid, signal.SIGKILL)
        self.start()
        self.write("a1")
        self.await_firings(1, "two")
        self.stays(0, "one")
        self.assertEqual(self.call("automation.enable", ruleId="one")["result"], {"enabled": True})
        self.write("a2")
        self.await_firings(1, "one")

    def test_all_of_it_stays_off(self):
        self.start(*self.RULES)
        self.assertEqual(self.call("automation.disable")["result"], {"enabled": False})
        self.project.kill(self.pid, signal.SIGKILL)
        self.start()
        self.assertFalse(self.status()["enabled"])
        self.assertFalse(self.call("daemon.status")["result"]["subsystems"]["automation"]["enabled"])
        self.write("a1")
        self.stays(0)
        self.assertEqual(self.call("automation.enable")["result"], {"enabled": True})
        self.write("a2")
        self.await_firings(2)

    def test_an_unknown_rule_is_refused_with_the_known_ones(self):
        self.start(*self.RULES)
        error = self.call("automation.disable", ruleId="three")["error"]
        self.assertEqual(error["code"], -32602)
        self.assertEqual(error["data"], {"param": "ruleId", "expected": "the id of a rule", "received": "three",
                                         "accepted": ["one", "two"]})

    def test_settings_are_read_again_without_losing_what_is_known(self):
        self.start(*self.RULES)
        self.call("automation.disable", ruleId="one")
        self.settings(*self.RULES, shell("three", "source = 'watch', pattern = 'b'", "true"))
        os.kill(self.pid, signal.SIGHUP)
        eventually(lambda: self.status()["ruleCount"] == 3)
        self.assertEqual([rule["enabled"] for rule in self.status()["rules"]], [False, True, True])
        self.write("b")
        self.await_firings(1, "three")

    def test_faulty_settings_leave_everything_as_it_was(self):
        changed = shell("three", "source = 'watch', pattern = 'b*'", "true")
        self.start("default_agent = 'shell'\nmax_running = 3", *self.RULES)
        self.call("automation.disable", ruleId="one")
        before = self.status()
        faults = [
            ("pattern", [changed, shell("four", "source = 'watch', pattern = 'b{'", "true")]),
            ("cron", [changed, shell("four", "source = 'schedule', cron = '61 * * * *'", "true")]),
            ("nonsense", ["nonsense = 3", changed]),
            ("ignore", [changed, "[watch]\nignore = ['[']"]),
            (".duet-rpc.toml", [changed, "[[rules"]),
        ]
        for number, (named, texts) in enumerate(faults):
            with self.subTest(named):
                self.settings("max_running = 7", *texts)
                os.kill(self.pid, signal.SIGHUP)
                problem = eventually(lambda: [text for text in map(str, self.call("daemon.status")["result"]["problems"])
                                              if named in text], what=f"a problem that names {named}")
                self.assertEqual(len(problem), 1, problem)
                status = self.status()
                self.assertEqual((status["rules"], status["ruleCount"]), (before["rules"], 2))
                supervisor = self.call("daemon.status")["result"]["subsystems"]["supervisor"]
                self.assertEqual(supervisor["maxRunning"], 3)
                self.write(f"b{number}")
                self.write(f"a{number}")
                self.await_firings(number + 1, "two")
                self.assertEqual(len(self.recent()), number + 1, "and nothing else")
                before = self.status()
        self.settings("max_running = 7", *self.RULES, changed)
        os.kill(self.pid, signal.SIGHUP)
        eventually(lambda: self.status()["ruleCount"] == 3)
        eventually(lambda: self.call("daemon.status")["result"]["health"] == "healthy", what="no problem is left")
        self.assertEqual(self.call("daemon.status")["result"]["subsystems"]["supervisor"]["maxRunning"], 7)


if __name__ == "__main__":
    suite.main()
