#!/usr/bin/env python3
"""Rates of the queue's functions on PostgreSQL against the floor, in turns, on a server of its own.

    run.py --program QUEUE_RATE [--rounds 5] [--loads submit-1,drain-100-4,…] [--questions million,horizon,writers,slow]

Without --questions: the loads, as medians of the rounds with the ratio to the floor of the same round. The server syncs every
commit; `slow` repeats some loads with commits of 2 ms."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/cluster"))

import server  # noqa: E402

FLOOR = """DROP SCHEMA IF EXISTS floor CASCADE; CREATE SCHEMA floor;
CREATE TABLE floor.task(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state smallint NOT NULL DEFAULT 1,
  priority bigint NOT NULL DEFAULT 0, body text NOT NULL);
CREATE INDEX task_ready ON floor.task(priority DESC, id) WHERE state = 1;"""
TABLES = "floor.task, duet.task, duet.request, duet.result, duet.event"
LOADS = {
    "submit-1": ["submit", "--count", "1500"],
    "submit-100": ["submit", "--batch", "100", "--count", "30000"],
    "drain-1-1": ["drain", "--count", "2000"],
    "drain-1-2": ["drain", "--count", "3000", "--clients", "2"],
    "drain-1-4": ["drain", "--count", "4000", "--clients", "4"],
    "drain-100-1": ["drain", "--batch", "100", "--count", "30000"],
    "drain-100-4": ["drain", "--batch", "100", "--count", "30000", "--clients", "4"],
    "latency": ["latency", "--count", "300"],
}


class Bench:
    def __init__(self, one, program):
        self.one, self.program = one, program

    def prepare(self):
        self.one.script("DROP SCHEMA IF EXISTS duet CASCADE;" + FLOOR)
        server.install(self.one, "postgres")
        self.one.sql("SELECT duet.set_v1('queue_capacity', '100000000')")
        self.one.sql("CHECKPOINT")

    def empty(self):
        self.one.sql(f"TRUNCATE {TABLES}")

    def run(self, queue, words):
        extra = ["--number"] if queue == "duet" and words[0] == "drain" and "--number" not in words else []
        out = subprocess.run([self.program, "--conninfo", self.one.conninfo(), "--queue", queue, "--load", *words, *extra],
                             stdout=subprocess.PIPE, check=True, timeout=600).stdout
        return json.loads(out)

    def pair(self, name):
        self.empty()
        return [self.run(queue, LOADS[name]) for queue in ("floor", "duet")]


def figure(result):
    return result.get("rate", result.get("p50_ms"))


def rounds(bench, names, many):
    seen = {name: [] for name in names}
    for number in range(many):
        bench.prepare()
        for name in names:
            seen[name].append(bench.pair(name))
            print(f"round {number + 1}: {name}: {json.dumps(seen[name][-1])}", file=sys.stderr, flush=True)
    print("| load | floor | duet | ratio |\n|---|---|---|---|")
    for name, pairs in seen.items():
        floor, duet = (statistics.median(figure(pair[side]) for pair in pairs) for side in (0, 1))
        ratio = statistics.median(figure(pair[1]) / figure(pair[0]) for pair in pairs)
        print(f"| {name} | {floor:,.1f} | {duet:,.1f} | {ratio:.2f} |", flush=True)


def million(bench, _):
    """The same rates with 1,000 tasks in the queue and with a million?"""
    for rows in (1000, 1_000_000):
        bench.prepare()
        bench.run("duet", ["drain", "--count", str(rows), "--seconds", "0", "--batch", "1"])
        bench.one.sql("VACUUM ANALYZE")
        bench.one.sql("CHECKPOINT")
        for words in (["submit", "--count", "1500"], ["submit", "--batch", "100", "--count", "20000"], ["drain", "--count", "0", "--seconds", "3"],
                      ["drain", "--batch", "100", "--clients", "4", "--count", "0", "--seconds", "2"]):
            print(f"million: {rows} tasks, {' '.join(words)}: {json.dumps(bench.run('duet', words))}", flush=True)


def horizon(bench, _):
    """What does an old snapshot do to claims, without and with looks behind what was taken last?"""
    for held, behind in ((False, []), (True, []), (True, ["--behind"])):
        bench.prepare()
        with server.Session(bench.one.conninfo()) as holder:
            if held:
                holder.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
                holder.ask("SELECT count(*) FROM duet.task")
            for turn in range(3):
                result = bench.run("duet", ["drain", "--batch", "4", "--clients", "2", "--count", "8000", *behind])
                print(f"horizon: held {held}, {' '.join(behind) or 'plain'}, turn {turn + 1}: {json.dumps(result)}", flush=True)


def slow_commits(bench, on):
    for name, value in (("commit_delay", "2000"), ("commit_siblings", "0")):
        bench.one.sql(f"ALTER SYSTEM SET {name} = {value}" if on else f"ALTER SYSTEM RESET {name}")
    bench.one.sql("SELECT pg_reload_conf()")


def writers(bench, _):
    """Eight writers and commits of 2 ms, without and with wake-ups and numbers."""
    slow_commits(bench, True)
    bench.prepare()
    for extra in ([], ["--wake", "--number"], [], ["--wake", "--number"]):
        bench.empty()
        print(f"writers: {' '.join(extra) or 'without'}: {json.dumps(bench.run('duet', ['submit', '--count', '6000', '--clients', '8', *extra]))}", flush=True)
    slow_commits(bench, False)


def slow(bench, many):
    """Some loads with commits of 2 ms."""
    slow_commits(bench, True)
    rounds(bench, ["submit-1", "drain-1-4", "latency"], many)
    slow_commits(bench, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--questions", default="")
    options = parser.parse_args()
    settings = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
    with server.Server(fsync=True, settings=settings) as one:
        bench = Bench(one, os.path.abspath(options.program))
        if not options.questions:
            return rounds(bench, options.loads.split(","), options.rounds)
        for question in options.questions.split(","):
            {"million": million, "horizon": horizon, "writers": writers, "slow": slow}[question](bench, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
