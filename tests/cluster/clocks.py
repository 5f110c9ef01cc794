#!/usr/bin/env python3
"""Clocks that are wrong: daemons whose time of day is a day off, and a database whose time of day steps by an hour.

Usage: clocks.py --program PATH [unittest options]

Only CLOCK_REALTIME is shifted (clock_shift.c, preloaded): what leases are measured by stays right. The lease itself has its tests
with a fake CLOCK_BOOTTIME beside the sources (membership_test.cpp, liveness_test.cpp, lease_watch_test.cpp).
"""

import datetime
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from fleet import start_time  # noqa: E402
from scenario import Background, appends, check, let_go, lines  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock_shift.c")
LEASE = 30
DAY = 86400
HOUR = 3600
stepping = None
scenarios = {}


def setUpModule():
    global stepping
    folder = tempfile.mkdtemp(prefix="duet-clocks-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    Clock.library = os.path.join(folder, "clock_shift.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", Clock.library, SOURCE], check=True)
    stepping = SteppingServer(Clock(folder, "database")).__enter__()
    unittest.addModuleCleanup(stepping.__exit__)
    scenarios["wrong_days"] = Background(lambda fleet: wrong_days(fleet, folder), None)
    scenarios["database_steps"] = Background(database_steps, stepping)


def tearDownModule():
    for one in scenarios.values():
        one.thread.join()


class Clock:
    """A time of day that is off by so many seconds, for programs that are started with its environment."""

    library = None

    def __init__(self, folder, name, seconds=0):
        self.path = os.path.join(folder, name)
        with open(self.path, "wb") as file:
            file.write(struct.pack("q", seconds))
        self.environment = {"LD_PRELOAD": self.library, "DUET_TEST_CLOCK": self.path}

    def step(self, seconds):
        """From the right time. All see it at once."""
        with open(self.path, "r+b") as file:
            file.write(struct.pack("q", seconds))


class SteppingServer(server.Server):
    """A server whose time of day is what its clock says."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.environment = {**os.environ, **clock.environment}

    def error(self):
        """How much its time is off, in seconds."""
        return float(self.sql("SELECT extract(epoch FROM clock_timestamp())")[0][0]) - time.time()


def is_alive(record):
    return start_time(record["pid"]) is not None


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def states(fleet):
    return {name: state for name, state in fleet.sql("SELECT name, state FROM duet.worker")}


def never_silent(fleet):
    return fleet.sql("SELECT count(*) FROM duet.event WHERE kind = 'workerChanged' AND params LIKE '%silent%'") == [["0"]]


def wrong_days(fleet, folder):
    """One daemon a day ahead, one a day behind, one right: nothing but what they log differs."""
    right = fleet.worker("right")
    ahead = fleet.worker("ahead", env=Clock(folder, "ahead", DAY).environment)
    behind = fleet.worker("behind", env=Clock(folder, "behind", -DAY).environment)
    for worker, off in ((right, 0), (ahead, DAY), (behind, -DAY)):
        told = lines(os.path.join(worker.state, "daemon.log"))[0].split()[0]
        check(abs(moment(told) - time.time() - off) < 60, worker.name, "is not as wrong as it should be:", told)
    everybody = (right, ahead, behind)
    leased = [(worker.path("leased"), worker.submit(appends(worker.path("leased")), onLost="retry", needs=[f"name={worker.name}"]))
              for worker in everybody]
    records = [right.runs(id) for _, id in leased]
    begun = time.monotonic()
    for submitter in everybody:
        for runner in everybody:
            one_task(submitter, runner)
    time.sleep(max(0.0, LEASE + 10 - (time.monotonic() - begun)))  # a lease and more: nobody is given up, and no attempt ended
    check(set(states(fleet).values()) == {"0"} and never_silent(fleet), states(fleet))
    for (path, id), record in zip(leased, records):
        check(is_alive(record), "a leased attempt was ended by its keeper:", id)
        let_go(path)
        check((right.wait(id)["state"], right.get(id)["attempts"], len(lines(path))) == ("completed", 1, 2), right.get(id))
    for worker in (ahead, behind):
        back_again(right, worker)


def one_task(submitter, runner):
    """Submitted by one for another: with a delay, a retry, and times that are the database's."""
    before = time.time()
    needs = [f"name={runner.name}"]
    delayed = submitter.submit("true", needs=needs, delaySeconds=2)
    retried = submitter.submit(f"echo x >> {runner.path('tries')}; exit 1", needs=needs, retries=1)
    limited = submitter.submit("sleep 60", needs=needs, timeoutSeconds=1)
    for id, state in ((delayed, "completed"), (retried, "failed"), (limited, "failed")):
        record = submitter.wait(id)
        check(record["state"] == state, submitter.name, runner.name, record)
        times = [moment(record[name]) for name in ("createdAt", "startedAt", "completedAt")]
        check(times == sorted(times) and before - 2 < times[0] and times[2] < time.time() + 2, "times of the database:", record)
    check(moment(submitter.get(delayed)["startedAt"]) - moment(submitter.get(delayed)["createdAt"]) > 1.5, "the delay")
    check(submitter.get(limited)["error"]["reason"] == "timeout", submitter.get(limited))
    check(submitter.get(retried)["attempts"] == 2, submitter.get(retried))


def back_again(right, worker):
    """Killed and started with the right time: its clock stepped by a day meanwhile."""
    path = worker.path("stays")
    id = right.submit(appends(path), needs=[f"name={worker.name}"])
    record = right.runs(id)
    worker.kill_daemon()
    worker.start()
    check(right.get(id)["pid"] == record["pid"] and is_alive(record), right.get(id))
    let_go(path)
    ended = right.wait(id)
    times = [moment(ended[name]) for name in ("createdAt", "startedAt", "completedAt")]
    check((ended["state"], ended["attempts"]) == ("completed", 1) and times == sorted(times) and times[2] < time.time() + 2, ended)


def database_steps(fleet):
    """An hour ahead, then an hour behind: leases, claims, ends and events go on; who reconnects is welcome."""
    one, two = fleet.worker("one"), fleet.worker("two")
    path = two.path("leased")
    id = one.submit(appends(path), onLost="retry", needs=["name=two"])
    record = one.runs(id)
    waits = one.submit("true", delaySeconds=HOUR * 3)
    for seconds in (HOUR, -HOUR):
        fleet.server.clock.step(seconds)
        eventually(lambda s=seconds: abs(fleet.server.error() - s) < 30, what="the step")
        begun = time.monotonic()
        while time.monotonic() - begun < LEASE + 8:
            for worker in (one, two):
                check(one.wait(worker.submit("true", needs=[f"name={worker.name}"]), 20)["state"] == "completed", "it goes on")
            again = one.submit("exit 1", retries=1)  # its pause is counted from the time that it is now
            check(one.wait(again, 30)["attempts"] == 2, one.get(again))
            time.sleep(1)
        check(set(states(fleet).values()) == {"0"} and never_silent(fleet), states(fleet))
        check(is_alive(record) and one.get(waits)["state"] == "queued", one.get(waits))
        fleet.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'duet-rpc%'")
        for worker in (one, two):
            eventually(lambda w=worker: "result" in w.ask("task.submit", prompt="true"), 20, "it is back")
        two.kill_daemon()
        two.start()
    let_go(path)
    check((one.wait(id)["attempts"], len(lines(path))) == (1, 2), one.get(id))
    numbers = [int(row[0]) for row in fleet.sql("SELECT seq FROM duet.event WHERE seq IS NOT NULL ORDER BY id")]
    check(numbers == list(range(1, len(numbers) + 1)), "events are in their order, whatever the time is")


class Clocks(suite.TestCase):
    def test_daemons_a_day_off(self):
        scenarios["wrong_days"].result()

    def test_a_database_whose_clock_steps(self):
        scenarios["database_steps"].result()


if __name__ == "__main__":
    server.skip_unless_installed()
    if not shutil.which("cc"):
        print("SKIPPED: there is no C compiler, so NOTHING of wrong clocks was tested here", file=sys.stderr, flush=True)
        sys.exit(server.SKIPPED)
    suite.main()
