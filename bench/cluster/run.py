#!/usr/bin/env python3
"""The queue on PostgreSQL: every row that has a bar, beside the floor, graphile-worker and pg-boss, on a server of its own.

    run.py [--rounds 5] [--rows submit-1,slow,idle,…] [--quick] [--program DUET_RPC] [--install-peers] [--out FILE]
    run.py --report FILE

All systems take turns in every round; the table has medians of the rounds and of the ratios within a round. --rows: beginnings of
names of rows. --quick: one round with a tenth of the tasks, to see that all of it works: its figures say nothing.
--install-peers: from npm, into build/bench-peers. Without the packages there the columns of the peers are empty."""

import argparse
import json
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import rates  # noqa: E402
from rates import LOADS, SLOW, server  # noqa: E402

BUILD = HERE.parents[1] / "build"
# row: bar and goal of duet : floor, then of duet : graphile-worker and duet : pg-boss; of latencies less is better
RATIOS = {
    "submit-1": (0.50, 0.65, 2.5, 2.5),
    "submit-100": (0.20, 0.28, 1.3, 1.3),
    "drain-1-1": (0.35, 0.50, 1.2, 2.5),
    "drain-1-2": (0.35, 0.50, 1.2, 2.5),
    "drain-1-4": (0.35, 0.50, 1.2, 2.5),
    "drain-100-1": (0.15, 0.20, 1.0, 2.0),
    "drain-100-4": (0.15, 0.20, 1.0, 2.0),
    "latency": (2.2, 1.7, 0.6, 0.5),
    "slow-submit-1": (0.90, 0.90, 1.2, 1.2),
    "slow-drain-1-4": (0.90, 0.90, 0.95, 2.0),
    "slow-latency": (1.1, 1.1, 0.95, 0.85),
}
# row: bar, whether less is better, what it is
FIGURES = {
    "million-submit-1": (0.9, False, "a million tasks over a thousand: submits one by one"),
    "million-drain-1": (0.9, False, "the same: claim and end, 1 at a time"),
    "million-submit-100": (0.6, False, "the same: submits 100 a call"),
    "million-drain-100": (0.6, False, "the same: claim and end, 100 at a time, 4 workers"),
    "writers": (0.9, False, "8 writers, 2 ms commits: with wake-ups and numbers over without"),
    "horizon": (0.5, False, "after 24,000 starts under an old snapshot over none"),
    "idle-claims": (3, True, "50 idle workers: claims caused by a submit"),
    "idle-statements": (0.5, True, "50 idle workers: statements a second of each"),
    "wait": (50, True, "an end, seen by task.wait on another daemon, p50, ms"),
    "follow": (1000, True, "first output byte by --follow there, p99, ms"),
    "start": (10, True, "start of a task submitted on another daemon, over a daemon alone, p50, ms"),
}
QUESTIONS = {"million": "million", "writers": "writers", "horizon": "horizon"}
OF_DAEMONS = ("idle", "wait", "follow", "start")


class Run:
    def __init__(self, options):
        self.options = options
        self.part = 0.1 if options.quick else 1.0
        self.rounds = 1 if options.quick else options.rounds
        self.out = open(options.out, "w", encoding="utf-8") if options.out else None
        self.results = []

    def wanted(self, names):
        asked = self.options.rows.split(",") if self.options.rows else [""]
        return [name for name in names if any(name.startswith(word) or word.startswith(f"{name}-") for word in asked)]

    def note(self, number, row, values):
        result = {"round": number, "row": row, **values}
        self.results.append(result)
        print(json.dumps(result), file=self.out or sys.stderr, flush=True)

    def measure(self):
        settings = {"shared_buffers": "256MB", "max_wal_size": "4GB", "max_connections": "200"}
        peers = self.options.peers if rates.has_peers(self.options.peers) else None
        if not peers:
            print("without graphile-worker and pg-boss: see --install-peers", file=sys.stderr)
        # The rates' server counts no statements: that costs, and more where functions have statements of their own.
        with server.Server(fsync=True, settings=settings) as one:
            bench = rates.Rates(one, rates.compile_program(BUILD), peers, self.part)
            for number in range(self.rounds):
                self.loads(bench, number)
                for question in self.wanted(QUESTIONS):
                    self.note(number, question, getattr(bench, question)())
        counting = {"shared_preload_libraries": "'pg_stat_statements'", "pg_stat_statements.track": "all"}
        if self.wanted(OF_DAEMONS):
            with server.Server(fsync=True, settings={**settings, **counting}) as one:
                for number in range(self.rounds):
                    self.daemons(one, number)

    def loads(self, bench, number):
        names = self.wanted(LOADS)
        slow = self.wanted(SLOW)
        if names or slow:
            bench.prepare()
        for name in names:
            self.note(number, name, {system: bench.run(name, system) for system in bench.systems})
        if slow:
            bench.slow_commits(True)
            for name in slow:
                self.note(number, name, {system: bench.run(name, system) for system in bench.systems})
            bench.slow_commits(False)

    def daemons(self, one, number):
        if not os.path.exists(self.options.program):
            return print(f"without daemons: there is no {self.options.program}", file=sys.stderr)
        import daemon_rows
        bench = daemon_rows.Daemons(one, self.options.program, self.part)
        for name in self.wanted(OF_DAEMONS):
            self.note(number, name, getattr(bench, name)())


def verdict(value, bar, less):
    return "" if (value <= bar if less else value >= bar) else " **missed**"


def report(results):
    print("| row | floor | duet | duet : floor | bar | graphile-worker | : it | bar | pg-boss | : it | bar |\n" + "|---" * 11 + "|")
    for row, (bar, _, *of_peers) in RATIOS.items():
        mine = [result for result in results if result["row"] == row]
        if not mine:
            continue
        less = row.endswith("latency")

        def middle(system):
            return statistics.median(result[system] for result in mine)

        def ratio(system):
            return statistics.median(result["duet"] / result[system] for result in mine)
        form = ",.2f" if less else ",.0f"
        cells = [row, format(middle("floor"), form), format(middle("duet"), form), f"{ratio('floor'):.2f}{verdict(ratio('floor'), bar, less)}", bar]
        for system, limit in zip(rates.SCHEMAS, of_peers):
            known = system in mine[0]
            cells += [format(middle(system), form), f"{ratio(system):.2f}{verdict(ratio(system), limit, less)}", limit] if known else ["", "", limit]
        print("| " + " | ".join(map(str, cells)) + " |")
    print("\n| and | seen | bar |\n|---|---|---|")
    for row, (bar, less, text) in FIGURES.items():
        values = [result[row] for result in results if row in result]
        if values:
            value = statistics.median(values)
            print(f"| {text} | {value:.2f}{verdict(value, bar, less)} | {'at most' if less else 'at least'} {bar} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--program", default=str(BUILD / "release/bin/duet-rpc"))
    parser.add_argument("--peers", type=pathlib.Path, default=BUILD / "bench-peers")
    parser.add_argument("--install-peers", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--report")
    options = parser.parse_args()
    if options.report:
        return report([json.loads(line) for line in open(options.report, encoding="utf-8")])
    options.program = os.path.abspath(options.program)
    options.peers = options.peers.absolute()
    server.skip_unless_installed()
    if options.install_peers:
        rates.install_peers(options.peers)
    run = Run(options)
    run.measure()
    report(run.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
