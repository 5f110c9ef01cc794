#!/usr/bin/env python3
"""How claim, report, beat and the reads reach their rows: by index, whatever the statistics say.

    sql_plans.py [--tasks N] [unittest options]      N tasks in the large queue, 100,000 unless given

The plans are those that auto_explain saw inside the functions. Of task, request, event and output nothing may be read in a row,
sorted or hashed; a sort of a few rows that were found by index (under a LIMIT, or looked up one by one) is none."""

import base64
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
from queue_calls import CANCELLED, COMPLETED, FAILED, Worker  # noqa: E402

LARGE = {"task", "request", "event", "output"}
SERVER = None
TASKS = 100_000
EXPLAIN = ("LOAD 'auto_explain'", "SET auto_explain.log_min_duration = 0", "SET auto_explain.log_nested_statements = on",
           "SET auto_explain.log_format = json", "SET auto_explain.log_timing = off")

FILL = """
INSERT INTO duet.lane(agent, grp, needs, agent_json) SELECT 'claude', 'g' || n, '{{}}', '"claude"' FROM generate_series(1, 5) n;
INSERT INTO duet.request(task, ident, submitted_by, prompt, metadata, body)
SELECT nextval('duet.task_id'), gen_random_uuid(), 'x', '"p"', '{{}}', '{{}}' FROM generate_series(1, {many});
INSERT INTO duet.task(id, rank, created_at, lane, retries, state, on_lost, completed_at, due, worker, fence, stored, announced)
SELECT n, -1 - n % 3, now() - interval '1 hour', 1 + n % 5, 0, s.state, 0, CASE WHEN s.state >= 3 THEN now() - n * interval '1 second' END,
  CASE WHEN s.state = 0 THEN now() + interval '1 day' END, CASE WHEN s.state >= 2 THEN 1 + n % 3 END, n, n % 2, s.state = 2
FROM generate_series(1, {many}) n CROSS JOIN LATERAL (
  SELECT CASE WHEN n % 10 < 5 THEN 1 WHEN n % 10 = 5 AND n % 100 = 5 THEN 0 WHEN n % 1000 = 6 THEN 2 WHEN n % 20 = 7 THEN 4 ELSE 3 END AS state) s;
INSERT INTO duet.event(id, seq, task, at, kind, params)
SELECT nextval('duet.event_id'), n, n, now(), 'taskQueued', '{{}}' FROM generate_series(1, {many}) n;
INSERT INTO duet.output(task, attempt, start, bytes) SELECT n, 1, 0, 'x' FROM generate_series(1, {many}) n WHERE n % 10 = 3;
INSERT INTO duet.output_state(task, attempt, total) SELECT n, 1, 1 FROM generate_series(1, {many}) n WHERE n % 10 = 3;
UPDATE duet.meta SET queue_capacity = 100000000, next_seq = {many} + 1, queued = {many} / 2, completed = {many} / 3, failed = {many} / 20;
"""


def plans_in(log):
    """(statement, plan) of each that auto_explain wrote down."""
    log = log.replace("\n\t", "\n")
    found, at = [], 0
    reader = json.JSONDecoder()
    while True:
        at = log.find("plan:\n", at)
        if at < 0:
            return found
        plan, at = reader.raw_decode(log, log.index("{", at))
        found.append((plan["Query Text"], plan["Plan"]))


def nodes(plan, parents=()):
    yield plan, parents
    for child in plan.get("Plans", []):
        yield from nodes(child, (*parents, plan))


def drives(plan):
    """The scans of large tables whose rows go through this node as they come: not looked up one by one, nor limited."""
    is_list = "= ANY" in plan.get("Index Cond", "") and plan.get("Index Name") == "task_pkey"  # ids that were found before
    if plan["Node Type"] == "Limit" or is_list:
        return
    if plan.get("Relation Name") in LARGE and "Scan" in plan["Node Type"]:
        yield plan["Relation Name"]
    for child in plan.get("Plans", []):
        if child.get("Parent Relationship") in ("Outer", "Member", "Subquery"):
            yield from drives(child)


def faults_of(plan):
    for node, _ in nodes(plan):
        kind = node["Node Type"]
        if node.get("Relation Name") in LARGE and kind in ("Seq Scan", "Bitmap Heap Scan", "Sample Scan", "Parallel Seq Scan"):
            yield f"{kind} of {node['Relation Name']}"
        if kind in ("Sort", "Incremental Sort", "Hash", "Hash Join", "Merge Join", "WindowAgg") or node.get("Strategy") == "Hashed":
            for name in drives(node):
                yield f"{kind} of {name}"
        # An index that is walked from end to end is no better than the table, unless it is one of those for a few rows.
        if kind in ("Index Scan", "Index Only Scan") and node.get("Relation Name") in LARGE and "Index Cond" not in node \
                and node["Index Name"] in ("task_pkey", "request_pkey", "request_ident", "task_end", "event_seq", "output_pkey"):
            if not any(parent["Node Type"] == "Limit" or parent.get("Node Type") == "Result" for parent in _above(plan, node)):
                yield f"all of {node['Index Name']}"


def _above(plan, wanted):
    for node, parents in nodes(plan):
        if node is wanted:
            return parents
    return ()


def setUpModule():
    global SERVER
    SERVER = server.Server(settings={"autovacuum": "off", "jit": "on", "jit_above_cost": "0"}).__enter__()


def tearDownModule():
    SERVER.__exit__()


def prepare(name, tasks, statistics):
    """A database with a queue in it."""
    SERVER.make_database(name)
    server.install(SERVER, name)
    if statistics == "stale":
        SERVER.sql("ANALYZE", name)
    if tasks:
        SERVER.script("SET synchronous_commit = off;" + FILL.format(many=tasks), name)
    if statistics == "fresh":
        SERVER.sql("VACUUM ANALYZE", name)
    return name


class Plans(unittest.TestCase):
    maxDiff = None
    database = None

    def look(self):
        """Every call as often as it takes until the plan is one for all parameters."""
        one = Worker(SERVER, self.database, "one")
        other = Worker(SERVER, self.database, "other", labels=["gpu"], accepts=["claude", "codex"])
        try:
            one.submit_all({"group": "g1"}, {"needs": "gpu"}, {"agent": "codex"})
            for session in (one.session, other.session):
                for statement in EXPLAIN:
                    session.ask(statement)
            start = len(SERVER.log())
            for turn in range(7):
                self.work(one, turn)
            for turn in range(2):
                self.work(other, turn)
            for lanes in 7 * ("{1}", "{1,2}"):
                one.ask(f"UPDATE duet.worker SET lanes = '{lanes}', groups = 1, lanes_to = 1000 WHERE id = {one.id} RETURNING id")
                one.claim(2)
            return plans_in(SERVER.log()[start:])
        finally:
            one.close()
            other.close()

    def work(self, worker, turn):
        worker.submit_all({"group": "g1"}, {"group": f"g{turn % 5 + 1}"})
        claims = worker.claim(2) + worker.claim(2, limits={"groups": {"g1": 5000}, "agents": {"claude": 5000}}) + worker.claim(1, behind={"1": [0, 5]})
        worker.start(*claims[:1])
        piece = base64.b64encode(b"x").decode()
        worker.report([{"task": claim.id, "fence": claim.fence, "bytes": 1, "ok": claim.id % 2 == 0, "code": 1} for claim in claims],
                      output=[{"task": claim.id, "fence": claim.fence, "attempt": claim.attempt, "offset": 0, "bytes": piece, "total": 1} for claim in claims], most=1)
        worker.beat()
        worker.number(100)
        worker.do("sweep_v1")
        some = claims[0].id if claims else 1
        worker.do("handle_v1", some, f"h{some}")
        worker.do("wait_v1", True)
        worker.do("wake_v1", [1, 2], [1, 1])
        for name in ("read_task_v1", "read_request_v1", "read_explain_v1", "read_output_state_v1"):
            worker.call(name, some)
        worker.call("read_events_v1", 5, 20)
        worker.call("read_output_v1", some, 0, 100)
        worker.call("read_outputs_v1", [some, some + 1], [0, None], 100)
        worker.call("read_running_v1")
        for name in ("read_stats_v1", "read_events_state_v1", "hello_v1"):
            worker.call(name)
        for query in ({}, {"state": 1}, {"state": 3}, {"sort": "oldest", "from": 5}, {"sort": "ended"}, {"group": "g1"}, {"state": 0, "ofRules": True}):
            worker.tasks(**query)

    def assert_by_index(self, name, tasks, statistics):
        self.database = prepare(name, tasks, statistics)
        plans = self.look()
        self.assertGreater(len(plans), 200)
        self.assertTrue(any("Relation Name" in node and node["Relation Name"] == "task" for _, plan in plans for node, _ in nodes(plan)))
        faults = {(fault, " ".join(text.split())[:300]) for text, plan in plans for fault in faults_of(plan)}
        of_rules = {node.get("Index Name") for text, plan in plans if "automation" in text for node, _ in nodes(plan) if "Relation Name" in node}
        self.assertEqual(of_rules - {"task_pkey"}, {"request_of_rules"})
        compiled = [text for text, plan in plans if "JIT" in plan]
        self.assertEqual((sorted(faults), compiled), ([], []))

    def test_who_may_not_read_in_a_row_does_not_compile_either(self):
        # A plan that is switched off costs so much that the compiler starts: 0.3 s for a look at one row.
        self.database = SERVER.make_database("settings")
        server.install(SERVER, self.database)
        self.assertEqual(SERVER.sql("SELECT proname FROM pg_proc WHERE pronamespace = 'duet'::regnamespace"
                                    " AND 'enable_seqscan=off' = ANY (proconfig) AND 'jit=off' <> ALL (proconfig)", self.database), [])

    def test_an_empty_queue_without_statistics(self):
        self.assert_by_index("empty_none", 0, "none")

    def test_an_empty_queue_with_fresh_statistics(self):
        self.assert_by_index("empty_fresh", 0, "fresh")

    def test_a_large_queue_without_statistics(self):
        self.assert_by_index("large_none", TASKS, "none")

    def test_a_large_queue_whose_statistics_are_those_of_an_empty_one(self):
        self.assert_by_index("large_stale", TASKS, "stale")

    def test_a_large_queue_with_fresh_statistics(self):
        self.assert_by_index("large_fresh", TASKS, "fresh")


class Walks(unittest.TestCase):
    """By index is not enough where a few of many are meant: the index must lead to them."""

    def rows_read(self, worker, function, *arguments, table="task"):
        start = len(SERVER.log())
        answer = worker.call(function, *arguments)
        plans = plans_in(SERVER.log()[start:])
        self.assertGreater(len(plans), 0)
        return answer, sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for _, plan in plans
                           for node, _ in nodes(plan) if node.get("Relation Name") == table and "Scan" in node["Node Type"])

    def test_few_of_many(self):
        database = prepare("walks", 20_000, "none")
        SERVER.script("UPDATE duet.task SET state = 3 WHERE state IN (1, 2, 4); UPDATE duet.task SET state = 4 WHERE id = 77;"
                      "UPDATE duet.task SET has_dependents = true; UPDATE duet.task SET state = 2, worker = 9 WHERE state = 0;"
                      "UPDATE duet.task SET completed_at = now() - interval '2 hours' - id * interval '1 ms', created_at = now() - interval '3 hours'"
                      " WHERE id <> 20000; UPDATE duet.task SET created_at = now(), completed_at = now() WHERE id = 20000; UPDATE duet.meta SET queued = 0, running = 200;", database)
        SERVER.sql("VACUUM ANALYZE", database)
        one = Worker(SERVER, database, "one")
        self.addCleanup(one.close)
        for statement in (*EXPLAIN, "SET auto_explain.log_analyze = on"):
            one.session.ask(statement)
        day, now = 86_400_000, int(one.one("SELECT duet.ms(clock_timestamp())"))
        me = (one.id, one.incarnation)
        for what, asked, found in (
                ("old ones that there are not", ("remove_v1", *me, None, None, 30 * day, "x"), '"removed" : []'),
                ("completed ones that are old", ("remove_v1", *me, None, COMPLETED, 30 * day, "x"), '"removed" : []'),
                ("the one that failed", ("remove_v1", *me, None, FAILED, None, "x"), '"removed" : [77]'),
                ("none that was cancelled", ("remove_v1", *me, None, CANCELLED, None, "x"), '"removed" : []'),
                ("a restart", ("requeue_v1", *me, 1234), "queued")):
            with self.subTest(what):
                answer, rows = self.rows_read(one, *asked)
                self.assertIn(found, answer[0][0])
                self.assertLess(rows, 1000)
        for query in ({}, {"state": COMPLETED}, {"sort": "oldest"}, {"sort": "ended"}, {"group": "g1"}):
            with self.subTest(query):
                answer, rows = self.rows_read(one, "read_tasks_v1", {**query, "since": now - day // 24})
                self.assertEqual([row[0] for row in answer], ["20000"])
                self.assertLess(rows, 1500)


    def test_a_sweep_beside_many_that_wait_and_lanes_that_are_retired(self):
        database = prepare("waiting", 0, "none")
        SERVER.script("INSERT INTO duet.lane(agent, grp, needs, agent_json, retired_at) SELECT 'claude', 'g' || n, '{}', '\"claude\"',"
                      " CASE WHEN n <= 200 THEN now() END FROM generate_series(1, 400) n;"
                      "INSERT INTO duet.task(id, rank, created_at, lane, retries, state, on_lost, open_after, held, due)"
                      " SELECT n, -1, now() - interval '1 hour', 201 + n % 150, 0, 0, 0, CASE WHEN n % 3 = 0 THEN 1 ELSE 0 END, n % 3 = 1,"
                      " CASE WHEN n % 3 = 2 THEN now() + interval '1 hour' WHEN n % 2 = 1 THEN now() - interval '1 minute' END"
                      " FROM generate_series(1, 20000) n;"
                      "SELECT setval('duet.task_id', 20001) AS last \\gset\n", database)
        one = Worker(SERVER, database, "one")
        self.addCleanup(one.close)
        for statement in (*EXPLAIN, "SET auto_explain.log_analyze = on"):
            one.session.ask(statement)
        for statistics in ("none", "fresh"):
            with self.subTest(statistics):
                answer, rows = self.rows_read(one, "sweep_v1", one.id, one.incarnation)
                self.assertIn('"ready":[]', answer[0][0])
                self.assertLess(rows, 2000)
            SERVER.sql("VACUUM ANALYZE", database)


    def test_lanes_that_are_retired_are_read_by_nobody(self):
        database = prepare("retired", 0, "none")
        SERVER.script("INSERT INTO duet.lane(agent, grp, needs, agent_json, retired_at) SELECT 'claude', 'g' || n, '{}', '\"claude\"',"
                      " CASE WHEN n % 500 <> 0 THEN now() END FROM generate_series(1, 20000) n;", database)
        one = Worker(SERVER, database, "one")
        self.addCleanup(one.close)
        one.submit_all({"group": "g500"}, {"group": "g1000", "delay": 60000})
        for statement in (*EXPLAIN, "SET auto_explain.log_analyze = on"):
            one.session.ask(statement)
        nothing = [None] * 7
        for statistics in ("none", "fresh"):
            for function, more in (("sweep_v1", []), ("beat_v1", nothing)):
                with self.subTest((statistics, function)):
                    _, rows = self.rows_read(one, function, one.id, one.incarnation, *more, table="lane")
                    self.assertLess(rows, 500)
            SERVER.sql("VACUUM ANALYZE", database)


class TheTestItself(unittest.TestCase):
    def test_it_sees_what_it_is_to_find(self):
        scan = {"Node Type": "Seq Scan", "Relation Name": "task", "Parent Relationship": "Outer"}
        self.assertEqual(list(faults_of(scan)), ["Seq Scan of task"])
        walk = {"Node Type": "Index Scan", "Relation Name": "task", "Index Name": "task_ready", "Parent Relationship": "Outer"}
        self.assertEqual(list(faults_of({"Node Type": "Sort", "Plans": [walk]})), ["Sort of task"])
        self.assertEqual(list(faults_of({"Node Type": "Sort", "Plans": [{"Node Type": "Limit", "Plans": [walk]}]})), [])


if __name__ == "__main__":
    server.skip_unless_installed()
    if "--tasks" in sys.argv:
        at = sys.argv.index("--tasks")
        TASKS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
