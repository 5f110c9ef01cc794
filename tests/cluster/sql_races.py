#!/usr/bin/env python3
"""What calls of the queue's functions do to each other when they come at once: `sql_races.py [unittest options]`.

A call is kept under way by an open transaction around it, as a commit does that waits for a standby."""

import base64
import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import CANCELLED, COMPLETED, FAILED, LOST, PUT_BACK, QUEUED, RUNNING, SUBMIT, call_text, rows_of  # noqa: E402
from queue_fixture import QueueTest, run, setUpModule, tearDownModule  # noqa: E402, F401


class RaceTest(QueueTest):
    def setUp(self):
        super().setUp()
        self.watch = self.caller()

    def wait_for_lock(self, caller):
        """Until what was sent on this connection waits for another one."""
        pid = caller.pid
        server.eventually("it waits", lambda: self.watch.one(
            f"SELECT cardinality(pg_blocking_pids({pid})) > 0") == "t")

    def worker(self, name, **options):
        worker = super().worker(name, **options)
        worker.pid = worker.one("SELECT pg_backend_pid()")
        return worker

    def send(self, worker, function, *arguments):
        worker.session.send(call_text(function, worker.id, worker.incarnation, *arguments))


    def sweep(self, worker):
        while worker.do_json("sweep_v1")["more"]:
            pass

    @contextlib.contextmanager
    def stopped_at(self, function, condition, holder):
        """Whoever comes to this condition of the function waits there until HOLDER's transaction is over."""
        source = self.watch.one(f"SELECT pg_get_functiondef('duet.{function}'::regproc)")
        self.assertEqual(source.count(condition), 1)
        self.watch.ask("CREATE FUNCTION duet.stop() RETURNS boolean LANGUAGE plpgsql AS"
                       " 'BEGIN PERFORM FROM duet.gate WHERE kind = ''test'' FOR UPDATE; RETURN true; END'")
        try:
            self.watch.ask(source.replace(condition, condition + " AND duet.stop()"))
            self.watch.ask("INSERT INTO duet.gate(kind, name) VALUES ('test', '')")
            holder.ask("BEGIN")
            holder.ask("SELECT FROM duet.gate WHERE kind = 'test' FOR UPDATE")
            yield
        finally:
            self.watch.ask(source)
            self.watch.ask("DROP FUNCTION duet.stop()")


class Claims(RaceTest):
    def test_a_claim_over_several_lanes_keeps_from_others_only_what_it_takes(self):
        other = self.worker("other", labels=["gpu"])
        gpu = self.worker("gpu", labels=["gpu"])
        self.one.submit(), self.one.submit(needs="gpu")
        for worker in (gpu, other):
            worker.beat()
        gpu.ask("BEGIN")
        self.assertEqual([claim.id for claim in gpu.claim(1)], [1])
        self.assertEqual([claim.id for claim in other.claim(1)], [2])
        gpu.ask("COMMIT")

    def test_however_many_others_are_taking_the_rest_is_found(self):
        other = self.worker("other", labels=["gpu"])
        gpu = self.worker("gpu", labels=["gpu"])
        self.one.submit_all(*[{"needs": "gpu" if n % 2 else ""} for n in range(1000)])
        for worker in (gpu, other):
            worker.beat()
        gpu.ask("BEGIN")
        self.assertEqual([claim.id for claim in gpu.claim(900)], list(range(1, 901)))
        self.assertEqual([claim.id for claim in other.claim(3)], [901, 902, 903])
        gpu.ask("COMMIT")
        self.assertEqual(len(gpu.claim(1000)), 97)

    def test_however_many_others_are_taking_the_rest_is_found_also_where_groups_take_turns(self):
        other, third = self.worker("other"), self.worker("third")
        self.one.submit_all(*[{"group": "ab"[n % 2]} for n in range(1000)])
        for worker in (other, third):
            worker.beat()
        other.ask("BEGIN")
        self.assertEqual(len(other.claim(900)), 900)
        self.assertEqual(sorted(claim.id for claim in third.claim(3)), [901, 902, 903])
        # What a limit keeps back is not looked through again and again.
        self.assertEqual(third.claim(5, limits={"groups": {"a": 1, "b": 1}, "agents": {}}), [])
        other.ask("COMMIT")
        self.assertEqual(len(third.claim(1000)), 97)

    def test_what_was_edited_before_it_was_claimed_runs_as_edited(self):
        # The edit comes between the moment from which the claim sees the queue and the lock of the task's row.
        id = self.one.submit(body="old")
        other, third = self.worker("other"), self.worker("third")
        other.beat()
        with self.stopped_at("report_v1", "WHERE r.lane = v_lanes[1] AND r.state = 1", third):
            self.send(other, "claim_v1", 1, [], [], None, None)
            self.wait_for_lock(other)
            self.assertEqual(self.one.do_json("edit_v1", id, {"body": "new"})["outcome"], "changed")
            third.ask("COMMIT")
            self.assertEqual([row[9] for row in other.session.answer()], ["new"])

    def test_a_task_that_is_edited_into_a_paused_group_is_not_taken_from_where_it_was(self):
        id, _ = self.one.submit(group="a"), self.one.submit(group="b")
        self.one.do_json("pause_v1", "b", True)
        other, third = self.worker("other"), self.worker("third")
        with self.stopped_at("choose", "WHERE r.lane = l.id AND r.state = 1", third):
            self.send(other, "claim_v1", 1, [], [], None, None)
            self.wait_for_lock(other)
            self.assertEqual(self.one.do_json("edit_v1", id, {"group": "b"})["outcome"], "changed")
            third.ask("COMMIT")
            self.assertEqual(other.session.answer(), [])

    def test_a_pause_that_was_answered_while_a_claim_waited_for_a_limit_holds(self):
        limits = {"groups": {"a": 9}, "agents": {"claude": 9}}
        other, third = self.worker("other"), self.worker("third")
        closings = ((lambda: third.do_json("pause_v1", "b", True)["changed"], ["a", "a"]),
                    (lambda: third.do_json("pause_v1", None, True)["changed"], []))
        for close, left in closings:
            self.one.submit_all(*[{"group": group} for group in "abab"])
            other.beat()
            self.one.ask("BEGIN")
            self.one.claim(1, limits=limits)  # makes others wait for its end
            self.send(other, "claim_v1", 4, [], [], limits, None)
            self.wait_for_lock(other)
            self.assertTrue(close())
            self.one.ask("ROLLBACK")
            self.assertEqual([row[4] for row in other.session.answer()], left)
            other.ask("UPDATE duet.task SET state = 3, completed_at = now() WHERE state <> 3 RETURNING id")

    def test_the_highest_priority_of_all_lanes_first(self):
        gpu = self.worker("gpu", labels=["gpu"])
        for priority, needs in ((0, ""), (1, "gpu"), (5, ""), (3, "gpu"), (1, "")):
            self.one.submit(priority=priority, needs=needs)
        gpu.beat()
        self.assertEqual([claim.id for _ in range(5) for claim in gpu.claim(1)], [3, 4, 2, 5, 1])

    def test_a_start_that_is_told_while_its_lane_is_retired_is_told_to_all(self):
        other = self.worker("other")
        id = self.one.submit(group="rare", retries=1)
        claim, = self.one.claim()
        self.one.ask("UPDATE duet.lane SET retired_at = now() WHERE grp = 'rare' RETURNING id")
        other.ask("BEGIN")
        other.do("sweep_v1")
        starts = json.dumps([{"task": id, "fence": claim.fence, "pid": 7, "ago": 0}])
        self.send(self.one, "report_v1", starts, *19 * [None], 0, [], [], None)
        server.eventually("it is there, or waits", lambda: self.watch.one(
            f"SELECT cardinality(pg_blocking_pids({self.one.pid})) > 0 OR EXISTS (SELECT FROM duet.task WHERE announced)") == "t")
        other.ask("COMMIT")
        self.assertEqual(self.one.session.answer()[0][0], "start")
        self.assertEqual(self.one.kinds(id), ["taskQueued", "taskStarted"])
        self.assert_counts()
        self.one.end(claim, ok=False, retry=0)
        self.sweep(other)  # finds it where nobody looks
        self.assertEqual(self.one.claim()[0].id, id)

    def test_a_claim_that_commits_behind_a_silence_is_told_and_given_up_by_the_next(self):
        other = self.worker("other", accepts=[], agents=[])
        retry, fail = self.one.submit(on_lost=1), self.one.submit()
        self.one.ask("BEGIN")
        self.one.claim(2)
        self.assertTrue(other.do_json("silence_v1", self.one.id, self.one.beat_number())["silent"])
        self.one.ask("COMMIT")

        def seen():
            return {worker["id"]: worker["toRepeat"] for worker in other.beat()["workers"]}
        self.assertEqual(seen(), {self.one.id: True, other.id: False})
        self.assertEqual(other.do_json("silence_v1", self.one.id, self.one.beat_number())["ready"], [{"lane": 1, "count": 1}])
        self.assertEqual(seen(), {self.one.id: False, other.id: False}, fail)
        self.assertEqual(self.watch.one(f"SELECT state FROM duet.task WHERE id = {retry}"), "1")


class Submits(RaceTest):
    def test_a_key_whose_task_is_removed_meanwhile_is_submitted_anew(self):
        old = self.one.submit(key="old", body="first")
        self.one.run_one()
        other, third = self.worker("other"), self.worker("third")
        with self.stopped_at("submit_many", "WHERE r.task = ANY (v_ids)", third):
            other.session.send(other.submit_text([{"key": "old", "body": "again"}, {"key": "new"}, {"key": "old", "body": "again"}]))
            self.wait_for_lock(other)
            self.assertEqual(self.one.do_json("remove_v1", [old], None, None, "request")["removed"], [old])
            third.ask("COMMIT")
            rows = sorted(rows_of(SUBMIT, other.session.answer()), key=lambda row: row.place)
        self.assertEqual([row.place for row in rows], [1, 2, 3])
        self.assertEqual([row.fresh for row in rows], [True, True, False])
        self.assertEqual((rows[0].id, rows[2].body), (rows[2].id, "again"))
        self.assertEqual(sorted(claim.id for claim in self.one.claim(9)), sorted({row.id for row in rows}))
        self.assert_counts()


# Whoever waits for a lock then waits until the test is over.
NO_LIMIT = """DO $$ DECLARE v_function regprocedure; BEGIN
  FOR v_function IN SELECT oid FROM pg_proc WHERE pronamespace = 'duet'::regnamespace AND proconfig && ARRAY['lock_timeout=5s'] LOOP
    EXECUTE format('ALTER FUNCTION %s SET lock_timeout = 0', v_function);
  END LOOP;
END $$"""


class MissingStandby(RaceTest):
    """What a commit that waits for a standby has locked holds up no sweep, no leaving and no silence: beats come behind them."""

    def setUp(self):
        super().setUp()
        self.other = self.worker("other")
        self.waiting = self.worker("waiting", accepts=[], agents=[])
        self.watch.ask(NO_LIMIT)
        for worker in (self.one, self.other):
            worker.ask("SET lock_timeout = 0")
            worker.ask("SET statement_timeout = '60s'")

    def keep_waiting(self, call):
        self.waiting.ask("BEGIN")
        call()

    def run_of(self, **task):
        self.one.submit(**task)
        claim, = self.one.claim()
        self.one.start(claim)
        return claim

    def test_a_cancel_of_one_of_several(self):
        first, second = self.run_of(on_lost=1), self.run_of(on_lost=1)
        self.keep_waiting(lambda: self.waiting.do("cancel_v1", first.id))
        self.assertTrue(self.other.do_json("silence_v1", self.one.id, self.one.beat_number())["silent"])
        self.assertEqual([self.state(id) for id in (first.id, second.id)], [RUNNING, QUEUED])
        self.waiting.ask("COMMIT")
        self.other.do_json("silence_v1", self.one.id, self.one.beat_number())
        self.assertEqual(self.state(first.id), CANCELLED)
        self.assert_counts()

    def test_what_comes_after_is_held_or_its_request_is_asked_for_again(self):
        for task, more, call in (({}, [{}], lambda after, claim: self.waiting.do("hold_v1", after, True)),
                                 ({"key": "k", "env": '{"A":"b"}'}, [], lambda _, claim: self.waiting.submit(key="k", env='{"A":"b"}'))):
            claim, spared = self.run_of(on_lost=1, **task), self.run_of(on_lost=1)
            after = [self.one.submit(after=[claim.id], **each) for each in more]
            self.one.ask(f"UPDATE duet.task SET lost = 2 WHERE id = {claim.id} RETURNING id")
            self.keep_waiting(lambda: call(after[0] if after else None, claim))
            self.assertTrue(self.other.do_json("silence_v1", self.one.id, self.one.beat_number())["silent"])
            self.assertEqual([self.state(id) for id in (claim.id, spared.id)], [RUNNING, QUEUED])
            self.waiting.ask("COMMIT")
            self.other.do_json("silence_v1", self.one.id, self.one.beat_number())
            self.assertEqual(self.state(claim.id), FAILED)
            self.other.report([{"task": each.id, "fence": each.fence} for each in self.other.claim(9)])
            self.one.beat()
        self.assert_counts()

    def test_who_leaves_gives_back_later_what_is_locked(self):
        self.one.submit(), self.one.submit(), self.one.submit()
        started, cancelled, given_back = self.one.claim(3)
        self.one.start(started)
        other = self.worker("third", accepts=[], agents=[])
        self.keep_waiting(lambda: self.waiting.do("cancel_v1", cancelled.id))
        other.ask("BEGIN")
        other.do("hold_v1", given_back.id, True)  # not-queued, but it has looked
        self.assertTrue(self.one.do_json("leave_v1")["left"])
        self.waiting.ask("COMMIT"), other.ask("COMMIT")
        self.assertEqual(self.other.do_json("sweep_v1")["removed"], 0)
        self.assertEqual([self.state(claim.id) for claim in (started, cancelled, given_back)], [FAILED, CANCELLED, QUEUED])
        self.assertEqual(self.other.claim()[0].attempt, 1)
        self.assert_counts()

    def test_a_sweep(self):
        ids = [self.one.submit(key=f"k{n}") for n in range(3)]
        self.one.report([{"task": claim.id, "fence": claim.fence} for claim in self.one.claim(3)])
        self.one.number()
        self.one.json("set_v1", "keep_tasks", "0")
        due = self.one.submit(not_before=1000, delay=1)
        for n in range(120):
            self.one.submit(group=f"g{n}", delay=1 if n < 10 else None)
        self.one.ask("UPDATE duet.lane SET retired_at = now() WHERE grp = 'g5' RETURNING id")
        def locks():
            self.waiting.submit(key="k0")
            self.waiting.submit(group="a new one")
        self.keep_waiting(locks)
        self.assertEqual(self.other.do_json("sweep_v1")["removed"], 2)
        self.assertEqual([self.one.task(id) is None for id in (*ids, due)], [False, True, True, False])
        server.eventually("it is due", lambda: self.other.do("sweep_v1") and self.one.one(f"SELECT state FROM duet.task WHERE id = {due}") == "1")
        self.waiting.ask("COMMIT")
        self.sweep(self.other)
        self.assertIsNone(self.one.task(ids[0]))
        self.assertEqual(self.one.one("SELECT count(*) FROM duet.task t JOIN duet.lane l ON l.id = t.lane WHERE l.retired_at IS NOT NULL"), "0")
        self.one.number()
        self.assert_counts()

    def test_a_wake_up_is_not_lost_to_a_beat_under_way(self):
        self.other.do("wait_v1", True)
        self.other.ask(f"LISTEN duet_w{self.other.id}")
        beating = self.caller()
        beating.ask("BEGIN")
        beating.call("beat_v1", self.other.id, self.other.incarnation, True, None, None, None, None, None, None)
        row, = self.one.submit_all({})
        self.assertEqual(self.one.do("wake_v1", [row.lane], [1]), [["1"]])
        beating.ask("COMMIT")
        self.assertIn("Asynchronous notification", "".join(self.other.ask("SELECT 1")[0]))


    def test_what_a_worker_has_is_told_again(self):
        claim, ended = self.run_of(), self.run_of()
        self.one.end(ended)
        told = json.dumps([{"task": each.id, "fence": each.fence, "attempt": 1, "pid": 77, "ago": 0} for each in (claim, ended)])
        def locks():
            self.waiting.do("cancel_v1", claim.id)
            self.waiting.do("cancel_v1", ended.id)
        self.keep_waiting(locks)
        self.assertEqual(self.one.do_json("recover_v1", told)["fenced"], [ended.fence])
        self.one.beat()
        self.waiting.ask("COMMIT")


class Deadlocks(RaceTest):
    def test_the_same_keys_in_another_order(self):
        other = self.worker("other")
        keys = [{"key": f"k{n}"} for n in range(8)]
        self.one.submit_all({})
        third = self.worker("third")
        # Who comes first waits for a key in the middle, and has those before it: in either order the same ones.
        third.ask("BEGIN")
        third.submit(key="k4")
        self.one.session.send(self.one.submit_text(keys))
        self.wait_for_lock(self.one)
        other.session.send(other.submit_text(list(reversed(keys))))
        self.wait_for_lock(other)
        third.ask("COMMIT")
        first = {row[1] for row in self.one.session.answer()}
        self.assertEqual({row[1] for row in other.session.answer()}, first)
        self.assertEqual(len(first), 8)

    def test_a_submit_after_a_task_that_is_being_edited(self):
        other = self.worker("other")
        id = self.one.submit()
        self.one.ask("BEGIN")
        self.one.do_json("edit_v1", id, {"priority": 3})  # has the task
        other.session.send(other.submit_text([{"after": [id], "group": "new"}]))
        self.wait_for_lock(other)
        self.assertEqual(self.one.do_json("edit_v1", id, {"group": "other"})["outcome"], "changed")  # wants a new lane
        self.one.ask("COMMIT")
        self.assertEqual(other.session.answer()[0][3], "t")

    def test_a_hold_takes_no_gate_of_edits(self):
        # It has the rows of tasks by then, which an edit takes behind that gate.
        other = self.worker("other")
        first, second = self.one.submit(), self.one.submit()
        claim, = self.one.claim(1)
        self.one.start(claim)
        other.do_json("edit_v1", second, {"after": []})  # there is one from now on
        other.ask("BEGIN")
        other.do_json("edit_v1", second, {"after": []})
        self.one.session.send(self.report_with_hold(claim))
        self.assertEqual(self.one.session.answer()[0][0], "end", first)
        other.ask("COMMIT")

    def test_a_hold_makes_no_gate_of_a_limit_while_it_has_others(self):
        workers = [self.worker(f"w{n}", accepts=["claude", "codex"], agents=["claude", "codex"]) for n in range(2)]
        first, other = workers
        self.one.submit()
        claim, = first.claim(1)
        self.one.submit_all({"agent": "codex", "group": "g"}, {"agent": "codex", "group": "h"})
        first.beat(), other.beat()
        self.watch.ask("INSERT INTO duet.gate(kind, name) VALUES ('group', 'g'), ('test', '')")  # the last one of all
        third = self.worker("third")
        third.ask("BEGIN")
        third.ask("SELECT FROM duet.gate WHERE kind = 'test' FOR UPDATE")
        limits = {"groups": {"g": 9, "h": 9}, "agents": {}}
        first.session.send(self.report_with_hold(claim, first, 1, limits))
        self.wait_for_lock(first)
        self.send(other, "claim_v1", 1, [], [], limits, None)
        self.wait_for_lock(other)
        third.ask("COMMIT")
        self.assertEqual([row[0] for row in first.session.answer()], ["end", "claim"])
        self.assertEqual(len(other.session.answer()), 1)

    def report_with_hold(self, claim, worker=None, most=0, limits=None):
        worker = worker or self.one
        piece = {"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 0, "bytes": base64.b64encode(b"x").decode(), "total": 1}
        return call_text("report_v1", worker.id, worker.incarnation, None, [claim.id], [claim.fence], [False], [1], [None], [0], ["limit"], [77],
                         [20], [0], [1], [1], [1], [None], [60000], ["usage"], [2], [b""], json.dumps([piece]), most, [], [], limits)

    def test_an_edit_that_puts_a_task_behind_a_later_one_which_ends(self):
        other = self.worker("other")
        first, second = self.one.submit(priority=-1), self.one.submit()
        claim, = self.one.claim(1)
        self.assertEqual(claim.id, second)
        other.do_json("edit_v1", first, {"after": [second]})
        third = self.worker("third")
        third.ask("BEGIN")
        third.ask(f"SELECT FROM duet.task WHERE id = {second} FOR NO KEY UPDATE")
        self.send(other, "edit_v1", first, {"after": [second]})
        self.wait_for_lock(other)
        # What an end of the second does now: it has its row, and wants that of the first.
        self.assertEqual(third.ask(f"SELECT id FROM duet.task WHERE id = {first} FOR NO KEY UPDATE NOWAIT"), [[str(first)]])
        third.ask("COMMIT")
        self.assertIn("changed", other.session.answer()[0][0])
        self.assertEqual(self.one.end(claim), COMPLETED)
        self.assertEqual([each.id for each in self.one.claim(2)], [first])

    def test_a_restart_locks_what_it_comes_after_before_itself(self):
        other = self.worker("other")
        first, second = self.one.submit(priority=-1), self.one.submit(delay=3600000)
        other.do_json("edit_v1", first, {"after": [second]})
        other.do_json("cancel_v1", first)
        third = self.worker("third")
        third.ask("BEGIN")
        third.ask(f"SELECT FROM duet.task WHERE id = {second} FOR NO KEY UPDATE")
        self.send(other, "requeue_v1", first)
        self.wait_for_lock(other)
        self.assertEqual(third.ask(f"SELECT id FROM duet.task WHERE id = {first} FOR NO KEY UPDATE NOWAIT"), [[str(first)]])
        third.ask("COMMIT")
        self.assertIn("queued", other.session.answer()[0][0])


class PutBack(RaceTest):
    def started(self, **task):
        self.one.submit(**task)
        claim, = self.one.claim()
        self.one.start(claim)
        return claim

    def test_what_was_told_to_have_begun_is_not_put_back(self):
        claim = self.started()
        self.assertEqual(self.one.end(claim, ok=False, flags=PUT_BACK, reason=None, message=None, started_ago=None, pid=None), FAILED)
        task = self.one.task(claim.id)
        self.assertEqual((task.attempts, task.error_reason), (1, LOST))
        self.assertEqual(self.one.kinds(claim.id), ["taskQueued", "taskStarted", "taskFailed"])
        self.assert_counts()

    def test_it_has_used_up_one_of_its_retries(self):
        claim = self.started(retries=1)
        self.assertEqual(self.one.end(claim, ok=False, flags=PUT_BACK, reason=None, message=None, retry=0, started_ago=None, pid=None), QUEUED)
        self.one.do("sweep_v1")
        again, = self.one.claim()
        self.assertEqual(again.attempt, 2)
        self.assertEqual(self.one.kinds(claim.id), ["taskQueued", "taskStarted", "taskQueued"])

    def test_what_never_began_goes_back_as_ever(self):
        self.one.submit()
        claim, = self.one.claim()
        self.assertEqual(self.one.end(claim, ok=False, flags=PUT_BACK, reason=None, message=None, started_ago=None, pid=None), QUEUED)
        self.assertEqual(self.one.claim()[0].attempt, 1)
        self.assertNotEqual(self.state(claim.id), RUNNING)


if __name__ == "__main__":
    run()
