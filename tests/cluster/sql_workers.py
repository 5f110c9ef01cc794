#!/usr/bin/env python3
"""What the queue's functions promise of workers: silence, loss, and a server that takes over: `sql_workers.py [unittest options]`.

No program is needed: daemons are played by connections."""

import json
import os
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import CANCELLED, COMPLETED, FAILED, LOST, QUEUED, RUNNING  # noqa: E402
from queue_fixture import QueueTest, run, setUpModule, tearDownModule  # noqa: E402, F401


class Workers(QueueTest):
    def silence(self, who=None):
        other = who or self.worker("watch", accepts=[], agents=[])
        return other, other.do_json("silence_v1", self.one.id, self.one.beat_number())

    def test_a_name_is_one_workers(self):
        message = self.assert_refused("DU003", lambda: self.worker("one"))
        self.assertEqual(json.loads(message), {"refused": "name-taken", "worker": self.one.id, "machine": "machine", "known": False})
        self.assert_refused("DU003", lambda: self.worker("one", worker=self.one.id, old=[str(uuid.uuid4())]))
        self.one.do("leave_v1")
        self.assertNotEqual(self.worker("one").id, self.one.id)

    def test_an_attach_whose_answer_was_lost_is_repeated(self):
        again = self.worker("one", worker=self.one.id, old=[self.one.incarnation])
        text = ["one", again.id, [self.one.incarnation], again.incarnation, "machine", 90000, 600000, [], ["claude"], ["claude"], 4, True, "0.2", 1]
        self.assertEqual(self.one.json("attach_v1", *text)["took_over"], True)

    def test_a_beat_moves_and_brings_everybodys(self):
        before = self.one.beat_number()
        answer = self.one.beat(waiting=True)
        self.assertEqual(answer["workers"][0]["beat"], before + 1)
        self.assertEqual((answer["shortestLease"], answer["agents"], answer["mine"]), (90000, ["claude"], []))
        self.assertEqual(self.one.one("SELECT waits FROM duet.waiter"), "t")

    def test_a_beat_brings_the_limits_that_somebody_can_keep(self):
        self.assertEqual(self.one.beat()["limits"], [])
        other = self.worker("other", labels=["limit=cpu", "gpu"])
        self.assertEqual(self.one.beat()["limits"], ["limit=cpu"])
        self.one.json("drain_v1", "other", True)
        self.assertEqual(self.one.beat()["limits"], [], other.id)

    def test_silence_does_nothing_if_the_beat_has_moved(self):
        other = self.worker("other")
        before = self.one.beat_number()
        self.one.beat()
        self.assertFalse(other.do_json("silence_v1", self.one.id, before)["silent"])
        self.assertFalse(other.do_json("lose_v1", self.one.id, self.one.beat_number())["lost"])  # not silent before
        self.assertFalse(other.do_json("silence_v1", other.id, other.beat_number())["silent"])  # nobody silences himself

    def test_a_silent_workers_retry_attempts_are_queued_anew_and_fail_ones_stay(self):
        retry, fail = self.one.submit(on_lost=1), self.one.submit(on_lost=0)
        self.one.start(*self.one.claim(2))
        other, answer = self.silence()
        self.assertEqual([entry["count"] for entry in answer["ready"]], [1])
        self.assertEqual((self.state(retry), self.one.task(retry).lost), (QUEUED, 1))
        task = self.one.task(fail)
        self.assertEqual((task.state, task.silent), (RUNNING, True))
        self.assertTrue(self.silence(other)[1]["silent"])  # once more changes nothing
        self.assertEqual(self.one.task(retry).lost, 1)
        self.assert_counts()

    def test_a_claim_of_a_fail_task_is_not_given_to_another_while_its_worker_may_be_running_it(self):
        id = self.one.submit(on_lost=0)
        self.one.claim()
        self.silence()
        self.assertEqual(self.worker("third").claim(), [])
        self.assertEqual(self.state(id), QUEUED)

    def test_an_end_counts_when_the_worker_is_back_in_time(self):
        self.one.submit(on_lost=0)
        claim, = self.one.claim()
        self.one.start(claim)
        self.silence()
        self.assertEqual(self.one.end(claim), COMPLETED)

    def test_three_lost_attempts_are_enough_and_retries_are_not_used_up(self):
        other = self.worker("watch", accepts=[], agents=[])
        id = self.one.submit(on_lost=1, retries=1)
        for lost in (1, 2, 3):
            self.one.start(*self.one.claim())
            self.silence(other)
            self.assertEqual(self.one.task(id).lost, lost)
            self.one.beat()
        task = self.one.task(id)
        self.assertEqual((task.state, task.error_reason, task.attempts), (FAILED, LOST, 3))
        self.assert_counts()

    def test_lost_for_good_and_an_end_that_comes_late(self):
        id = self.one.submit(on_lost=0)
        dependent = self.one.submit(after=[id])
        claim, = self.one.claim()
        self.one.start(claim)
        other, _ = self.silence()
        self.assertTrue(other.do_json("lose_v1", self.one.id, self.one.beat_number())["lost"])
        task = other.task(id)
        self.assertEqual((task.state, task.error_reason, other.task(dependent).state), (FAILED, LOST, FAILED))
        again = self.worker("one")  # the name is free again
        self.assertEqual(other.end(claim, code=9), "fenced")
        self.assertIsNone(other.task(id).late)  # that one never ran it
        self.assertEqual(again.end(claim, code=7), "fenced")
        self.assertEqual((other.task(id).state, json.loads(other.task(id).late)["exitCode"]), (FAILED, 7))
        self.assert_counts()

    def test_late_is_kept_for_the_worker_that_ran_it(self):
        self.one.submit(on_lost=1)
        other = self.worker("watch", accepts=[], agents=[])
        for _ in range(3):
            claim, = self.one.claim()
            self.one.start(claim)
            self.silence(other)
            self.one.beat()
        self.assertEqual(self.one.end(claim, code=7, ok=False), "fenced")
        task = self.one.task(claim.id)
        self.assertEqual((task.state, task.error_reason), (FAILED, LOST))
        late = json.loads(task.late)
        self.assertEqual((late["exitCode"], late["signal"], list(late)), (7, None, ["exitCode", "signal", "completedAt"]))

    def test_who_leaves_gives_back_what_never_started(self):
        first, second = self.one.submit(), self.one.submit()
        started, _ = self.one.claim(2)
        self.one.start(started)
        other = self.worker("other")
        self.one.do("leave_v1")
        claim, = other.claim(9)
        self.assertEqual((claim.id, claim.attempt), (second, 1))
        self.assertEqual((other.task(first).state, other.task(first).error_reason), (FAILED, LOST))

    def test_a_worker_that_beats_again_is_live_again_and_it_is_told(self):
        self.silence()
        self.one.beat()
        self.assertEqual([event.params["state"] for event in self.one.events() if event.params.get("worker") == "one"], ["live", "silent", "live"])

    def test_who_has_filled_its_slots_is_not_woken(self):
        full, free = self.worker("full", slots=1), self.worker("free", slots=1)
        for each in (full, free):
            each.do("wait_v1", True)
        self.one.submit()
        full.claim()
        row = self.one.submit_all({})[0]
        self.assertEqual(self.one.do("wake_v1", [row.lane], [1]), [["1"]])
        self.assertEqual([row[0] for row in self.one.ask("SELECT name FROM duet.worker JOIN duet.waiter ON worker = id WHERE waits")], ["full"])

    def test_wake_ups_go_to_those_that_wait_and_serve_the_lane(self):
        gpu = self.worker("gpu", labels=["gpu"])
        others = [self.worker(f"w{n}") for n in range(5)]
        for worker in (gpu, *others):
            worker.do("wait_v1", True)
            worker.ask(f"LISTEN duet_w{worker.id}")
        row = self.one.submit_all({"needs": "gpu"})[0]
        self.assertEqual(self.one.do("wake_v1", [row.lane], [1]), [["1"]])
        self.assertEqual(self.one.do("wake_v1", [row.lane], [1]), [["0"]])
        row = self.one.submit_all({})[0]
        self.assertEqual(self.one.do("wake_v1", [row.lane], [1]), [["2"]])
        self.assertEqual(self.one.do("wake_v1", [row.lane], [9]), [["3"]])
        self.assertEqual(self.one.do("wake_v1", [], []), [["0"]])

    def test_drain_and_forget(self):
        self.assertEqual([self.one.json("drain_v1", name, True)["outcome"] for name in ("one", "one", "who")], ["changed", "same", "unknown"])
        self.assertTrue(self.one.beat()["draining"])
        self.assertEqual(self.one.json("forget_v1", "one")["outcome"], "live")
        other, _ = self.silence()
        self.assertEqual(other.json("forget_v1", "one")["outcome"], "changed")
        self.assert_refused("DU001", self.one.beat)

    def test_no_error_shows_the_secret_of_a_worker(self):
        self.worker("other")
        self.assertEqual(self.one.json("drain_v1", "other", None)["outcome"], "invalid")

    def test_a_drain_lasts_until_it_is_ended(self):
        other = self.worker("other")
        self.one.json("drain_v1", "one", True)
        self.one.do("leave_v1")
        other.ask("UPDATE duet.worker SET gone_at = gone_at - interval '30 days' WHERE state = 3 RETURNING id")
        other.do("sweep_v1")
        for _ in range(2):
            again = self.worker("one")
            self.assertEqual(again.one(f"SELECT state FROM duet.worker WHERE id = {again.id}"), "1")
            self.assertTrue(again.beat()["draining"])
            again.do("leave_v1")
        self.assertEqual([other.json("drain_v1", "one", drains)["outcome"] for drains in (True, False, False)], ["unknown", "changed", "unknown"])
        again = self.worker("one")
        self.assertFalse(again.beat()["draining"])
        other.json("drain_v1", "one", True)
        other.json("forget_v1", "one", again.beat_number())
        self.assertFalse(self.worker("one").beat()["draining"])

    def test_a_worker_whose_beat_was_watched_is_forgotten_though_nobody_found_it_silent(self):
        told = self.one.json("forget_v1", "one")
        self.assertEqual((told["outcome"], told["lease"]), ("live", 90000))
        self.one.beat()
        self.assertEqual(self.one.json("forget_v1", "one", told["beat"])["outcome"], "live")  # it has moved
        self.assertEqual(self.one.json("forget_v1", "one", told["beat"] + 1)["outcome"], "changed")
        self.assert_refused("DU001", self.one.beat)

    def test_what_a_worker_says_of_itself_is_checked_also_in_a_beat(self):
        for odd in ({"lease": 0}, {"lease": 1}, {"lease": 29999}, {"lease": None}, {"lease": 9000000000000, "lost_after": 9000000000000},
                    {"lease": 50000, "lost_after": 40000}, {"lease": 50000, "lost_after": 8 * 86400000}, {"lost_after": None}):
            for run in (True, False):
                self.assertIn("lease", self.assert_refused("DU003", lambda: self.worker("odd", run=run, **odd)))
            if None in odd.values():
                continue  # a beat says with it that nothing has changed
            self.assertIn("lease", self.assert_refused("DU003", lambda: self.one.do(
                "beat_v1", None, 4, [], ["claude"], ["claude"], odd["lease"], odd.get("lost_after", 600000))))
        for labels, accepts, agents in (([None], [], []), ([], [None], []), ([], [], ["x", None])):
            self.assertIn("null", self.assert_refused("DU003", lambda: self.worker("odd", labels=labels, accepts=accepts, agents=agents)))
            self.assertIn("null", self.assert_refused("DU003", lambda: self.one.do("beat_v1", None, 4, labels, accepts, agents, 90000, 600000)))

    def test_no_worker_has_the_name_of_another_as_a_label(self):
        for labels in (["name=one"], ["gpu", "name=other"], [65 * "x"], [str(n) for n in range(101)]):
            self.assertIn("labels", self.assert_refused("DU003", lambda: self.worker("odd", labels=labels)))
            self.assertIn("labels", self.assert_refused("DU003", lambda: self.one.do("beat_v1", None, 4, labels, ["claude"], ["claude"], 90000, 600000)))
        self.assertIn("slots", self.assert_refused("DU003", lambda: self.worker("odd", slots=-1)))

    def test_a_beat_that_changes_the_lease_alone_keeps_it_below_what_the_worker_is_lost_after(self):
        self.assert_refused("DU003", lambda: self.one.do("beat_v1", None, 4, [], ["claude"], ["claude"], 3600000, None))

    def test_agents_are_known_from_those_who_run_tasks(self):
        self.worker("other", run=False, accepts=("odd",), agents=("odd",))
        self.assertEqual(self.one.beat()["agents"], ["claude"])

    def test_settings_of_the_queue(self):
        outcomes = [self.one.json("set_v1", *words)["outcome"] for words in (("keep_days", "7"), ("keep_days", "-1"), ("project", "x"), ("keep_days", None))]
        self.assertEqual(outcomes, ["changed", "invalid", "unknown", "invalid"])
        self.assertEqual(self.one.json("hello_v1")["settings"]["keep_days"], 7)


class Failover(QueueTest):
    """What the functions do on a new timeline, which is played by an older one in the row."""

    def renew(self):
        self.age()
        return self.one.json("renew_v1", 0)

    def age(self):
        self.one.ask("UPDATE duet.meta SET timeline = 0 RETURNING timeline")
        self.one.ask("UPDATE duet.worker SET told_timeline = 0 RETURNING id")

    def test_numbers_are_passed_over_and_the_epoch_is_new(self):
        self.one.submit()
        self.one.number()
        before = self.one.json("hello_v1")
        renewed = self.renew()
        self.assertTrue(renewed["renewed"])
        self.assertNotEqual(renewed["epoch"], before["epoch"])
        self.assertEqual(renewed["nextSeq"], before["nextSeq"] + 1000000)
        self.assertGreater(self.one.submit(), 1000000)
        self.assertFalse(self.one.json("renew_v1", 1)["renewed"])
        self.assertGreater(self.one.events(before["nextSeq"])[0].seq, 1000000)
        self.assertGreater(self.one.json("read_events_state_v1")["oldest"], 1000000)

    def test_a_server_that_never_heard_of_the_one_before_passes_over_its_numbers_too(self):
        first = self.one.submit()
        self.one.ask("UPDATE duet.meta SET timeline = -1 RETURNING timeline")  # two have taken over since
        self.assertGreater(self.one.json("renew_v1", 0)["nextSeq"], 2000000)
        self.assertGreater(self.one.submit(), first + 2000000)

    def test_an_older_server_is_refused(self):
        self.assertIn("timeline", self.assert_refused("DU002", self.one.json, "renew_v1", 7))
        self.one.ask("UPDATE duet.meta SET timeline = 9 RETURNING timeline")
        self.assertIn("timeline", self.assert_refused("DU002", lambda: self.worker("two")))

    def test_nobody_claims_before_all_have_told(self):
        other = self.worker("other")
        self.one.submit()
        self.assertTrue(self.renew()["recovering"])
        self.assertTrue(self.one.do_json("recover_v1", "[]")["recovering"])
        self.assertTrue(self.one.beat()["recovering"])
        self.assertEqual(self.one.claim(), [])
        self.assertTrue(self.one.json("read_explain_v1", 1)["recovering"])
        self.assertFalse(other.do_json("recover_v1", None)["recovering"])
        self.assertFalse(self.one.json("read_explain_v1", 1)["recovering"])
        self.assertEqual(len(self.one.claim()), 1)

    def test_who_runs_no_tasks_is_not_waited_for(self):
        client = self.worker("client", run=False, lease=3600000, lost_after=3600000)
        self.one.submit()
        self.renew()
        seconds = int(self.one.one("SELECT extract(epoch FROM recovering_until - now())::integer FROM duet.meta"))
        self.assertTrue(60 < seconds < 100, seconds)  # the lease of the one that runs some
        self.assertTrue(client.do_json("recover_v1", "[]")["recovering"])
        client.do_json("leave_v1")
        self.worker("client", run=False)
        self.one.ask("UPDATE duet.worker SET told_timeline = 0 WHERE name = 'client' RETURNING id")
        self.assertFalse(self.one.do_json("recover_v1", "[]")["recovering"])
        self.assertEqual(len(self.one.claim()), 1)

    def test_a_lease_is_enough(self):
        self.worker("dead")
        self.one.ask("UPDATE duet.worker SET lease_ms = 1 RETURNING id")
        self.one.submit()
        self.renew()
        self.one.do_json("recover_v1", "[]")
        server.eventually("the lease is over", lambda: self.one.claim())

    def test_behind_a_pooler_a_server_is_greeted_before_it_is_told_anything(self):
        self.one.submit()
        claim, = self.one.claim()
        self.age()  # the connection has not noticed
        for call in (self.one.submit, self.one.number, lambda: self.one.do("cancel_v1", claim.id), lambda: self.one.do_json("recover_v1", "[]")):
            self.assertIn("renew", self.assert_refused("DU002", call))
        untold = (self.one.claim, self.one.beat, lambda: self.one.end(claim))
        for call in untold:
            self.assertIn("untold", self.assert_refused("DU004", call))
        self.one.json("renew_v1", 0)
        for call in untold:
            self.assertIn("untold", self.assert_refused("DU004", call))
        self.one.do_json("recover_v1", json.dumps([{"task": claim.id, "fence": claim.fence, "attempt": 1}]))
        self.assertEqual(self.one.end(claim), COMPLETED)

    def test_a_report_of_before_the_failover_that_comes_behind_what_was_told_is_refused(self):
        self.one.submit()
        claim, = self.one.claim()
        self.one.start(claim)
        self.renew()
        told = [{"task": claim.id, "fence": claim.fence, "attempt": 1}]
        self.assertEqual(self.one.do_json("recover_v1", json.dumps(told))["output"], [[claim.fence, 0]])
        ends = [{"task": claim.id, "fence": claim.fence}]
        late = [{"task": claim.id, "fence": claim.fence, "attempt": 1, "offset": 12, "total": 12, "dropped": [], "last": True, "bytes": ""}]
        self.assertIn("untold", self.assert_refused("DU004", lambda: self.one.report(ends, output=late, told=0)))
        self.assertEqual(self.state(claim.id), RUNNING)
        self.assertEqual(self.one.report(ends, told=1)[0].what, "end")

    def test_what_was_restarted_since_a_failover_is_no_attempt_of_before(self):
        id = self.one.submit()
        claim = self.one.run_one(ok=False)
        forgotten = int(self.one.one("SELECT nextval('duet.fence')"))  # of another attempt
        self.renew()
        self.assertEqual(self.one.do_json("requeue_v1", id)["outcome"], "queued")
        told = [{"task": id, "fence": claim.fence, "attempt": 1}, {"task": id, "fence": forgotten, "attempt": 2}]
        self.assertEqual(self.one.do_json("recover_v1", json.dumps(told))["fenced"], [claim.fence, forgotten])
        self.assertEqual([again.id for again in self.one.claim()], [id])

    def test_without_a_failover_nothing_is_told_again(self):
        other = self.worker("other")
        self.one.submit()
        claim, = self.one.claim()
        other.submit()
        later, = other.claim()
        stolen = [{"task": claim.id, "fence": later.fence, "attempt": 1}]
        planted = [{"task": 1, "fence": 1, "attempt": 1, "agent": "shell", "group": "default", "submitter": "one", "body": "{}"}]
        self.one.ask("DELETE FROM duet.task WHERE id = 99 RETURNING id")
        for told in (stolen, [{**planted[0], "task": 99}]):
            self.assertEqual(other.do_json("recover_v1", json.dumps(told))["fenced"], [told[0]["fence"]])
        self.assertEqual(self.one.end(claim), COMPLETED)

    def test_what_was_claimed_since_a_failover_is_nobody_elses(self):
        self.renew()
        other = self.worker("other")
        for worker in (self.one, other):
            worker.do_json("recover_v1", "[]")
        self.one.submit(), self.one.submit(), self.one.submit()
        claim, = self.one.claim()
        later, = other.claim()
        gone = {"task": 9, "attempt": 1, "agent": "shell", "group": "default", "body": "{}"}
        for told in ({"task": claim.id, "fence": later.fence, "attempt": 1}, {**gone, "fence": later.fence},
                     {"task": 1000003, "fence": None, "attempt": 1}, {**gone, "fence": None}):
            self.assertEqual(other.do_json("recover_v1", json.dumps([told]))["fenced"], [told["fence"]])
        self.assertEqual(self.one.end(claim), COMPLETED)

    def test_after_a_failover_nothing_is_put_into_lanes_of_others(self):
        other = self.worker("other")
        self.renew()
        for task, submitter in ((5, "one"), (2000000000, "")):
            told = [{"task": task, "fence": 1, "attempt": 1, "agent": "shell", "group": "default", "submitter": submitter, "body": "{}"}]
            self.assertEqual(other.do_json("recover_v1", json.dumps(told))["fenced"], [1])
        told = [{"task": 5, "fence": 1, "attempt": 1, "agent": "shell", "group": "default", "submitter": "other", "body": "{}"}]
        self.assertEqual(other.do_json("recover_v1", json.dumps(told))["fenced"], [])

    def test_what_runs_and_what_ended_is_told_again(self):
        claimed, gone = self.one.submit(retries=2), self.one.submit()
        claims = self.one.claim(2)
        # As if the new primary had neither of the claims, nor the second task at all.
        self.one.ask("UPDATE duet.task SET state = 1, attempts = 0, fence = NULL, worker = NULL RETURNING id")
        self.one.ask(f"WITH a AS (DELETE FROM duet.task WHERE id = {gone} RETURNING id), b AS (DELETE FROM duet.request WHERE task = {gone} RETURNING task) SELECT 1")
        self.renew()
        running = [{"task": claims[0].id, "fence": claims[0].fence, "attempt": 1, "pid": 5, "ago": 3}]
        running.append({"task": gone, "fence": claims[1].fence, "attempt": 1, "agent": "claude", "group": "default", "body": "{}", "prompt": '"p"'})
        for _ in range(2):
            self.assertEqual(self.one.do_json("recover_v1", json.dumps(running))["fenced"], [])
        self.assertEqual((self.state(claimed), self.one.task(claimed).pid), (RUNNING, 5))
        self.assertEqual([self.one.end(claim) for claim in reversed(claims)], [COMPLETED, COMPLETED])
        self.assertEqual(self.one.task(gone).attempts, 1)

    def test_counts_that_nobody_can_add_to_are_not_taken_over(self):
        id = self.one.submit(retries=1)
        claim, = self.one.claim()
        self.one.ask("UPDATE duet.task SET state = 1, attempts = 0, fence = NULL, worker = NULL RETURNING id")
        self.renew()
        for told in ({"attempt": 2 ** 31 - 1}, {"attempt": -1}, {"attempt": 1, "spared": 2 ** 31 - 1}, {"attempt": 1, "spared": -2}, {"attempt": 2 ** 31 - 1, "task": id + 9,
                     "agent": "claude", "group": "default", "body": "{}"}):
            told = json.dumps([{"task": id, "fence": claim.fence, **told}])
            self.assertEqual(self.one.do_json("recover_v1", told)["fenced"], [claim.fence])
        self.assertEqual([claim.attempt for claim in self.one.claim()], [1])

    def test_what_has_begun_no_longer_waits_for_what_it_came_after(self):
        before = self.one.submit()
        self.one.claim()
        id = self.one.submit(after=[before], retries=1)
        self.renew()  # the end of the first one and the claim of the other were lost
        self.assertEqual(self.one.do_json("recover_v1", json.dumps([{"task": id, "fence": 1, "attempt": 1}]))["fenced"], [])
        again = self.one.ask(f"SELECT state, fence, open_after FROM duet.task WHERE id = {id}")
        self.assertEqual([list(row) for row in again], [["2", "1", "0"]])

    def test_a_cancel_that_was_lost_is_told_again(self):
        id = self.one.submit(retries=1)
        claim, = self.one.claim()
        self.one.ask("UPDATE duet.task SET state = 1, attempts = 0, fence = NULL, worker = NULL RETURNING id")
        self.renew()
        self.one.do_json("recover_v1", json.dumps([{"task": id, "fence": claim.fence, "attempt": 1, "cancelling": True}]))
        self.assertEqual(self.one.end(claim, ok=False, retry=0, flags=2), CANCELLED)

    def test_a_worker_that_the_server_does_not_know_any_more_has_to_tell_as_well(self):
        self.renew()
        lost = self.one.json("attach_v1", "lost", 77, [str(uuid.uuid4())], str(uuid.uuid4()), "m", 90000, 600000, [], ["claude"], ["claude"], 4, True, "1", 1)
        self.assertEqual((lost["recovering"], lost["took_over"]), (True, False))

    def test_a_task_that_was_lost_comes_back_whole(self):
        gpu = self.worker("gpu", labels=["gpu"], accepts=["codex"], agents=["codex", "shell"])
        whole = {"agent": "shell", "group": "g", "needs": "gpu", "own": True, "key": "K", "on_lost": 1, "env": '{"A":"b"}'}
        id = gpu.submit(**whole, prompt='"do it"', labels='{"a":"b"}', metadata='{"key":"K"}', body='{"prompt":"do it"}')
        claim, = gpu.claim()
        self.assertEqual((claim.needs, claim.submitter), ("gpu", "gpu"))
        before = gpu.task(id)
        for table, column in (("task", "id"), ("request", "task")):
            self.one.ask(f"DELETE FROM duet.{table} WHERE {column} = {id} RETURNING {column}")
        self.renew()
        told = {"task": id, "fence": claim.fence, "attempt": 1, "pid": 5, "ago": 3, "agent": claim.agent, "group": claim.grp, "needs": claim.needs,
                "submitter": claim.submitter, "body": claim.body, "hasEnv": True, "env": claim.env, "onLost": claim.on_lost, "key": "K", "prompt": '"do it"',
                "labels": '{"a":"b"}', "metadata": '{"key":"K"}'}
        self.assertEqual(gpu.do_json("recover_v1", json.dumps([told]))["fenced"], [])
        after = gpu.task(id)
        for name in ("prompt", "agent", "grp", "needs", "labels", "metadata", "on_lost", "attempts"):
            self.assertEqual(after[name], before[name])
        self.one.do_json("recover_v1", "[]")
        again, = self.one.submit_all({**whole, "own": False})
        self.assertEqual((again.id, again.fresh), (id, False))  # its key is known
        self.one.do_json("silence_v1", gpu.id, gpu.beat_number())
        self.assertEqual(self.worker("other", accepts=["shell"]).claim(9), [])  # it still needs the label
        gpu.beat()
        again, = gpu.claim(9)
        self.assertEqual((again.id, again.attempt, again.env, again.lane), (id, 2, claim.env, claim.lane))

    def test_who_has_not_told_yet_hears_so_when_it_comes_back(self):
        def back(worker):
            answer = self.one.json("attach_v1", worker.name, worker.id, [worker.incarnation], worker.incarnation, "m", 90000, 600000, [], ["claude"],
                                   ["claude"], 4, True, "1", 1)
            return answer["recovering"]
        other = self.worker("other")
        self.assertFalse(back(self.one))
        self.renew()
        self.assertTrue(back(self.one))
        self.one.do_json("recover_v1", "[]")
        self.assertFalse(back(self.one))
        self.assertTrue(back(other))

    def test_how_far_output_is_here_is_answered(self):
        for _ in range(2):
            self.one.submit()
        claims = self.one.claim(2)
        self.one.start(*claims)
        self.one.report(output=[{"task": claims[0].id, "fence": claims[0].fence, "attempt": 1, "offset": offset, "bytes": "YWJj", "marks": "", "total": 9,
                                 "dropped": [], "last": False} for offset in (0, 3)])
        self.renew()
        running = [{"task": claim.id, "fence": claim.fence, "attempt": 1} for claim in claims]
        self.assertEqual(self.one.do_json("recover_v1", json.dumps(running))["output"], [[claims[0].fence, 6], [claims[1].fence, 0]])

    def test_attempts_that_did_not_count_do_not_count_afterwards(self):
        known, gone = self.one.submit(retries=1), self.one.submit(retries=1)
        claims = self.one.claim(2)
        self.one.ask("UPDATE duet.task SET state = 1, attempts = 0, fence = NULL, worker = NULL RETURNING id")
        self.one.ask(f"WITH a AS (DELETE FROM duet.task WHERE id = {gone} RETURNING id), b AS (DELETE FROM duet.request WHERE task = {gone} RETURNING task) SELECT 1")
        self.renew()
        running = [{"task": claim.id, "fence": claim.fence, "attempt": 3, "spared": 2, "agent": "claude", "group": "default", "body": "{}", "retries": 1}
                   for claim in claims]
        self.assertEqual(self.one.do_json("recover_v1", json.dumps(running))["fenced"], [])
        for claim in claims:
            self.assertEqual((self.one.task(claim.id).attempts, self.one.task(claim.id).spared), (3, 2))
            self.assertEqual(self.one.end(claim, ok=False, retry=0), QUEUED)
        self.assertEqual([self.state(id) for id in (known, gone)], [QUEUED, QUEUED])


if __name__ == "__main__":
    run()
