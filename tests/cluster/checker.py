#!/usr/bin/env python3
"""Three workers, two submitters, and everything that may die dies at random. Then the queue is asked whether it kept its word.

Usage: checker.py --program PATH [--seconds 30] [--seed N] [--proxy | --namespaces]

Daemons, keepers and postgres are killed, daemons are stopped: see harm.py. With --proxy the ways between daemons and server are stalled, cut,
dropped and delayed instead, each direction by itself; with --namespaces each daemon has a network of its own, whose wire is cut (this needs
root, and is skipped with a loud line where the machine does not allow it). Afterwards must hold: every acknowledged task is there
and has ended; one submit is one task at most; `fail` tasks have begun once at most; `retry` attempts never overlap; ends in the
database are those that the tasks wrote; events have no gap and each task's a legal order; counts are right; no process is left.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import sys
import tempfile
import threading
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import namespaces  # noqa: E402
import server  # noqa: E402
from daemon import Failure, eventually  # noqa: E402
from fleet import ENDED, Fleet, read_file  # noqa: E402
from database_proxy import Proxy  # noqa: E402
from harm import Harm  # noqa: E402
from scenario import happens  # noqa: E402

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "job.py")
WEATHER = (OSError, Failure, ValueError)
LEASE, LOST_AFTER = 30, 60
BACK_WITHIN = 6  # of a database that is back: until then reads may be refused


class Submit:
    """One submit as its client knows it."""

    def __init__(self, token, on_lost, code, key):
        self.token, self.on_lost, self.code, self.key = token, on_lost, code, key
        self.id = None         # acknowledged as this task
        self.outcome = None    # "none" or "unknown", when it was refused so
        self.cancelled = False  # a cancel of it was acknowledged


class Run:
    """One run of the checker: what was done, what was said, what was found."""

    def __init__(self, options):
        self.options = options
        self.seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
        self.over = threading.Event()
        self.counts = collections.Counter()
        self.submits = []
        self.faults = []
        self.lock = threading.Lock()
        self.jobs = tempfile.TemporaryDirectory(prefix="duet-jobs-")

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fault(self, *words):
        self.faults.append(" ".join(str(word) for word in words))

    # -- those who submit --

    def submitter(self, number):
        chance = random.Random(f"{self.seed} submitter {number}")
        while not self.over.is_set():
            self.submit_one(chance)
            self.over.wait(chance.uniform(0, self.options.pause))

    def submit_one(self, chance):
        token = f"{uuid.UUID(int=chance.getrandbits(128)).hex}"
        on_lost = chance.choice(("fail", "retry"))
        code = chance.choice((0, 0, 0, 7))
        seconds = chance.choice((0.05, 0.3, 1, 3)) * chance.uniform(0.5, 1.5)
        key = token if chance.random() < 0.3 else None
        submit = Submit(token, on_lost, code, key)
        self.submits.append(submit)
        params = {"prompt": f"exec {sys.executable} -IS {JOB} {self.jobs.name} {token} {seconds:.2f} {code}", "onLost": on_lost}
        if key:
            params["key"] = key
        is_unknown = False  # an earlier try may still turn up
        while True:
            answer = self.try_submit(chance.choice(self.fleet.workers), params)
            if answer or not key or self.over.is_set():
                break
            is_unknown = True
            self.over.wait(0.5)
        self.take(submit, answer)
        if is_unknown and submit.outcome == "none":
            submit.outcome = "unknown"
        if submit.id and chance.random() < 0.08:
            self.over.wait(chance.uniform(0, 3))
            self.cancel(chance, submit)

    @staticmethod
    def try_submit(worker, params):
        """The answer, None without one."""
        try:
            answer = worker.ask("task.submit", patience=13, **params)
        except WEATHER:
            return None
        data = answer.get("error", {}).get("data") or {}
        return None if params.get("key") and data.get("outcome") == "unknown" else answer

    def take(self, submit, answer):
        if answer is None:
            self.count("submits without an answer")
            submit.outcome = "unknown"
        elif "result" in answer:
            self.count("submits acknowledged")
            submit.id = answer["result"]["taskId"]
        else:
            data = answer["error"].get("data") or {}
            submit.outcome = "none" if "the daemon is stopping" in answer["error"]["message"] else data.get("outcome")
            self.count(f"submits refused, outcome {submit.outcome}")
            if submit.outcome not in ("none", "unknown"):
                self.fault("a submit was refused in a strange way:", answer)
                submit.outcome = "unknown"

    def cancel(self, chance, submit):
        try:
            answer = chance.choice(self.fleet.workers).ask("task.cancel", patience=25, taskId=submit.id)
        except WEATHER:
            return
        if "result" in answer:
            self.count("cancels acknowledged")
            submit.cancelled = True

    # -- the whole --

    def play(self):
        """True: nothing is wrong."""
        print(f"seed {self.seed}, {self.options.seconds} s", file=sys.stderr, flush=True)
        shared = namespaces.listening() if self.options.namespaces else server.Server()
        with self.jobs, shared, contextlib.ExitStack() as ways, Fleet(self.options.program, shared) as self.fleet:
            try:
                for number, name in enumerate(("one", "two", "three"), 1):
                    self.add_worker(ways, number, name)
                self.trouble()
                self.judge()
                self.show()
            finally:
                for worker in self.fleet.workers:
                    worker.kill_family()
        return not self.faults

    def add_worker(self, ways, number, name):
        options = {"lease": f"{LEASE}s", "lost_after": f"{LOST_AFTER}s", "slots": 3}
        proxy = network = None
        if self.options.proxy:
            proxy = ways.enter_context(Proxy(self.fleet.server))
            options["url"] = proxy.url(self.fleet.database)
        if self.options.namespaces:
            network = ways.enter_context(namespaces.Network(number))
            options.update(url=network.url(self.fleet.server, self.fleet.database), cluster="insecure = true")
        worker = self.fleet.worker(name, start=False, **options)
        worker.proxy, worker.network = proxy, network
        if network:
            worker.program = network.program(self.fleet.program)
        worker.start()

    def trouble(self):
        mode = "proxy" if self.options.proxy else "namespaces" if self.options.namespaces else "kills"
        self.harm = Harm(self, mode)
        threads = [threading.Thread(target=self.harm.go), *(threading.Thread(target=self.submitter, args=(n,)) for n in range(2))]
        for thread in threads:
            thread.start()
        self.over.wait(self.options.seconds)
        self.over.set()
        for thread in threads:
            thread.join()

    def show(self):
        for what, number in sorted(self.counts.items()):
            print(f"{number:6} {what}", file=sys.stderr)
        for fault in self.faults:
            print(f"FAULT: {fault}", file=sys.stderr)
        if self.faults:
            print(self.fleet.logs(self.options.log), file=sys.stderr)

    # -- what must hold --

    def judge(self):
        for worker in self.fleet.workers:
            if worker.lock_holder() is None:
                self.harm.start_again(worker)
        self.all_end()
        rows = self.rows()
        for submit in self.submits:
            self.judge_submit(submit, rows.get(submit.token, []))
        self.judge_events()
        self.judge_counts()
        self.judge_processes()

    def all_end(self):
        left = "SELECT id, state, worker, on_lost, attempts FROM duet.task WHERE state < 3"
        try:
            eventually(lambda: self.fleet.sql(left) == [], LOST_AFTER + 2 * LEASE + 60, "all tasks end")
        except Failure:
            self.fault("tasks have not ended (id, state, worker, on lost, attempts):", self.fleet.sql(left))

    def rows(self):
        """The tasks in the database by token."""
        found = collections.defaultdict(list)
        names = ("id", "state", "on_lost", "attempts", "fence", "exit_code", "signal", "reason", "late", "cancelling", "lost", "token")
        for row in self.fleet.sql("SELECT t.id, t.state, t.on_lost, t.attempts, t.fence, t.exit_code, t.signal, t.error_reason, t.late, t.cancelling, t.lost, "
                                  "substring(r.body from 'duet-jobs-[^ ]* ([0-9a-f]{32})') FROM duet.task t JOIN duet.request r ON r.task = t.id"):
            record = dict(zip(names, row))
            found[record["token"]].append(record)
        return found

    def judge_submit(self, submit, rows):
        if len(rows) > 1:
            self.fault("one submit became", len(rows), "tasks:", rows)
        if submit.id and not rows:
            self.fault("acknowledged and gone:", submit.id)
        if submit.id and rows and f"task-{rows[0]['id']}" != submit.id:
            self.fault("acknowledged as", submit.id, "but it is", rows[0])
        if submit.outcome == "none" and rows:
            self.fault("it was said that it will never turn up:", rows)
        if rows:
            self.judge_task(submit, rows[0])
        elif read_file(os.path.join(self.jobs.name, submit.token)):
            self.fault("it ran, but is not there:", submit.token)

    def judge_task(self, submit, row):
        lines = [line.split() for line in read_file(os.path.join(self.jobs.name, submit.token)).decode().splitlines()]
        begins = [line for line in lines if line[0] == "begin"]
        ends = {line[1]: line[4] for line in lines if line[0] == "end"}
        state = {"3": "completed", "4": "failed", "5": "cancelled"}.get(row["state"], row["state"])
        lost = state == "failed" and row["reason"] == "4"
        self.count(f"{submit.on_lost}: {state}{'/lost' if lost else ''}")
        what = f"task-{row['id']} ({submit.on_lost}) {row}, its file: {lines}"
        if submit.on_lost == "fail" and len(begins) > 1:
            self.fault("begun more than once:", what)
        if any(line[0] == "overlap" for line in lines):
            self.fault("two at a time:", what)
        fences = [int(line[1]) for line in begins]
        if fences != sorted(set(fences)):
            self.fault("fences that do not grow:", what)
        if state == "completed" and ends.get(row["fence"]) != "0":
            self.fault("completed, but the task did not write that:", what)
        if state == "failed" and row["exit_code"] not in (None, ends.get(row["fence"])):
            self.fault("another exit code than the task's:", what)
        if state == "failed" and row["exit_code"] is None and not lost and row["signal"] is None:
            self.fault("failed without a reason that is known:", what)
        if submit.on_lost == "retry" and lost and int(row["lost"]) < 3 and row["cancelling"] != "t":
            self.fault("lost before its third lost attempt:", what)
        if submit.cancelled and not (state == "cancelled" or lost):
            self.fault("cancelled, but ended otherwise:", what)
        if state == "cancelled" and not submit.cancelled:
            self.count("cancelled without an answer")
        if len(begins) > 1:
            self.count("retry: begun again")
        if lost and row["late"]:
            self.count("late ends")

    def judge_events(self):
        eventually(lambda: self.fleet.sql("SELECT count(*) FROM duet.event WHERE seq IS NULL") == [["0"]], 60, "all events are numbered")
        rows = self.fleet.sql("SELECT seq, kind, task, params FROM duet.event ORDER BY seq")
        numbers = [int(row[0]) for row in rows]
        if numbers != list(range(1, len(rows) + 1)):
            self.fault("events have gaps or doubles:", [n for n, m in zip(numbers, range(1, len(rows) + 1)) if n != m][:5])
        self.counts["events"] = len(rows)
        told = collections.defaultdict(list)
        for _, kind, task, _ in rows:
            if task is not None and kind.startswith("task"):
                told[task].append(kind.removeprefix("task"))
        for task, kinds in told.items():
            if not is_legal(kinds):
                self.fault("events of task", task, "in no legal order:", kinds)
        self.judge_heard(rows)

    def judge_heard(self, rows):
        """Each daemon tells all of them, in their order."""
        for worker in self.fleet.workers:
            with worker.connect() as connection:
                answer, events = happens(lambda to=connection: self.subscribe(to), BACK_WITHIN) or (self.refused, [])
                if "result" not in answer or answer["result"].get("missed"):
                    self.fault(worker.name, "does not tell all events:", answer)
                    continue
                while len(events) < len(rows):
                    events.append(connection.next_message(30))
            if [event["params"]["seq"] for event in events[:len(rows)]] != list(range(1, len(rows) + 1)):
                self.fault(worker.name, "tells events with gaps or doubles")

    def subscribe(self, connection):
        connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": {"since": 1}}))
        answer, events = connection.answer(1)
        self.refused = answer
        return (answer, events) if "result" in answer else None

    def judge_counts(self):
        states = dict(zip("345", ENDED))
        real = {states[state]: int(number) for state, number in self.fleet.sql("SELECT state, count(*) FROM duet.task WHERE state > 2 GROUP BY 1")}
        stats = self.fleet.workers[0].ok("task.stats")
        for state in ENDED:
            if stats[state] != real.get(state, 0):
                self.fault("counts:", stats, "but there are", real)

    def judge_processes(self):
        """Nothing but the daemons and what makes keepers is left, and with the daemons that, too."""
        for worker in self.fleet.workers:
            worker.run("daemon", "stop")
        for worker in self.fleet.workers:
            try:
                eventually(lambda one=worker: not one.family(), 30, "no process is left")
            except Failure:
                self.fault("processes are left of", worker.name, [(pid, read_file(f"/proc/{pid}/cmdline").replace(b"\0", b" ")) for pid in worker.family()])


def is_legal(kinds):
    """Queued, perhaps started, perhaps queued again; one end, and nothing after it."""
    ends = ("Completed", "Failed", "Cancelled")
    if not kinds or kinds[0] != "Queued" or kinds[-1] not in ends or any(kind in ends for kind in kinds[:-1]):
        return False
    for before, after in zip(kinds, kinds[1:]):
        if after == "Started" and before != "Queued" or after == "Completed" and before != "Started":
            return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--proxy", action="store_true")
    ways.add_argument("--namespaces", action="store_true")
    parser.add_argument("--pause", type=float, default=0.4, help="at most so long between two submits of one submitter")
    parser.add_argument("--calm", type=float, default=2.5, help="at most so long between two deeds")
    parser.add_argument("--log", type=int, default=3000, help="how much of each log is shown of a run that failed")
    options = parser.parse_args()
    server.skip_unless_installed()
    if options.namespaces and not namespaces.allowed():
        print("SKIPPED: this machine allows no network namespaces (root, iproute2), so NOTHING was tested with them", file=sys.stderr, flush=True)
        sys.exit(server.SKIPPED)
    sys.exit(0 if Run(options).play() else 1)


if __name__ == "__main__":
    main()
