#!/usr/bin/env python3
"""What the other functions of the queue promise: changes, upkeep, reads: `sql_queue.py [unittest options]`.

No program is needed: daemons are played by connections."""

import base64
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import CANCELLED, COMPLETED, FAILED, LOST, PUT_BACK, QUEUED, RUNNING  # noqa: E402
from queue_fixture import QueueTest, run, setUpModule, tearDownModule  # noqa: E402, F401


class Changes(QueueTest):
    def test_a_held_task_does_not_start(self):
        id = self.one.submit()
        self.assertEqual([self.one.do_json("hold_v1", id, held)["outcome"] for held in (True, True)], ["changed", "same"])
        self.assertEqual(self.one.claim(), [])
        self.one.do_json("hold_v1", id, False)
        self.assertEqual(self.one.claim()[0].id, id)
        self.assertEqual(self.one.do_json("hold_v1", id, True), {"outcome": "not-queued", "state": QUEUED})
        self.assertEqual(self.one.do_json("hold_v1", 99, True)["outcome"], "unknown")
        self.assertEqual(self.one.kinds(id), ["taskQueued", "taskHeld", "taskReleased"])
        self.assertEqual(list(self.one.events()[-1].params), ["taskId", "state", "agent", "attempts"])
        self.assert_counts()

    def test_a_held_one_is_not_made_ready_by_time_nor_by_dependencies(self):
        first = self.one.submit()
        id = self.one.submit(after=[first], delay=1)
        self.one.do_json("hold_v1", id, True)
        self.one.run_one()
        self.one.do("sweep_v1")
        self.assertEqual(self.one.claim(), [])
        self.one.do_json("hold_v1", id, False)
        server.eventually("its delay is over", lambda: self.one.do_json("sweep_v1") and self.one.claim())

    def test_a_delay_passes(self):
        id = self.one.submit(delay=3600000)
        self.assertEqual(self.one.claim(), [])
        self.assertAlmostEqual(self.one.task(id).not_before_ms - self.one.task(id).created_ms, 3600000, delta=5)
        self.one.do_json("edit_v1", id, {"delay": 0, "changed": ["notBefore"]})
        self.assertEqual(self.one.claim()[0].id, id)

    def test_not_before_a_time_that_has_passed(self):
        self.assertEqual(self.one.claim() or self.one.submit(not_before=1000) and self.one.claim()[0].id, 1)

    def test_an_edit_changes_what_it_names(self):
        id = self.one.submit(labels='{"a":"b"}')
        answer = self.one.do_json("edit_v1", id, {"prompt": '"q"', "body": '{"q":1}', "priority": 7, "group": "g", "labels": '{"a":"c"}',
                                                  "metadata": '{"m":1}', "changed": ["prompt", "group"]})
        self.assertEqual(answer["outcome"], "changed")
        task = self.one.task(id)
        self.assertEqual((task.prompt, task.priority, task.grp, task.labels, task.metadata), ('"q"', 7, "g", '{"a":"c"}', '{"m":1}'))
        self.assertEqual(self.one.json("read_request_v1", id)["metadata"], '{"m":1}')
        event = self.one.events()[-1]
        self.assertEqual((event.kind, event.params["changed"]), ("taskEdited", ["prompt", "group"]))
        self.assertEqual(self.one.claim()[0].grp, "g")

    def test_an_edit_of_what_is_not_there_any_more_changes_nothing(self):
        id = self.one.submit(body='{"prompt":"a"}')
        was = self.one.json("read_request_v1", id)["version"]
        self.assertEqual(self.one.do_json("edit_v1", id, {"was": was, "body": '{"prompt":"b"}', "prompt": '"b"'})["outcome"], "changed")
        other = {"was": was, "body": '{"prompt":"a","priority":3}', "priority": 3}
        self.assertEqual(self.one.do_json("edit_v1", id, other), {"outcome": "other"})
        self.assertEqual((self.one.task(id).priority, self.one.claim()[0].body), (0, '{"prompt":"b"}'))

    def test_an_edit_puts_nothing_into_its_event_but_names(self):
        id = self.one.submit()
        for changed in ('["a",\n{"jsonrpc":"2.0"}\n]', '{"a":1}', '"a"', '["' + 200 * "a" + '"]'):
            self.assert_refused("22023", lambda: self.one.do("edit_v1", id, '{"priority":1,"changed":' + changed + "}"))
        self.assertEqual(self.one.task(id).priority, 0)

    def test_an_edit_makes_no_cycle(self):
        first = self.one.submit()
        second = self.one.submit(after=[first])
        third = self.one.submit(after=[second])
        self.assertEqual(self.one.do_json("edit_v1", first, {"after": [third]}), {"outcome": "cycle", "cycle": third, "state": QUEUED})
        self.assertEqual(self.one.do_json("edit_v1", first, {"after": [first]})["outcome"], "cycle")
        self.assertEqual(self.one.do_json("edit_v1", first, {"after": [99]}), {"outcome": "missing", "missing": 99, "state": QUEUED})
        self.assertEqual(self.one.do_json("edit_v1", third, {"after": []})["outcome"], "changed")
        self.assertEqual([claim.id for claim in self.one.claim(9)], [first, third])

    def test_two_edits_at_once_make_no_cycle_together(self):
        for _ in range(10):
            first, second = self.one.submit(), self.one.submit()
            callers = [self.caller(), self.caller()]
            for caller, (task, after) in zip(callers, [(first, second), (second, first)]):
                caller.session.send(f"SELECT duet.edit_v1({self.one.id}, '{self.one.incarnation}', {task}, '{{\"after\":[{after}]}}')")
            outcomes = sorted(json.loads(caller.session.answer()[0][0])["outcome"] for caller in callers)
            self.assertEqual(outcomes, ["changed", "cycle"])

    def test_an_edited_dependency_counts(self):
        first, second = self.one.submit(), self.one.submit()
        self.one.do_json("edit_v1", first, {"after": [second]})
        self.assertEqual([claim.id for claim in self.one.claim(9)], [second])

    def test_what_is_cancelled_before_it_begins_counts_no_attempt(self):
        first, second, third = (self.one.submit() for _ in range(3))
        claims = self.one.claim(3)
        self.one.start(claims[2])
        for id in (first, second, third):
            self.assertEqual(self.one.do_json("cancel_v1", id)["outcome"], "cancelling")
        self.assertEqual(self.one.end(claims[0], ok=False, flags=PUT_BACK, started_ago=None, pid=None), CANCELLED)
        self.assertEqual((self.one.task(first).attempts, self.one.events()[-1].params["attempts"]), (0, 0))
        self.one.do("leave_v1")
        self.assertEqual([(self.one.task(id).state, self.one.task(id).attempts) for id in (second, third)], [(CANCELLED, 0), (CANCELLED, 1)])
        self.assert_counts()

    def test_what_is_cancelled_at_a_worker_that_is_gone_may_have_begun(self):
        id = self.one.submit()
        self.one.claim()
        self.one.do_json("cancel_v1", id)
        other = self.worker("other", accepts=[], agents=[])
        other.ask(f"UPDATE duet.worker SET state = 3, gone_at = now() WHERE id = {self.one.id} RETURNING id")
        other.do("sweep_v1")
        self.assertEqual((other.task(id).state, other.task(id).attempts), (CANCELLED, 1))

    def test_the_end_of_what_was_lost_is_not_late_when_it_is_told_again(self):
        id = self.one.submit()
        claim, = self.one.claim()
        lost = {"code": None, "reason": LOST, "message": "its keeper was lost"}
        self.assertEqual([self.one.end(claim, ok=False, **lost) for _ in range(2)], [FAILED, FAILED])
        self.assertIsNone(self.one.task(id).late)
        self.assertEqual(self.one.end(claim, code=7, ok=False), "fenced")
        self.assertEqual(json.loads(self.one.task(id).late)["exitCode"], 7)

    def test_restart_in_place(self):
        id = self.one.submit(retries=1)
        waits = self.one.submit(after=[id])
        self.assertEqual(self.one.do_json("requeue_v1", id)["outcome"], "not-ended")
        claim = self.one.run_one(result=b"old")
        self.assertEqual(self.one.do_json("requeue_v1", id)["outcome"], "queued")
        task = self.one.task(id)
        self.assertEqual((task.state, task.attempts, task.result, task.completed_ms, task.exit_code), (QUEUED, 1, None, None, None))
        self.assertEqual([claim.id for claim in self.one.claim(9)], [id])  # the one that comes after it waits again
        again = self.one.task(id)
        self.assertEqual(self.one.end(claim), "fenced")
        self.assertEqual(self.one.report([{"task": id, "fence": again.fence, "ok": False, "code": 1, "retry": 0}])[0].attempt, QUEUED)  # a retry is left
        self.assertEqual(self.state(waits), QUEUED)
        self.assert_counts()

    def test_restart_in_place_leaves_a_lane_that_is_retired(self):
        id = self.one.submit(group="rare")
        self.one.run_one()
        self.one.ask("UPDATE duet.lane SET retired_at = now() RETURNING id")
        again = self.one.do_json("requeue_v1", id)
        self.assertEqual(again["lane"], 2)
        self.assertEqual([(claim.id, claim.grp) for claim in self.one.claim()], [(id, "rare")])
        self.assertEqual(self.one.kinds(id)[-1], "taskQueued")

    def test_restart_in_place_of_one_whose_dependency_failed_fails_again(self):
        first = self.one.submit()
        second = self.one.submit(after=[first])
        self.one.run_one(ok=False)
        self.assertEqual(self.one.do_json("requeue_v1", second), {"outcome": "queued", "state": FAILED, "lane": 1})
        self.one.do_json("requeue_v1", first)
        self.one.do_json("requeue_v1", second)
        self.one.run_one()
        self.assertEqual(self.one.claim()[0].id, second)
        self.assert_counts()

    def test_what_had_an_environment_is_not_restarted_without_it(self):
        id = self.one.submit(env='{"A":"b"}')
        self.assertTrue(self.one.json("read_request_v1", id)["hasEnv"])
        self.one.run_one()
        self.assertEqual(self.one.do_json("requeue_v1", id)["outcome"], "env-gone")
        self.assertEqual(self.state(id), COMPLETED)

    def test_a_full_queue_says_what_it_holds(self):
        id = self.one.submit()
        self.one.run_one()
        self.one.json("set_v1", "queue_capacity", "1")
        self.one.submit()
        self.one.number()
        self.assertEqual(self.one.do_json("requeue_v1", id), {"outcome": "full", "state": COMPLETED, "capacity": 1})

    def test_removal_keeps_what_is_not_ended_or_needed(self):
        done, needed = self.one.submit(), self.one.submit()
        self.one.run_one()
        self.one.run_one()
        held = self.one.submit(after=[needed])
        self.one.do_json("hold_v1", held, True)
        answer = self.one.do_json("remove_v1", [needed, done, held, 99], None, None, "request")
        self.assertEqual(answer["removed"], [done])
        self.assertEqual([(kept["id"], kept["reason"], kept["by"]) for kept in answer["kept"]],
                         [(needed, "needed", held), (held, "not-ended", None), (99, "unknown", None)])
        self.assertIsNone(self.one.task(done))
        self.assertEqual(self.one.events()[-1].params, {"taskIds": [f"task-{done}"], "by": "request"})
        self.assert_counts()

    def test_cleaning_by_state_and_age(self):
        for ok in (True, False, True):
            self.one.submit()
            self.one.run_one(ok=ok)
        self.assertEqual(self.one.do_json("remove_v1", None, None, 3600000, "request")["removed"], [])
        self.assertEqual(self.one.do_json("remove_v1", None, FAILED, None, "request"), {"removed": [2], "kept": [], "more": False})
        self.one.do_json("hold_v1", self.one.submit(after=[1]), True)
        self.assertEqual(self.one.do_json("remove_v1", None, None, None, "request"),
                         {"removed": [3], "kept": [{"id": 1, "reason": "needed", "by": 4, "state": COMPLETED}], "more": False})
        self.assert_counts()

    def test_handles(self):
        id = self.one.submit()
        self.assertEqual(self.one.do("handle_v1", id, "h1"), [["h1"]])
        self.assertEqual(self.one.do("handle_v1", id, "h2"), [["h1"]])
        self.assertEqual(self.one.do("handle_v1", 99, "h3"), [[None]])
        self.assertEqual([self.one.call("read_handle_v1", name) for name in ("h1", "h2")], [[[str(id)]], [[None]]])

    def test_an_event_of_a_daemon_is_told_once(self):
        for kind, params in (("daemonStopping", "{}"), ("taskQueued", "{}"), ("queuePaused", "{}"), ("agentHeld", "{}"), ("x\ny", "{}"), ("", "{}"),
                             ("notice", "{ }"), ("notice", '{"a":\n1}'), ("notice", "[]"), ("notice", '{"a":"' + 1048576 * "x" + '"}')):
            self.assert_refused("22023", lambda: self.one.do("tell_v1", 9, kind, params))
        answers = [self.one.do("tell_v1", number, "notice", '{"n":1}')[0][0] for number in (1, 1, 2, 1)]
        self.assertEqual(answers, ["t", "f", "t", "f"])
        self.assertEqual(len([event for event in self.one.events() if event.kind == "notice"]), 2)


class Upkeep(QueueTest):
    def run_many(self, many, **end):
        self.one.submit_all(*[{} for _ in range(many)])
        claims = self.one.claim(many)
        self.one.report([{"task": claim.id, "fence": claim.fence, **end} for claim in claims])
        self.one.number()

    def sweep(self):
        while self.one.do_json("sweep_v1")["more"]:
            self.one.number()
        self.one.number()

    def run_groups(self, many):
        """A task in each of so many groups."""
        self.one.submit_all(*[{"group": f"g{n}"} for n in range(many)])
        self.one.report([{"task": claim.id, "fence": claim.fence} for claim in self.one.claim(many)])
        self.one.number()

    def live_lanes(self):
        return int(self.one.one("SELECT count(*) FROM duet.lane WHERE retired_at IS NULL"))

    def test_what_ended_first_goes_first(self):
        self.one.json("set_v1", "keep_tasks", "5")
        self.run_many(250)
        self.sweep()
        self.assertEqual([int(row[0]) for row in self.one.ask("SELECT id FROM duet.task ORDER BY id")], [246, 247, 248, 249, 250])
        for table in ("request", "result", "output"):
            self.assertLessEqual(int(self.one.one(f"SELECT count(*) FROM duet.{table}")), 5)
        self.assert_counts()

    def test_sweeps_right_behind_each_other_keep_what_is_to_be_kept(self):
        self.one.json("set_v1", "keep_tasks", "10")
        self.run_many(320)
        self.one.number(9999)
        other = self.worker("other")
        other.ask("BEGIN")
        other.do_json("sweep_v1")
        self.assertEqual(self.one.do_json("sweep_v1")["removed"], 0)  # one at a time
        other.ask("COMMIT")
        while self.one.do_json("sweep_v1")["more"]:
            pass  # before anybody has numbered what tells of it
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "10")
        self.one.number(9999)
        self.assert_counts()
        self.run_many(150)
        while self.one.do_json("sweep_v1")["more"]:
            pass
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "10")

    def test_nobody_keeps_others_from_letting_go(self):
        self.one.json("set_v1", "keep_tasks", "0")
        self.run_many(3)
        # What a role without any right on tables can do: it sees their numbers.
        self.caller().ask("SELECT count(pg_advisory_lock(oid::bigint)) FROM pg_class WHERE relnamespace = 'duet'::regnamespace")
        self.sweep()
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task"), "0")

    def test_a_lane_stays_while_a_task_names_it_though_the_clock_was_put_back(self):
        self.run_groups(1120)
        for _ in range(6):
            self.one.do("sweep_v1")
        self.assertEqual(self.live_lanes(), 1000)
        self.one.ask("UPDATE duet.lane SET retired_at = retired_at - interval '9 days' - interval '1 minute' RETURNING id")
        self.one.ask("UPDATE duet.task SET completed_at = completed_at - interval '9 days' RETURNING id")
        self.one.do("sweep_v1")
        self.assertEqual(self.one.task(1).grp, "g0")

    def test_what_is_older_than_keep_days_goes(self):
        self.run_many(3)
        self.one.ask("UPDATE duet.task SET completed_at = completed_at - interval '31 days' WHERE id < 3 RETURNING id")
        self.sweep()
        self.assertEqual(self.one.one("SELECT min(id) FROM duet.task"), "3")

    def test_one_that_is_needed_or_promised_stays(self):
        self.run_many(3)
        self.one.submit(after=[1])
        self.one.do("handle_v1", 2, "h")
        self.one.json("set_v1", "keep_tasks", "0")
        self.sweep()
        self.assertEqual(self.one.ask("SELECT id FROM duet.task WHERE state = 3 ORDER BY id"), [["1"], ["2"]])

    def test_output_beyond_its_bound_goes_and_the_record_says_so(self):
        for _ in range(3):
            self.one.submit()
            claim, = self.one.claim()
            self.one.report([{"task": claim.id, "fence": claim.fence, "bytes": 1000}], output=[
                {"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 0, "bytes": base64.b64encode(b"x" * 1000).decode(), "total": 1000, "last": True}])
        self.one.json("set_v1", "keep_output", "2000")
        self.one.number()
        self.sweep()
        self.assertEqual([self.one.task(id).output_gone for id in (1, 2, 3)], [True, False, False])
        self.assertEqual(self.one.json("read_output_state_v1", 1)["attempts"][0]["gone"], True)
        self.assertEqual(self.one.one("SELECT stored FROM duet.meta"), "2000")

    def test_output_of_many_goes_in_sweeps_right_behind_each_other(self):
        self.one.submit_all(*[{} for _ in range(250)])
        claims = self.one.claim(250)
        self.one.report([{"task": claim.id, "fence": claim.fence, "bytes": 1} for claim in claims], output=[
            {"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 0, "bytes": "YQ==", "total": 1, "last": True} for claim in claims])
        self.one.json("set_v1", "keep_output", "0")
        self.one.number()
        self.sweep()
        self.assertEqual(self.one.ask("SELECT stored, (SELECT count(*) FROM duet.output) FROM duet.meta"), [["0", "0"]])

    def test_what_is_stored_is_counted_however_a_task_ends(self):
        def with_output(**task):
            self.one.submit(**task)
            claim, = self.one.claim()
            self.one.start(claim)
            self.one.report(output=[{"task": claim.id, "fence": claim.fence, "attempt": claim.attempt, "offset": 0, "bytes": "YWJj", "total": 3}])
            return claim
        self.one.end(with_output(), cpu=None, memory=None, bytes=None)  # its keeper has not told what it used
        self.one.end(with_output(), bytes=3)
        self.one.end(with_output(), ok=False, bytes=3)
        retried = with_output(retries=1)
        self.one.end(retried, ok=False, bytes=3, retry=3600000)
        again = with_output()
        self.one.end(again, bytes=3)
        self.one.do("requeue_v1", again.id)
        before = self.one.submit(delay=3600000)
        for id in (retried.id, again.id):
            self.assertEqual(self.one.do_json("edit_v1", id, {"after": [before]})["outcome"], "changed")
        self.one.do("cancel_v1", before)
        self.assertEqual(self.state(again.id), FAILED)
        self.assert_counts()
        self.assertEqual(self.one.one("SELECT stored FROM duet.meta"), "15")
        self.one.json("set_v1", "keep_output", "0")
        self.sweep()
        self.assertEqual(self.one.ask("SELECT stored, (SELECT count(*) FROM duet.output) FROM duet.meta"), [["0", "0"]])

    def test_an_end_whose_start_nobody_tells_is_counted_as_it_is_told(self):
        self.one.submit()
        self.one.run_one(started_ago=None)
        self.assert_counts()

    def test_events_beyond_a_hundred_thousand_go(self):
        self.one.ask("SELECT duet.tell('notice', '{}') FROM generate_series(1, 100500)")
        self.one.number(200000)
        self.sweep()
        self.assertEqual(self.one.ask("SELECT count(*) <= 100001, min(seq) > 500 FROM duet.event"), [["t", "t"]])
        self.assertGreater(self.one.json("read_events_state_v1")["oldest"], 500)

    def test_a_claim_that_committed_after_its_worker_was_given_up_is_found(self):
        id, again = self.one.submit(on_lost=0), self.one.submit(on_lost=1)
        self.one.claim(2)
        other = self.worker("other", accepts=[], agents=[])
        other.ask(f"UPDATE duet.worker SET state = 3, gone_at = now() WHERE id = {self.one.id} RETURNING id")
        self.assertEqual(other.do_json("sweep_v1")["ready"], [{"lane": 1, "count": 1}])  # so that somebody is woken
        self.assertEqual((other.task(id).state, other.task(id).error_reason, other.task(again).state), (FAILED, LOST, QUEUED))

    def test_lanes_that_nobody_needs_are_retired_and_come_back(self):
        self.run_groups(1120)
        for _ in range(10):
            self.one.do("sweep_v1")
        self.assertEqual(self.live_lanes(), 1000)
        self.assertEqual([self.one.task(id).grp for id in (1, 1120)], ["g0", "g1119"])
        self.one.beat()
        ids = [row.id for row in self.one.submit_all(*[{"group": f"g{n}"} for n in range(1120)])]
        self.assertEqual(sorted(claim.id for claim in self.one.claim(2000)), ids)

    def test_lanes_that_are_merely_empty_stay(self):
        for _ in range(5):
            self.run_groups(150)
            for _ in range(4):
                self.one.do("sweep_v1")
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.lane"), "150")

    def test_a_lane_stays_under_what_was_claimed_while_a_sweep_looked(self):
        self.run_groups(1100)
        self.one.submit(group="g0"), self.one.submit(group="g1")
        self.one.ask("UPDATE duet.lane SET retired_at = now() - interval '3 days' WHERE grp = 'g1' RETURNING id")
        self.one.ask("UPDATE duet.task SET completed_at = now() - interval '1 day' WHERE state = 3 RETURNING id")
        names = ("is_empty", "leave_lanes")
        sources = [self.one.one(f"SELECT pg_get_functiondef('duet.{name}'::regproc)") for name in names]
        # Between the look at what runs and that at a lane somebody claims what is ready in it.
        claims = "BEGIN\n  UPDATE duet.task t SET state = 2, worker = 1 WHERE t.state = 1 AND t.lane = p_lane;"
        try:
            for source, begin in zip(sources, (claims, "BEGIN\n  v_tasks := '{}';")):
                self.one.ask(source.replace("BEGIN", begin, 1))
            self.one.do("sweep_v1")
            self.one.do("sweep_v1")
        finally:
            for source in sources:
                self.one.ask(source)
        self.assertEqual(self.one.ask("SELECT l.grp, l.retired_at > now() - interval '1 hour' FROM duet.lane l"
                                      " JOIN duet.task t ON t.lane = l.id WHERE t.state = 2 ORDER BY l.id"), [["g0", None], ["g1", "t"]])

    def test_many_tasks_leave_a_retired_lane_in_sweeps_right_behind_each_other(self):
        self.one.submit_all(*[{"group": "rare"} for _ in range(250)])
        self.one.ask("UPDATE duet.lane SET retired_at = now() RETURNING id")
        self.sweep()
        self.assertEqual(self.one.one("SELECT count(DISTINCT lane) || ' ' || count(*) FROM duet.task WHERE lane = 2"), "1 250")

    def test_who_queues_a_task_in_a_retired_lane_finds_it_where_such_tasks_go_now(self):
        held, ready = self.one.submit(group="a"), self.one.submit(group="b")
        self.one.do("hold_v1", held, True)
        self.one.ask("UPDATE duet.lane SET retired_at = now() RETURNING id")
        self.one.beat()
        self.assertEqual(self.one.claim(2), [])
        self.assertEqual(self.one.do_json("sweep_v1")["ready"][0]["count"], 1)
        self.one.do("hold_v1", held, False)
        self.assertEqual(sorted(claim.id for claim in self.one.claim(2)), [held, ready])

    def test_numbers_have_no_gaps_under_eight_writers_and_every_tasks_events_are_in_order(self):
        workers = [self.worker(f"w{n}") for n in range(8)]
        over = threading.Event()
        problems = []

        def work(worker):
            try:
                for _ in range(25):
                    worker.submit_all({"retries": 1}, {})
                    claims = worker.claim(2)
                    worker.start(*claims)
                    worker.report([{"task": claim.id, "fence": claim.fence, "ok": claim.id % 3 > 0, "code": 1, "retry": 0} for claim in claims])
            except Exception as problem:  # noqa: BLE001 - it is shown below
                problems.append(problem)

        def number(caller):
            while not over.is_set():
                caller.number(7)
        numbering = [threading.Thread(target=number, args=[self.caller()]) for _ in range(2)]
        working = [threading.Thread(target=work, args=[worker]) for worker in workers]
        for thread in numbering + working:
            thread.start()
        for thread in working:
            thread.join()
        over.set()
        for thread in numbering:
            thread.join()
        self.assertEqual(problems, [])
        events = self.one.events()
        self.assertEqual([event.seq for event in events], list(range(1, len(events) + 1)))
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.event WHERE seq IS NULL"), "0")
        follows = {None: {"taskQueued"}, "taskQueued": {"taskStarted"}, "taskStarted": {"taskQueued", "taskCompleted", "taskFailed"}}
        last = {}
        for event in events:
            if event.task:
                self.assertIn(event.kind, follows[last.get(event.task)], event)
                last[event.task] = event.kind
        self.assertEqual(len(last), 400)
        self.assertGreater(int(self.one.one("SELECT low_event FROM duet.meta")), 0)
        self.assert_counts()

    def test_an_event_that_commits_late_is_numbered_late_and_not_forgotten(self):
        slow = self.caller()
        slow.ask("BEGIN")
        slow.ask(f"SELECT * FROM duet.tell_v1({self.one.id}, '{self.one.incarnation}', 1, 'slow', '{{}}')")
        for _ in range(20):
            self.one.submit()
            self.one.number()
        slow.ask("COMMIT")
        self.assertEqual(self.one.events()[-1].kind, "slow")
        for _ in range(5):
            self.one.submit()
            self.one.number()
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.event WHERE seq IS NULL"), "0")

    def test_adopt_makes_it_another_queue(self):
        waiting, running = self.one.submit(), self.one.submit()
        self.one.start(*self.one.claim(1))
        before = self.one.json("hello_v1")
        self.one.ask("UPDATE duet.meta SET system = 1 RETURNING system")
        self.assertFalse(self.one.json("hello_v1")["adopted"])
        self.assertIn("adopt", self.assert_refused("DU002", lambda: self.worker("two")))
        self.assertEqual(self.one.json("adopt_v1", "cancel"), {"outcome": "adopted"})
        after = self.one.json("hello_v1")
        self.assertTrue(after["adopted"])
        self.assertNotEqual((before["queue"], before["epoch"]), (after["queue"], after["epoch"]))
        self.assertEqual([self.one.task(id).state for id in (waiting, running)], [FAILED, CANCELLED])
        self.assert_refused("DU001", self.one.beat)
        self.assert_counts()

    def test_a_queue_on_its_own_server_is_not_adopted_unless_it_is_said_to_be_an_old_backup(self):
        self.one.submit()
        before = self.one.json("hello_v1")
        self.assertEqual(self.one.json("adopt_v1", "cancel"), {"outcome": "same"})
        self.assertEqual(self.one.json("hello_v1")["queue"], before["queue"])
        self.one.beat()
        self.assertEqual(self.one.json("adopt_v1", "cancel", "true"), {"outcome": "adopted"})
        self.assertNotEqual(self.one.json("hello_v1")["queue"], before["queue"])


class Reads(QueueTest):
    def test_lists(self):
        for n in range(6):
            self.one.submit(group="b" if n % 2 else "a", priority=n % 3, labels=json.dumps({"n": str(n), "x": "y"}, separators=(",", ":")))
        self.one.run_one()
        self.one.run_one(ok=False)
        self.one.start(*self.one.claim(1))
        self.one.number()

        def ids(**query):
            return [task.id for task in self.one.tasks(**query)]
        self.assertEqual(ids(), [6, 5, 4, 3, 2, 1])
        self.assertEqual(ids(limit=2, sort="oldest"), [1, 2])
        self.assertEqual(ids(**{"from": 4}), [3, 2, 1])
        self.assertEqual(ids(group="a"), [5, 3, 1])
        self.assertEqual(ids(agent="none"), [])
        self.assertEqual(ids(labels={"n": "3"}), [4])
        self.assertEqual(ids(labels={"n": "3", "x": "y"}), [4])
        self.assertEqual(ids(labels={"n": "y"}), [])
        states = {task.id: task.state for task in self.one.tasks()}
        for state in (QUEUED, RUNNING, COMPLETED, FAILED, CANCELLED):
            self.assertEqual(ids(state=state), [id for id in (6, 5, 4, 3, 2, 1) if states[id] == state])
        self.assertEqual(len(ids(sort="ended")), 2)
        self.assertEqual([task.priority for task in self.one.tasks(sort="priority")], [2, 2, 1, 1, 0, 0])
        self.assertEqual(ids(since=self.one.task(3).created_ms + 3600000), [])

    def test_a_list_of_what_rules_asked_for(self):
        of_rule = json.dumps({"automation": {"ruleId": "r"}}, separators=(",", ":"))
        for n in range(6):
            self.one.submit(metadata=of_rule if n % 2 else "{}")
        self.one.run_one()
        self.one.run_one()
        self.one.start(*self.one.claim(2))
        self.assertEqual([task.id for task in self.one.tasks(ofRules=True)], [6, 4, 2])
        self.assertEqual([task.id for task in self.one.tasks(ofRules=True, state=QUEUED)], [6])
        self.assertEqual([task.id for task in self.one.tasks(ofRules=True, state=RUNNING)], [4])

    def test_a_long_result_is_cut_in_lists(self):
        self.one.submit()
        self.one.run_one(result=b"a" * 2000 + b"end")
        self.assertEqual(len(self.one.task(1).result), 2 + 2 * 2003)
        self.assertTrue(self.one.tasks()[0].result.endswith(b"end".hex()))
        self.assertEqual(len(self.one.tasks()[0].result), 2 + 2 * 1024)

    def test_unknown_tasks(self):
        self.assertIsNone(self.one.task(99))
        for name in ("read_request_v1", "read_explain_v1", "read_output_state_v1"):
            self.assertEqual(self.one.call(name, 99), [[None]])

    def test_the_queue_in_numbers(self):
        self.one.submit_all({"group": "a"}, {"group": "a"}, {"group": "b", "delay": 3600000})
        self.one.start(*self.one.claim(1))
        self.one.do_json("pause_v1", "c", True)
        queue = self.one.json("read_queue_v1")
        self.assertEqual([(group["name"], group["paused"], group["running"], group["queued"]) for group in queue["groups"]],
                         [("a", None, 1, 1), ("b", None, 0, 1), ("c", True, 0, 0)])
        self.assertEqual([(agent["name"], agent["running"], agent["queued"]) for agent in queue["agents"]], [("claude", 1, 2)])
        self.assertEqual((queue["paused"], queue["workers"][0]["running"]), (False, 1))

    def test_status_names_lanes_and_for_whom_they_wait(self):
        self.one.submit(needs="gpu")
        status = self.one.json("read_status_v1")
        self.assertEqual((status["lanes"][0]["needs"], status["lanes"][0]["workers"], status["lanes"][0]["waitingFor"]), (["gpu"], [], "no worker with gpu"))
        self.assertEqual((status["unnumbered"], status["schemaVersion"]), (2, 1))

    def test_why_a_task_waits(self):
        first = self.one.submit()
        id = self.one.submit(after=[first], needs="gpu")
        explained = self.one.json("read_explain_v1", id)
        self.assertEqual((explained["after"], explained["slots"]["free"], explained["missing"]), ([{"task": first, "state": QUEUED}], None, "no worker with gpu"))
        self.assertEqual(self.one.json("read_explain_v1", self.one.submit())["before"], 1)

    def test_for_whom_a_task_waits(self):
        def waits(**wanted):
            return self.one.json("read_explain_v1", self.one.submit(**wanted))["missing"]

        self.worker("two", labels=["gpu"], accepts=["codex"], agents=["codex"])
        self.worker("three", labels=["tpu"])
        self.assertEqual(waits(needs="gpu"), "no worker with gpu that accepts claude")
        self.assertEqual(waits(needs="npu"), "no worker with npu")
        self.assertEqual(waits(needs="gpu\x1ftpu"), "no worker with gpu and tpu")
        self.assertEqual(waits(agent="nobody", needs="gpu"), "no worker that accepts nobody")
        self.one.json("drain_v1", "three", True)
        self.assertEqual(waits(needs="tpu"), "the only workers with tpu are draining")
        self.one.json("drain_v1", "two", True)
        self.assertEqual(waits(agent="codex"), "the only workers that accept codex are draining")
        self.one.do_json("silence_v1", *self.one.one("SELECT id || ' ' || beat FROM duet.worker WHERE name = 'three'").split())
        self.assertEqual(waits(needs="tpu"), "the only workers with tpu are silent")

    def test_slots_are_those_of_all_that_are_heard_of(self):
        self.assertEqual(self.one.json("read_stats_v1")["slots"], 4)
        self.worker("two")
        self.one.json("drain_v1", "two", True)
        self.assertEqual(self.one.json("read_stats_v1")["slots"], 8)


if __name__ == "__main__":
    run()
