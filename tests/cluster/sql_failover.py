#!/usr/bin/env python3
"""What the queue's functions do when a standby takes over, and of a copy: `sql_failover.py [unittest options]`."""

import json
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import COMPLETED, Caller, Worker  # noqa: E402


class Failover(unittest.TestCase):
    def setUp(self):
        self.first = self.enterServer(server.Server())
        self.first.make_database("work")
        server.install(self.first, "work")
        self.open = []
        self.one = self.worker(self.first, "one")

    def enterServer(self, one):
        one.__enter__()
        self.addCleanup(one.__exit__)
        return one

    def worker(self, where, name, **options):
        worker = Worker(where, "work", name, **options)
        self.addCleanup(worker.close)
        return worker

    def again(self, where, worker):
        """The same daemon, at another server."""
        worker.close()
        return self.worker(where, worker.name, worker=worker.id, old=[worker.incarnation])

    def test_an_asynchronous_standby_that_lacks_the_last_moments(self):
        second = self.first.standby()
        self.one.submit()
        server.eventually("the first task is there", lambda: second.sql("SELECT count(*) FROM duet.task", "work") == [["1"]])
        second.sql("SELECT pg_wal_replay_pause()")  # what follows is on the first one alone
        server.eventually("it has paused", lambda: second.sql("SELECT pg_get_wal_replay_pause_state()") == [["paused"]])
        second.stop("immediate")
        lost = self.one.submit(body="lost")
        claims = self.one.claim(2)
        self.one.start(*claims)
        self.first.kill()
        second.start()
        second.promote()
        with self.assertRaises(server.SqlError) as caught:
            self.again(second, self.one)
        self.assertEqual((caught.exception.code, caught.exception.message[:5]), ("DU002", "renew"))
        renewed = json.loads(second.sql("SELECT duet.renew_v1(1)", "work")[0][0])
        self.assertEqual((renewed["renewed"], renewed["timeline"], renewed["recovering"]), (True, 2, True))
        one = self.again(second, self.one)
        with self.assertRaises(server.SqlError) as caught:
            one.claim()
        self.assertEqual(caught.exception.code, "DU004")  # not before it has told
        with self.assertRaises(server.SqlError) as caught:
            one.do("leave_v1")  # what has run would be given back
        self.assertEqual(caught.exception.code, "DU004")
        fresh = one.submit()
        self.assertGreater(fresh, 1000000)
        told = [{"task": claim.id, "fence": claim.fence, "attempt": 1, "pid": 5, "ago": 9, "agent": "claude", "group": "default", "body": claim.body}
                for claim in claims]
        self.assertEqual(one.do_json("recover_v1", json.dumps(told)), {"fenced": [], "output": [[claim.fence, 0] for claim in claims], "recovering": False})
        self.assertEqual([one.task(claim.id).pid for claim in claims], [5, 5])
        self.assertEqual(json.loads(one.call("read_request_v1", lost)[0][0])["body"], "lost")
        again, = one.claim(9)
        self.assertEqual((again.id, again.fence > 1000000), (fresh, True))
        self.assertEqual([one.end(claim) for claim in claims], [COMPLETED, COMPLETED])
        seqs = [event.seq for event in one.events(one.json("read_events_state_v1")["oldest"] - 1)]
        self.assertEqual(seqs, list(range(seqs[0], seqs[0] + len(seqs))))
        self.assertGreater(seqs[0], 1000000)

    def test_the_old_primary_is_refused_by_who_has_seen_the_new_one(self):
        second = self.first.standby(synchronous=True)
        id = self.one.submit()
        self.first.kill()
        second.promote()
        second.set(synchronous_standby_names="still_missing")
        second.sql("SELECT duet.renew_v1(1)", "work")  # waits for no standby: nobody could come in
        one = self.again(second, self.one)
        one.do("recover_v1", "[]")
        second.set(synchronous_standby_names="")
        self.assertEqual(second.sql("SELECT count(*) FROM duet.task", "work"), [["1"]])
        self.assertEqual(one.task(id).id, id)
        self.first.start()
        with self.assertRaises(server.SqlError) as caught:
            self.first.sql("SELECT duet.renew_v1(2)", "work")
        self.assertEqual((caught.exception.code, caught.exception.message[:8]), ("DU002", "timeline"))

    def test_beats_and_wake_ups_wait_for_no_standby(self):
        second = self.first.standby(synchronous=True)
        other = self.worker(self.first, "other")
        self.one.submit()
        claim, = self.one.claim()
        third = self.worker(self.first, "third")
        second.stop()
        self.one.session.send(self.one.submit_text([{"key": "new"}]))
        other.session.send(f"SELECT * FROM duet.claim_v1({other.id}, '{other.incarnation}', 1, '{{}}', '{{}}', NULL)")
        caller = Caller(self.first, "work")
        self.addCleanup(caller.close)
        for worker in (self.one, other, third):
            caller.json("beat_v1", worker.id, worker.incarnation, True, None, None, None, None, None, None)
        for worker in (self.one, other):
            caller.call("wait_v1", worker.id, worker.incarnation, False)
        self.assertEqual(caller.call("wake_v1", self.one.id, self.one.incarnation, [claim.lane], [1]), [["1"]])
        caller.number()
        self.assertEqual(caller.json("drain_v1", "third", True)["outcome"], "changed")
        self.assertEqual(caller.json("set_v1", "keep_days", "5")["outcome"], "changed")
        caller.json("beat_v1", third.id, third.incarnation, True, None, None, None, None, None, None)
        second.start()
        self.assertEqual(self.one.session.answer()[0][3], "t")
        other.session.answer()

    def test_what_is_told_again_waits_for_the_standby_too(self):
        second = self.first.standby(synchronous=True)
        self.one.submit(), self.one.submit(retries=1), self.one.submit()
        ended, failed, started = self.one.claim(3)
        self.one.end(ended), self.one.end(failed, ok=False, retry=0), self.one.start(started)
        second.stop()
        self.one.ask("SET client_min_messages = error")  # who is let go by a cancel hears a warning
        pid = self.one.one("SELECT pg_backend_pid()")
        again = [{"task": ended.id, "fence": ended.fence}], [{"task": failed.id, "fence": failed.fence, "ok": False, "retry": 0}]
        calls = [lambda: self.one.report(again[0]), lambda: self.one.report(again[1]), lambda: self.one.start(started)]
        for call in calls:
            telling = threading.Thread(target=call)
            telling.start()
            server.eventually("it waits for the standby", lambda: self.first.sql(f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}") == [["SyncRep"]], 10)
            self.first.sql(f"SELECT pg_cancel_backend({pid})")
            telling.join()
        second.start()
        server.eventually("it is in step", lambda: self.first.sql("SELECT state FROM pg_stat_replication") == [["streaming"]])
        self.assertEqual([row.what for call in calls for row in call()], ["end", "end", "start"])

    def test_a_standby_is_read_and_says_what_it_is(self):
        second = self.first.standby()
        hello = json.loads(second.sql("SELECT duet.hello_v1()", "work")[0][0])
        self.assertEqual((hello["recovery"], hello["serverTimeline"]), (True, None))

    def test_a_restored_dump_is_refused_until_it_is_adopted(self):
        self.one.submit()
        text = subprocess.run([f"{server.binaries()}/pg_dump", "-d", self.first.conninfo("work")], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
        other = self.enterServer(server.Server())
        other.make_database("work")
        other.script("".join(f"CREATE ROLE duet_{name};" for name in ("owner", "worker", "client", "watcher", "admin")))
        other.script(text, "work")
        with self.assertRaises(server.SqlError) as caught:
            self.worker(other, "two")
        self.assertEqual((caught.exception.code, caught.exception.message[:5]), ("DU002", "adopt"))
        other.sql("SELECT duet.adopt_v1('run')", "work")
        two = self.worker(other, "two")
        self.assertEqual(two.claim()[0].id, 1)
        self.assertGreater(two.submit(), 1000000)

    def test_a_copy_beside_the_original_is_refused_until_it_is_adopted(self):
        id = self.one.submit()
        self.one.close()
        self.first.sql("CREATE DATABASE copied TEMPLATE work")
        self.first.make_database("restored")
        dump = [f"{server.binaries()}/pg_dump", "-d", self.first.conninfo("work")]
        text = subprocess.run(dump, stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
        self.first.script(text, "restored")
        self.first.make_database("over")  # a dump that comes back to where it was taken
        self.first.script(text, "over")
        self.first.sql("SELECT duet.adopt_v1('run')", "over")
        again = subprocess.run([*dump[:-1], self.first.conninfo("over")], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
        self.first.script("DROP SCHEMA duet CASCADE;" + again, "over")
        for database in ("copied", "restored", "over"):
            with self.subTest(database):
                for call in (lambda: Worker(self.first, database, "two"), lambda: self.first.sql("SELECT duet.renew_v1(1)", database)):
                    with self.assertRaises(server.SqlError) as caught:
                        call()
                    self.assertEqual((caught.exception.code, caught.exception.message[:5]), ("DU002", "adopt"))
                self.assertFalse(json.loads(self.first.sql("SELECT duet.hello_v1()", database)[0][0])["adopted"])
                self.assertEqual(self.first.sql("SELECT duet.adopt_v1('run')", database), [['{"outcome":"adopted"}']])
                self.assertEqual(self.first.sql("SELECT duet.adopt_v1('run')", database), [['{"outcome":"same"}']])
                two = Worker(self.first, database, "two")
                self.addCleanup(two.close)
                self.assertEqual(two.claim()[0].id, id)
        self.again(self.first, self.one)


if __name__ == "__main__":
    server.skip_unless_installed()
    unittest.main(verbosity=2)
