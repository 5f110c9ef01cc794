#!/usr/bin/env python3
"""What submit, claim and report promise, and that nobody gets past a fence: `sql_functions.py [unittest options]`.

No program is needed: daemons are played by connections."""

import base64
import json
import os
import sys
import threading
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import CANCELLED, COMPLETED, DEPENDENCY, FAILED, PUT_BACK, QUEUED, RUNNING, STOP, TREE_GONE  # noqa: E402
from queue_fixture import QueueTest, run, setUpModule, tearDownModule  # noqa: E402, F401


class Submit(QueueTest):
    def test_ids_count_from_one_without_holes_also_over_keys_and_new_lanes(self):
        self.assertEqual(self.one.submit(), 1)
        self.assertEqual(self.one.submit(key="k", agent="other"), 2)
        again = self.one.submit_all({"key": "k", "agent": "other", "body": "another"})[0]
        self.assertEqual((again.id, again.fresh, again.body, again.state), (2, False, "{}", QUEUED))
        self.assertEqual([row.id for row in self.one.submit_all({}, {}, {})], [3, 4, 5])

    def test_one_submit_is_one_task_however_often_it_is_repeated(self):
        id = str(uuid.uuid4())
        self.one.submit()
        first = self.one.submit_all({"id": id})[0]
        self.one.submit()
        for _ in range(3):
            again, = self.one.submit_all({"id": id})
            self.assertEqual((again.id, again.fresh), (first.id, False))
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "3")
        self.assertEqual(self.one.one(f"SELECT touched FROM duet.request WHERE task = {first.id}"), "3")  # each answer has written something
        self.assert_counts()

    def test_the_same_submits_at_once_from_eight_connections_are_one_task_each(self):
        ids = [{"id": str(uuid.uuid4()), "key": None if n % 2 else f"key {n}"} for n in range(20)]
        callers = [self.caller() for _ in range(8)]
        for caller in callers:
            caller.session.send(self.one.submit_text(ids))
        answers = {tuple(row[1] for row in caller.session.answer()) for caller in callers}
        self.assertEqual(len(answers), 1)
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "20")
        self.assert_counts()

    def test_a_repeated_submit_is_known_though_what_it_came_after_is_gone(self):
        first, id = self.one.submit(), str(uuid.uuid4())
        self.one.run_one()
        second = self.one.submit_all({"id": id, "after": [first]})[0]
        self.one.run_one()
        self.one.do_json("remove_v1", [first], None, None, "request")
        again, = self.one.submit_all({"id": id, "after": [first]})
        self.assertEqual((again.id, again.fresh, again.refusal), (second.id, False, None))

    def test_a_key_twice_in_one_call_is_one_task(self):
        first, second = self.one.submit_all({"key": "k"}, {"key": "k"})
        self.assertEqual((first.id, first.fresh, second.fresh), (second.id, True, False))

    def test_a_key_stands_for_what_was_asked_at_first(self):
        id = self.one.submit(key="k", body='{"prompt":"a"}')
        self.one.do_json("edit_v1", id, {"body": '{"prompt":"b"}', "prompt": '"b"', "changed": ["prompt"]})
        self.assertEqual(self.one.submit_all({"key": "k"})[0].body, '{"prompt":"a"}')
        self.assertEqual(self.one.claim()[0].body, '{"prompt":"b"}')

    def test_nothing_asked_is_nothing_done(self):
        self.assertEqual(self.one.submit_all(), [])

    def test_a_full_queue_refuses_but_still_knows_what_it_has(self):
        self.one.json("set_v1", "queue_capacity", "2")
        self.one.submit_all({"key": "a"}, {"key": "b"})
        self.one.number()
        known, refused = self.one.submit_all({"key": "a"}, {"key": "c"})
        self.assertEqual((known.fresh, known.refusal, refused.refusal, refused.id), (False, None, "full:2", None))
        self.assert_counts()

    def test_texts_come_back_as_they_were_with_escaped_nul_and_a_megabyte(self):
        prompt, body = '"\\u0000 and \\ud83d\\ude00"', json.dumps({"prompt": "x" * 1_000_000 + "\u0000'\\\""})
        metadata = '{"a":"\\u0000"}'
        id = self.one.submit(prompt=prompt, body=body, metadata=metadata, labels='{"k":"\\u0000"}', env='{"A":"\\u0000"}')
        task = self.one.task(id)
        self.assertEqual((task.prompt, task.metadata, task.labels), (prompt, metadata, '{"k":"\\u0000"}'))
        event = self.one.events()[-1]
        self.assertEqual(json.loads(event.record)["metadata"], metadata)
        self.assertEqual(json.loads(self.one.call("read_request_v1", id)[0][0])["body"], body)
        claim, = self.one.claim()
        self.assertEqual((claim.body, claim.env), (body, '{"A":"\\u0000"}'))

    def test_the_event_says_what_the_one_of_one_machine_says(self):
        id = self.one.submit()
        event = self.one.events()[-1]
        self.assertEqual(list(event.params), ["taskId", "state", "agent", "attempts", "createdAt"])
        self.assertEqual((event.kind, event.task, event.params["taskId"]), ("taskQueued", id, f"task-{id}"))
        self.assertRegex(event.params["createdAt"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(event.arrived_ms, self.one.task(id).created_ms)


class After(QueueTest):
    def test_a_task_waits_for_all_that_it_comes_after(self):
        first, second = self.one.submit(), self.one.submit()
        last = self.one.submit(after=[first, second, first])
        claims = self.one.claim(5)
        self.assertEqual([claim.id for claim in claims], [first, second])
        self.one.end(claims[0])
        self.assertEqual(self.one.claim(5), [])
        rows = self.one.report([{"task": claims[1].id, "fence": claims[1].fence}], most=5)
        self.assertEqual([row.what for row in rows], ["end", "ready", "claim"])
        self.assertEqual(rows[-1].id, last)

    def test_one_that_has_completed_is_not_waited_for(self):
        first = self.one.submit()
        self.one.run_one()
        self.assertEqual(self.one.submit(after=[first]), self.one.claim()[0].id)

    def test_an_unknown_one_is_refused_by_name(self):
        self.assertEqual(self.one.submit_all({"after": [99]})[0].refusal, "unknown:99")
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "0")

    def test_after_a_failed_one_it_is_failed_at_once_with_both_events(self):
        first = self.one.submit()
        self.one.run_one(ok=False)
        row = self.one.submit_all({"after": [first], "env": "{}"})[0]
        task = self.one.task(row.id)
        self.assertEqual((row.state, row.fresh, task.state, task.error_reason, task.error_message),
                         (FAILED, True, FAILED, DEPENDENCY, f"task-{first} did not succeed"))
        self.assertEqual(self.one.kinds(row.id), ["taskQueued", "taskFailed"])
        self.assert_counts()

    def test_a_failure_fails_all_that_come_after_it_in_the_same_commit(self):
        first = self.one.submit()
        second = self.one.submit(after=[first])
        third, fourth = self.one.submit(after=[second]), self.one.submit(after=[first, second], env='{"A":"1"}')
        self.one.run_one(ok=False)
        self.assertEqual([self.state(id) for id in (second, third, fourth)], [FAILED] * 3)
        self.assertEqual(self.one.task(third).error_message, f"task-{second} did not succeed")
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.request WHERE env IS NOT NULL"), "0")
        self.assert_counts()

    def test_a_cancel_fails_what_comes_after(self):
        first = self.one.submit()
        second = self.one.submit(after=[first])
        self.assertEqual(self.one.do_json("cancel_v1", first)["outcome"], "cancelled")
        self.assertEqual(self.state(second), FAILED)
        self.assertEqual(self.one.kinds(first), ["taskQueued", "taskCancelled"])

    def test_a_thousand_dependencies(self):
        ids = [row.id for row in self.one.submit_all(*[{} for _ in range(1000)])]
        last = self.one.submit(after=ids)
        claims = self.one.claim(1000)
        self.one.report([{"task": claim.id, "fence": claim.fence} for claim in claims[:999]])
        self.assertEqual(self.one.claim(), [])
        self.one.end(claims[999])
        self.assertEqual(self.one.claim()[0].id, last)

    def test_an_end_is_never_missed_by_one_that_is_being_submitted(self):
        ids = [row.id for row in self.one.submit_all(*[{} for _ in range(40)])]
        claims = self.one.claim(40)
        other = self.worker("other")
        threads = [threading.Thread(target=lambda: [self.one.end(claim) for claim in claims]),
                   threading.Thread(target=lambda: [other.submit(after=[id]) for id in ids])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.one.ask("SELECT id FROM duet.task WHERE state = 0"), [])
        self.assertEqual(len(self.one.claim(100)), 40)


class Claim(QueueTest):
    def test_highest_priority_first_then_the_lowest_id(self):
        for priority in (0, 5, -(2 ** 63), 5, 2 ** 63 - 1):
            self.one.submit(priority=priority)
        self.assertEqual([self.one.claim()[0].id for _ in range(5)], [5, 2, 4, 1, 3])

    def test_a_claim_tells_nothing_and_is_still_queued(self):
        id = self.one.submit()
        claim, = self.one.claim()
        self.assertEqual((self.state(id), self.one.task(id).worker, claim.attempt), (QUEUED, "one", 1))
        self.assertEqual(self.one.kinds(id), ["taskQueued"])
        self.assertEqual(json.loads(self.one.call("read_explain_v1", id)[0][0])["claimed"], True)

    def test_two_workers_never_get_the_same(self):
        self.one.submit_all(*[{} for _ in range(200)])
        workers = [self.worker(f"w{n}") for n in range(4)]
        taken = []

        def drain(worker):
            while True:
                claims = worker.claim(7)
                if not claims:
                    return
                taken.extend(claim.id for claim in claims)
        threads = [threading.Thread(target=drain, args=[worker]) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), list(range(1, 201)))

    def test_a_worker_gets_only_what_it_accepts_and_has_the_labels_for(self):
        gpu = self.worker("gpu", labels=["gpu", "os=debian"], accepts=["claude", "codex"])
        plain = self.one.submit()
        needs = self.one.submit(needs="os=debian\x1fgpu")
        codex = self.one.submit(agent="codex")
        named = self.one.submit(needs="name=one")
        self.assertEqual([claim.id for claim in self.one.claim(9)], [plain, named])
        self.assertEqual([claim.id for claim in gpu.claim(9)], [needs, codex])

    def test_the_same_labels_in_another_order_are_one_lane(self):
        rows = self.one.submit_all({"needs": "a\x1fb"}, {"needs": "b\x1fa"})
        self.assertEqual(rows[0].lane, rows[1].lane)

    def test_what_only_the_submitter_accepts_waits_for_it_also_after_it_came_anew(self):
        other = self.worker("other", accepts=["shell"], agents=["shell"])
        mine = self.worker("mine", accepts=["claude"], agents=["claude", "shell"])
        third = self.worker("third", accepts=["claude"], agents=["claude", "shell"])
        first, second = mine.submit(agent="shell", own=True), mine.submit(agent="shell", own=True)
        self.assertEqual(third.claim(9), [])
        self.assertEqual(mine.claim(1)[0].id, first)
        mine.do("leave_v1")
        again = self.worker("mine", accepts=["claude"], agents=["claude", "shell"])
        self.assertNotEqual(again.id, mine.id)
        self.assertEqual([claim.id for claim in again.claim(1)], [first])  # it was put back, and is the first again
        self.assertEqual([claim.id for claim in other.claim(9)], [second])  # who accepts the agent serves it, too

    def test_new_labels_count_from_the_next_beat_on(self):
        id = self.one.submit(needs="gpu")
        self.assertEqual(self.one.task(id).waiting_for, "no worker with gpu")
        self.one.do("beat_v1", None, None, ["gpu"], None, None, None, None)
        self.assertIsNone(self.one.task(id).waiting_for)
        self.assertEqual(self.one.claim()[0].id, id)

    def test_nobody_accepts_the_agent(self):
        self.assertEqual(self.one.task(self.one.submit(agent="codex")).waiting_for, "no worker that accepts codex")

    def test_groups_take_turns(self):
        for group in ("a", "a", "a", "b", "b", "c"):
            self.one.submit(group=group, priority=9 if group == "a" else 0)
        self.assertEqual([claim.grp for claim in self.one.claim(6)], ["a", "a", "a", "b", "b", "c"])  # of one call, by id
        for group in ("a", "a", "a", "b", "b", "c"):
            self.one.submit(group=group, priority=9 if group == "a" else 0)
        order, turns = [], []
        for _ in range(6):
            claim, = self.one.claim(1, turns=turns)
            order.append(claim.grp)
            turns = [group for group in turns if group != claim.grp] + [claim.grp]
        self.assertEqual(order, ["a", "b", "c", "a", "b", "a"])

    def test_of_many_slots_every_group_gets_some(self):
        self.one.submit_all(*[{"group": "big"} for _ in range(50)], *[{"group": "small"} for _ in range(2)])
        self.assertEqual(sorted(claim.grp for claim in self.one.claim(4)), ["big", "big", "small", "small"])

    def test_a_paused_queue_or_group_starts_nothing_and_goes_on(self):
        self.one.submit(group="a")
        self.one.submit(group="b")
        self.assertTrue(self.one.do_json("pause_v1", None, True)["changed"])
        self.assertFalse(self.one.do_json("pause_v1", None, True)["changed"])
        self.assertEqual(self.one.claim(9), [])
        self.one.do_json("pause_v1", None, False)
        self.assertEqual(self.one.do_json("pause_v1", "a", True)["pausedGroups"], ["a"])
        self.assertEqual([claim.grp for claim in self.one.claim(9)], ["b"])
        self.one.do_json("pause_v1", "a", False)
        self.assertEqual([claim.grp for claim in self.one.claim(9)], ["a"])
        kinds = [(event.kind, event.params) for event in self.one.events() if event.kind.startswith("queue")]
        self.assertEqual(kinds, [("queuePaused", {}), ("queueResumed", {}), ("queuePaused", {"group": "a"}), ("queueResumed", {"group": "a"})])

    def test_a_group_that_the_settings_pause_is_closed_until_somebody_resumes_it(self):
        self.one.submit(group="a")
        self.assertEqual(self.one.claim(9, closed=["a"]), [])
        self.one.do_json("pause_v1", "a", False)
        self.assertEqual(len(self.one.claim(9, closed=["a"])), 1)

    def test_what_was_said_of_a_group_counts_until_settings_say_something_new(self):
        self.one.submit(group="a")
        self.one.do_json("pause_v1", "a", False)
        self.assertTrue(self.one.do_json("pause_v1", "a", True, True)["changed"])
        self.assertFalse(self.one.do_json("pause_v1", "a", True, True)["changed"])
        self.assertEqual(self.one.claim(9, closed=["a"]), [])
        self.assertEqual(self.one.events()[-1].params, {"group": "a", "by": "settings"})
        self.one.do_json("pause_v1", "a", True)
        self.assertTrue(self.one.do_json("pause_v1", "a", False, True)["changed"])
        self.assertEqual(len(self.one.claim(9)), 1)

    def test_limits_hold_for_two_claimers_at_once(self):
        self.one.submit_all(*[{"group": group} for group in ("a", "b") for _ in range(20)])
        workers = [self.worker(f"w{n}") for n in range(4)]
        limits = {"groups": {"a": 3}, "agents": {"claude": 5}}
        taken = []
        threads = [threading.Thread(target=lambda w: taken.extend(w.claim(4, limits=limits)), args=[worker]) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(taken), 5)
        self.assertLessEqual(sum(claim.grp == "a" for claim in taken), 3)

    def test_an_end_makes_room_in_the_same_call(self):
        self.one.submit_all({}, {})
        limits = {"groups": {"default": 1}, "agents": {}}
        claim, = self.one.claim(9, limits=limits)
        self.assertEqual(self.one.claim(9, limits=limits), [])
        rows = self.one.report([{"task": claim.id, "fence": claim.fence}], most=9, limits=limits)
        self.assertEqual([row.what for row in rows], ["end", "claim"])

    def test_behind_what_was_taken_last(self):
        rows = self.one.submit_all({"priority": 1}, {"priority": 1}, {"priority": 0}, {"priority": 2})
        behind = {str(rows[0].lane): [1, rows[0].id]}
        self.assertEqual([claim.id for claim in self.one.claim(9, behind=behind)], [rows[1].id, rows[2].id])

    def test_a_look_over_tasks_that_are_gone_says_that_it_is_slow(self):
        many = 3000
        self.one.submit_all(*many * [{}])
        holder = self.caller()
        holder.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.ask("SELECT count(*) FROM duet.task")
        last = [row for row in self.one.report(most=many - 2) if row.what == "claim"][-1]
        rows = self.one.report(most=1)
        self.assertEqual([row.what for row in rows], ["claim", "slow"])
        self.assertGreaterEqual(rows[1].fence, many - 2)
        behind = {str(last.lane): [0, last.id + 1]}
        self.assertEqual([row.what for row in self.one.report(most=1, behind=behind)], ["claim"])

    def test_nobody_claims_who_drains_or_is_silent(self):
        self.one.submit()
        other = self.worker("other")
        other.json("drain_v1", "one", True)
        self.assertEqual(self.one.claim(), [])
        other.json("drain_v1", "one", False)
        other.do_json("silence_v1", self.one.id, self.one.beat_number())
        self.assertEqual(self.one.claim(), [])
        self.one.beat()
        self.assertEqual(len(self.one.claim()), 1)

    def test_zero_slots_and_no_lanes(self):
        self.assertEqual(self.one.claim(0), [])
        self.assertEqual(self.worker("nothing", accepts=[], agents=[]).claim(5), [])


class Report(QueueTest):
    def started(self, **task):
        self.one.submit(**task)
        claim, = self.one.claim()
        self.assertEqual([row.what for row in self.one.start(claim)], ["start"])
        return claim

    def test_a_start_is_told_once(self):
        claim = self.started()
        self.assertEqual([row.what for row in self.one.start(claim)], ["start"])
        self.assertEqual(self.state(claim.id), RUNNING)
        event = self.one.events()[-1]
        self.assertEqual((event.kind, list(event.params)), ("taskStarted", ["taskId", "state", "agent", "attempts", "startedAt", "pid"]))
        self.assertEqual(self.one.kinds(claim.id), ["taskQueued", "taskStarted"])

    def test_an_end_with_all_that_is_known_of_it(self):
        claim = self.started()
        self.assertEqual(self.one.end(claim, result=b"\x00ok", cpu=250000, memory=99, bytes=7), COMPLETED)
        task = self.one.task(claim.id)
        self.assertEqual((task.state, task.exit_code, task.result, task.cpu_us, task.max_memory, task.output_bytes, task.pid, task.worker),
                         (COMPLETED, 0, "\\x006f6b", 250000, 99, 7, 77, "one"))
        params = self.one.events()[-1].params
        self.assertEqual(list(params), ["taskId", "state", "agent", "attempts", "startedAt", "pid", "completedAt", "exitCode", "signal",
                                        "cpuSeconds", "maxMemory", "outputBytes"])
        self.assertEqual((params["cpuSeconds"], params["exitCode"], params["signal"]), (0.25, 0, None))
        self.assert_counts()

    def test_an_end_is_not_before_its_start_whatever_the_workers_clock_says(self):
        day = 86_400_000
        for more in ({}, {"ok": False}):
            told = self.started()
            self.one.end(told, ended_ago=day, **more)
            self.one.submit()
            untold = self.one.run_one(ended_ago=day, started_ago=20, **more)
            for claim in (told, untold):
                task = self.one.task(claim.id)
                self.assertGreaterEqual(task.completed_ms, task.started_ms)

    def test_an_end_before_its_start_was_told_tells_both(self):
        self.one.submit()
        claim = self.one.run_one()
        self.assertEqual(self.one.kinds(claim.id), ["taskQueued", "taskStarted", "taskCompleted"])
        self.assert_counts()

    def test_one_that_could_not_be_spawned_never_started(self):
        self.one.submit()
        claim = self.one.run_one(ok=False, started_ago=None, pid=None, reason=3, message="no such file", code=None)
        task = self.one.task(claim.id)
        self.assertEqual((task.state, task.started_ms, task.error_reason, task.error_message), (FAILED, None, 3, "no such file"))
        self.assertEqual(self.one.kinds(claim.id), ["taskQueued", "taskFailed"])
        self.assert_counts()

    def test_a_failure_says_why(self):
        claim = self.started()
        self.one.end(claim, ok=False, code=None, signal="SIGTERM", reason=1, message='by "it"\n')
        params = self.one.events()[-1].params
        self.assertEqual((params["error"], params["signal"], params["exitCode"]), ({"reason": "signal", "message": 'by "it"\n'}, "SIGTERM", None))

    def test_retries_wait_and_are_used_up(self):
        id = self.one.submit(retries=1)
        claim = self.one.run_one(ok=False, retry=0)
        self.assertEqual(self.state(id), QUEUED)
        event = self.one.events()[-1]
        self.assertEqual((event.kind, event.params["attempts"], "retryAt" in event.params), ("taskQueued", 1, True))
        self.assertEqual(self.one.claim(), [])
        self.assertEqual(self.one.do_json("sweep_v1")["ready"], [{"lane": claim.lane, "count": 1}])
        again, = self.one.claim()
        self.assertEqual((again.id, again.attempt), (id, 2))
        self.assertEqual(self.one.end(again, ok=False, retry=0), FAILED)
        self.assert_counts()

    def test_a_retry_in_an_hour_is_not_ready_now(self):
        self.one.submit(retries=1)
        self.one.run_one(ok=False, retry=3600000)
        swept = self.one.do_json("sweep_v1")
        self.assertEqual(swept["ready"], [])
        self.assertGreater(swept["nextDueMs"], 3500000)

    def test_a_usage_limit_holds_the_agent_and_does_not_count(self):
        id, other = self.one.submit(), self.one.submit()
        claim, = self.one.claim()
        self.assertEqual(self.one.end(claim, ok=False, hold=3600000, text="limit"), QUEUED)
        self.assertEqual(self.one.claim(9), [])
        task = self.one.task(id)
        self.assertEqual((task.state, task.attempts, task.spared), (QUEUED, 1, 1))
        explained = json.loads(self.one.call("read_explain_v1", other)[0][0])
        self.assertEqual((explained["heldTask"], explained["heldUntil"] is not None), (id, True))
        self.assertTrue(self.one.do_json("release_v1", "claude")["released"])
        self.assertFalse(self.one.do_json("release_v1", "claude")["released"])
        self.assertEqual(len(self.one.claim(9)), 2)
        kinds = [event.kind for event in self.one.events() if event.kind.startswith("agent")]
        self.assertEqual(kinds, ["agentHeld", "agentReleased"])
        self.assertEqual([event.params for event in self.one.events() if event.kind == "taskQueued"][-1]["attemptsNotCounted"], 1)
        self.assert_counts()

    def test_a_key_with_another_environment_is_told(self):
        first = self.one.submit(key="k", env='{"A":"1"}')
        for env, told in (('{"A":"1"}', None), ('{"A":"2"}', "env"), (None, "env")):
            for rows in (self.one.submit_all({"key": "k", "env": env}), self.one.submit_all({"key": "k", "env": env}, {})):
                self.assertEqual((rows[0].id, rows[0].fresh, rows[0].refusal), (first, False, told))
        claim, = self.one.claim()
        self.one.end(claim)
        self.assertIsNone(self.one.submit_all({"key": "k", "env": '{"A":"2"}'})[0].refusal)  # it is erased

    def test_who_runs_no_tasks_has_none_of_its_own(self):
        client = self.worker("client", run=False)
        self.assert_refused("22023", lambda: client.submit(own=True))
        self.assert_refused("22023", lambda: client.submit_all({}, {"own": True}))
        client.submit()

    def test_a_claim_in_the_very_report_that_holds_its_agent_takes_nothing(self):
        self.one.submit()
        self.one.submit()
        claim, = self.one.claim(1)
        self.one.beat()  # it knows its lane: the usual way
        rows = self.one.report([{"task": claim.id, "fence": claim.fence, "ok": False, "code": 1, "hold": 3600000, "text": "limit"}], most=1)
        self.assertEqual([row.what for row in rows], ["end"])

    def test_a_hold_ends_by_itself(self):
        self.one.submit()
        claim, = self.one.claim()
        self.one.end(claim, ok=False, hold=1)
        server.eventually("the hold is over", lambda: self.one.do_json("sweep_v1") and len(self.one.claim()) == 1)
        self.assertEqual([event.params for event in self.one.events() if event.kind == "agentReleased"], [{"agent": "claude", "by": "time"}])

    def test_ended_by_a_stop_is_failed_whatever_else(self):
        self.one.submit(retries=3)
        self.assertEqual(self.one.end(self.one.claim()[0], ok=False, retry=0, hold=5, flags=STOP), FAILED)

    def test_put_back_counts_no_attempt_and_tells_nothing(self):
        id = self.one.submit()
        self.assertEqual(self.one.end(self.one.claim()[0], ok=False, flags=PUT_BACK, started_ago=None, pid=None), QUEUED)
        claim, = self.one.claim()
        self.assertEqual((claim.id, claim.attempt), (id, 1))
        self.assertEqual(self.one.kinds(id), ["taskQueued"])

    def test_put_back_for_a_while(self):
        self.one.submit()
        self.one.end(self.one.claim()[0], ok=False, flags=PUT_BACK, started_ago=None, pid=None, retry=3600000)
        self.assertEqual(self.one.claim(), [])

    def test_a_cancelled_one_is_cancelled_however_it_ended_and_only_when_its_tree_is_gone(self):
        for more in ({"ok": True}, {"ok": False, "retry": 0}, {"ok": False, "hold": 5}, {"ok": False, "flags": PUT_BACK}):
            claim = self.started(retries=5)
            self.assertEqual(self.one.do_json("cancel_v1", claim.id), {"outcome": "cancelling", "state": RUNNING, "worker": self.one.id,
                                                                       "fence": claim.fence})
            self.assertEqual(self.one.beat()["cancels"], [{"task": claim.id, "fence": claim.fence}])
            self.assertEqual(self.one.end(claim, flags=0, **{k: v for k, v in more.items() if k != "flags"}), RUNNING)
            self.assertEqual(self.one.end(claim, **{"flags": TREE_GONE, **more}), CANCELLED)
            self.assertEqual(self.one.kinds(claim.id)[-1], "taskCancelled")
            self.assertEqual(self.one.do_json("cancel_v1", claim.id)["outcome"], "ended")
        self.assert_counts()

    def test_env_is_erased_when_the_task_has_ended(self):
        id = self.one.submit(env='{"SECRET":"canary"}', retries=1)
        self.one.run_one(ok=False, retry=0)
        self.assertEqual(self.one.one(f"SELECT env FROM duet.request WHERE task = {id}"), '{"SECRET":"canary"}')
        self.one.do("sweep_v1")
        self.assertEqual(self.one.claim()[0].env, '{"SECRET":"canary"}')
        self.one.report([{"task": id, "fence": self.one.task(id).fence}])
        self.assertIsNone(self.one.one(f"SELECT env FROM duet.request WHERE task = {id}"))

    def test_output_comes_back_and_the_middle_goes(self):
        claim = self.started()

        def send(offset, data, total, dropped=None, last=False):
            return self.one.report(output=[{"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": offset, "total": total, "last": last,
                                            "bytes": base64.b64encode(data).decode(), "marks": "m", **({"dropped": dropped} if dropped else {})}])
        send(0, b"abc", 3)
        send(0, b"abc", 3)
        send(3, b"def", 6)
        send(6, b"ghi", 9, [[3, 6]], True)
        self.assertEqual(self.one.call("read_output_v1", claim.id, 0, 100), [["1", "0", "\\x616263", "m"], ["1", "6", "\\x676869", "m"]])
        self.assertEqual(self.one.call("read_output_v1", claim.id, 7, 100), [["1", "6", "\\x676869", "m"]])
        self.assertEqual(self.one.json("read_output_state_v1", claim.id),
                         {"attempts": [{"attempt": 1, "total": 9, "dropped": [[3, 6]], "last": True, "gone": False}], "state": RUNNING, "attempt": 1})
        self.one.end(claim, bytes=9)
        self.assertEqual(self.one.one("SELECT stored FROM duet.task"), "6")

    def test_what_is_new_of_many_is_read_at_once(self):
        claims = [self.started() for _ in range(3)]
        for claim in claims[:2]:
            self.one.report(output=[{"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 0, "bytes": "YWJj", "total": 5}])
        ids = [claim.id for claim in claims]

        def read(*places, most=1 << 20):
            rows = self.one.call("read_outputs_v1", ids, list(places), most)
            return [(int(row[0]), json.loads(row[1])["state"] if row[1] else row[1], *row[2:5]) for row in rows]
        self.assertEqual(self.one.call("read_running_v1"), [[str(id), "1", place] for id, place in zip(ids, "330")])
        whole = [(id, RUNNING, "1", "0", "\\x616263") for id in ids[:2]]
        self.assertEqual(read(0, 2, 0), whole)
        self.assertEqual(read(5, 3, 0), [(ids[1], RUNNING, None, None, None)], "the rest is on its way")
        self.assertEqual(read(5, 5, None), [(ids[2], RUNNING, None, None, None)], "its place is not known")
        self.assertEqual(read(0, 0, None, most=1), [*whole[:1], (ids[1], "", None, None, None)])
        self.one.end(claims[0], bytes=5)
        self.one.do_json("remove_v1", [ids[0]], None, None, "request")
        self.one.end(claims[2])
        self.assertEqual(read(5, 5, 0), [(ids[0], None, None, None, None), (ids[2], COMPLETED, None, None, None)])

    def test_the_state_of_a_task_is_told_once_for_all_its_pieces(self):
        claim = self.started()
        self.one.report(output=[{"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": at, "bytes": "eA==", "total": at + 1} for at in range(100)])
        rows = self.one.call("read_outputs_v1", [claim.id], [0], 1 << 20)
        self.assertEqual((len(rows), [row[1] is None for row in rows]), (100, [False] + 99 * [True]))

    def test_a_piece_of_output_is_no_longer_than_readers_look_back(self):
        self.one.submit()
        claim, = self.one.claim()
        for offset, size in ((-1, 3), (0, 70000)):
            piece = {"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": offset, "bytes": base64.b64encode(size * b"x").decode(), "total": size}
            self.assert_refused("22023", lambda: self.one.report(output=[piece]))

    def test_the_last_piece_is_in_the_call_of_the_end(self):
        claim = self.started()
        self.one.report([{"task": claim.id, "fence": claim.fence, "bytes": 3}],
                        output=[{"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 0, "bytes": "YWJj", "total": 3, "last": True}])
        self.assertEqual(len(self.one.call("read_output_v1", claim.id, 0, 9)), 1)

    def test_nothing_is_read_of_an_attempt_before_its_start_is_told(self):
        id = self.one.submit(retries=1)
        for attempt in (1, 2):
            claim, = self.one.claim()
            piece = {"task": id, "fence": claim.fence, "attempt": attempt, "offset": 0, "bytes": "YWJj", "total": 3}
            self.one.report(output=[piece])
            before = self.one.json("read_output_state_v1", id)
            self.assertEqual((self.state(id), before["attempt"], [each["attempt"] for each in before["attempts"]]), (QUEUED, attempt - 1, [1][:attempt - 1]))
            self.one.start(claim)
            after = self.one.json("read_output_state_v1", id)
            self.assertEqual((after["attempt"], after["attempts"][-1]["attempt"], after["attempts"][-1]["total"]), (attempt, attempt, 3))
            self.one.end(claim, ok=False, retry=0, bytes=3)
            self.one.do("sweep_v1")

    def test_nothing_to_report_is_a_claim(self):
        id = self.one.submit()
        self.assertEqual([(row.what, row.id) for row in self.one.report(most=1)], [("claim", id)])

    def test_null_for_every_array(self):
        self.assertEqual(self.one.ask(f"SELECT * FROM duet.report_v1({self.one.id}, '{self.one.incarnation}', {', '.join(['NULL'] * 20)}, 0, NULL, NULL, NULL, NULL)"), [])


class Fencing(QueueTest):
    """Whatever is written for an attempt names worker, incarnation and fence, and changes nothing if they are not the row's."""

    def setUp(self):
        super().setUp()
        self.one.submit(retries=3, on_lost=1)
        self.claim, = self.one.claim()
        self.other = self.worker("other")

    def row(self):
        return self.one.ask("SELECT * FROM duet.task"), self.one.ask("SELECT count(*) FROM duet.event"), self.one.ask("SELECT * FROM duet.output")

    def output_of(self, claim):
        return [{"task": claim.id, "fence": claim.fence, "attempt": claim.attempt, "offset": 0, "bytes": "YWJj", "total": 3, "last": True}]

    def assert_fenced(self, worker, claim):
        before = self.row()
        self.assertEqual([row.what for row in worker.start(claim)], ["fenced"])
        self.assertEqual(worker.end(claim), "fenced")
        worker.report(output=self.output_of(claim))
        self.assertEqual(self.row(), before)

    def test_an_old_fence(self):
        self.other.do_json("silence_v1", self.one.id, self.one.beat_number())
        self.one.beat()
        again, = self.one.claim()
        self.assertGreater(again.fence, self.claim.fence)
        self.assert_fenced(self.one, self.claim)
        self.assertEqual(self.one.end(again), COMPLETED)

    def test_a_fence_of_one_that_was_queued_anew(self):
        self.other.do_json("silence_v1", self.one.id, self.one.beat_number())
        self.assert_fenced(self.one, self.claim)

    def test_another_worker(self):
        self.assert_fenced(self.other, self.claim)
        self.assertEqual(self.one.end(self.claim), COMPLETED)

    def test_another_incarnation(self):
        old = self.one.incarnation
        again = self.worker("one", worker=self.one.id, old=[old])
        self.assertEqual((again.id, again.attached["took_over"]), (self.one.id, True))
        self.assertEqual(again.attached["running"], [{"task": self.claim.id, "fence": self.claim.fence, "attempt": 1, "started": False,
                                                      "cancelling": False, "onLost": 1, "retries": 3, "spared": 0, "agent": "claude"}])
        for call in (lambda: self.one.end(self.claim), self.one.claim, self.one.beat, self.one.submit,
                     lambda: self.one.do("cancel_v1", self.claim.id), lambda: self.one.do("sweep_v1"), lambda: self.one.do("wait_v1", True)):
            self.assert_refused("DU001", call)
        self.assertEqual(again.end(self.claim), COMPLETED)

    def test_a_worker_that_is_gone(self):
        self.one.do("leave_v1")
        self.assert_refused("DU001", self.one.end, self.claim)
        self.assertEqual(self.one.do_json("leave_v1")["left"], False)

    def test_who_came_anew_and_was_not_answered_is_known_by_the_incarnation(self):
        self.one.do("leave_v1")
        lost = self.worker("one")  # its answer does not come: it knows its old number alone, and what it called itself
        again = self.worker("one", worker=self.one.id, old=[self.one.incarnation, lost.incarnation])
        self.assertEqual((again.id, again.attached["took_over"]), (lost.id, True))
        self.assert_refused("DU003", lambda: self.worker("one", worker=lost.id, old=[lost.incarnation]))

    def test_no_function_returns_an_incarnation(self):
        texts = [json.dumps(self.one.call(name)) for name in ("hello_v1", "read_queue_v1", "read_status_v1")] + [json.dumps(self.one.beat())]
        for text in texts:
            self.assertNotIn(self.one.incarnation, text)

    def test_an_end_told_twice_is_the_same_end(self):
        self.assertEqual(self.one.end(self.claim, ok=False, retry=0), QUEUED)
        self.assertEqual(self.one.end(self.claim, ok=False, retry=0), QUEUED)
        self.one.do("sweep_v1")
        again, = self.one.claim()
        self.assertEqual(self.one.end(self.claim), "fenced")
        self.assertEqual([self.one.end(again), self.one.end(again)], [COMPLETED, COMPLETED])
        self.assert_counts()


if __name__ == "__main__":
    run()
