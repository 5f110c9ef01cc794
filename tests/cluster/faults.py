#!/usr/bin/env python3
"""Daemons whose database has a fault that is no failover: a standby that is gone, a full disk, a role that changes, packets that vanish.

Usage: faults.py --program PATH [unittest options]

All scenarios run at the same time, each with servers of its own: they wait more than they work.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from database_proxy import Proxy  # noqa: E402
from fleet import start_time  # noqa: E402
from scenario import Background, Later, appends, check, let_go, lines  # noqa: E402

UNAVAILABLE = -32003
STEP = 1_000_000
LEASE = 30
scenarios = {}


def setUpModule():
    for scenario in (standby_gone, disk_full, role_changes, packets_vanish, many_come_back, wake_ups_refused, starts_without_database):
        scenarios[scenario.__name__] = Background(scenario, None)


def tearDownModule():
    for one in scenarios.values():
        one.thread.join()


def is_alive(record):
    return start_time(record["pid"]) is not None


def refused(answer):
    """The error of a submit that was refused for want of a database, with its outcome."""
    error = answer.get("error", {})
    check(error.get("code") == UNAVAILABLE and "outcome" in (error.get("data") or {}), answer)
    return error, error["data"]["outcome"]


def both_work(one, two):
    for worker in (one, two):
        check(one.wait(worker.submit("true", needs=[f"name={worker.name}"]))["state"] == "completed", worker.name)


def standby_gone(fleet):
    """Commits wait for a standby that is gone: submits are unknown in time, beats count, and all goes on when it is back."""
    second = fleet.server.standby(synchronous=True)
    one, two = fleet.worker("one"), fleet.worker("two")
    both_work(one, two)
    path = two.path("runs")
    id = one.submit(appends(path), onLost="retry", needs=["name=two"])
    record = one.runs(id)
    for _ in range(3):  # that they become due is a commit, too
        one.submit("true", delaySeconds=4, needs=["nobody"])
    second.stop("immediate")
    gone = time.monotonic()
    _, outcome = refused(one.ask("task.submit", prompt="true", key="k", needs=["nobody"]))
    took = time.monotonic() - gone
    check(outcome == "unknown" and 9 < took < 13, outcome, "after", took, "s")
    asked = time.monotonic()
    check(one.get(id)["state"] == "running" and one.ok("cluster.status")["workers"], "reads are answered")
    check(time.monotonic() - asked < 3, "reads do not wait for commits:", time.monotonic() - asked)
    eventually(lambda: "database has not answered for" in str(one.ok("daemon.status")["problems"]), 5, "daemon.status says so")
    beats = "SELECT name, beat, state FROM duet.worker ORDER BY name"
    before = fleet.sql(beats)
    time.sleep(LEASE + 8)  # longer than the lease: if beats did not count, one would be given up
    after = fleet.sql(beats)
    check(all(int(b[1]) + 4 < int(a[1]) and a[2] == "0" for b, a in zip(before, after)), "beats count:", before, after)
    check(is_alive(record), "the retry attempt goes on, its lease is extended")
    second.start()
    back = time.monotonic()
    again = eventually(lambda: one.ask("task.submit", prompt="true", key="k", needs=["nobody"]).get("result"), 20, "it goes on")
    check(time.monotonic() - back < 12, "went on after", time.monotonic() - back)
    check(not one.ok("daemon.status")["problems"], one.ok("daemon.status"))
    check(fleet.sql("SELECT count(*) FROM duet.request WHERE key = 'k'") == [["1"]], "one submit, one task:", again)
    let_go(path)
    check((one.wait(id)["attempts"], len(lines(path))) == (1, 2), one.get(id), lines(path))
    both_work(one, two)


def disk_full(fleet):
    """The tables' disk is full: submits are refused in the server's words, reads work, ends are told later."""
    place = os.path.join(fleet.server.folder, "small")
    os.mkdir(place)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0777", "tmpfs", place], stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        print("SKIPPED: nothing may be mounted here, so a FULL DISK was not tested:", mounted.stderr.decode(), file=sys.stderr, flush=True)
        return
    try:
        on_a_small_disk(fleet, place)
    finally:
        for worker in fleet.workers:
            worker.kill_family()
        fleet.server.stop("immediate")
        subprocess.run(["umount", place], check=True)


def on_a_small_disk(fleet, place):
    folder = os.path.join(place, "space")
    os.mkdir(folder)
    os.chown(folder, os.stat(fleet.server.data).st_uid, -1)
    os.chmod(folder, 0o700)
    fleet.server.sql(f"CREATE TABLESPACE small LOCATION '{folder}'")
    fleet.server.sql("CREATE DATABASE small TABLESPACE small")
    fleet.database = "small"
    fleet.make_queue()
    one, two = fleet.worker("one"), fleet.worker("two")
    both_work(one, two)
    path, large = two.path("runs"), "echo " + os.urandom(30_000).hex()
    id = one.submit(appends(path) + "; head -c 200000 /dev/urandom | base64", needs=["name=two"])
    record = one.runs(id)
    filler = os.path.join(place, "filler")
    fill(filler)
    begun = time.monotonic()
    answer = one.ask("task.submit", prompt=large, needs=["nobody"])
    while "result" in answer and time.monotonic() - begun < 60:  # there was room left in pages
        fill(filler)
        begun = time.monotonic()
        answer = one.ask("task.submit", prompt=large, needs=["nobody"])
    error, outcome = refused(answer)
    check("No space left" in error["message"] and outcome == "none", answer)
    check(time.monotonic() - begun < 13, "refused after", time.monotonic() - begun)
    check(one.get(id)["state"] == "running", "reads work:", one.get(id))
    let_go(path)
    eventually(lambda: not is_alive(record), what="it ends")
    time.sleep(3)  # its end, with output that there is no room for, is refused meanwhile
    check(one.get(id)["state"] == "running", "not told yet")
    os.truncate(filler, 0)
    free = time.monotonic()
    ended = eventually(lambda: (r := one.get(id))["state"] == "completed" and r, 15, "its end is told")
    check(ended["attempts"] == 1 and len(lines(path)) == 2, ended, lines(path), time.monotonic() - free)
    check(len(one.output(id)) > 200_000, "with its output")
    both_work(one, two)


def fill(path):
    """Writes until there is no room."""
    with open(path, "ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def role_changes(fleet):
    """The primary becomes read-only under open connections (25006) and another one takes over: they find it."""
    first = fleet.server
    second = first.standby(synchronous=True)
    hosts = ",".join(f"{each.folder.replace('/', '%2F')}:{each.port}" for each in (first, second))
    one, two = (fleet.worker(name, url=f"postgresql://tester@{hosts}/{fleet.database}") for name in ("one", "two"))
    path = two.path("runs")
    id = one.submit(appends(path), needs=["name=two"])
    record = one.runs(id)
    first.set(default_transaction_read_only="on")
    second.promote()
    second.set(synchronous_standby_names="")
    changed = time.monotonic()
    fresh = one.submit("true", needs=["name=one"])
    took = time.monotonic() - changed
    check(int(fresh.split("-")[1]) > STEP and took < 8, fresh, "after", took, "s; 6 are allowed")
    check(one.wait(fresh, LEASE + 30)["state"] == "completed", "claims go on")
    let_go(path)
    ended = one.wait(id)
    check((ended["pid"], ended["attempts"], len(lines(path))) == (record["pid"], 1, 2), ended)
    check(first.sql("SELECT count(*) FROM duet.task WHERE id > 1000000", fleet.database) == [["0"]], "nothing is written there")


def packets_vanish(fleet):
    """Connections that are there and carry nothing: they are given up and made anew."""
    with Proxy(fleet.server) as between:
        one, two = fleet.worker("one"), fleet.worker("two", url=between.url(fleet.database))
        both_work(one, two)
        path = two.path("runs")
        id = one.submit(appends(path), onLost="retry", needs=["name=two"])
        record = one.runs(id)
        between.freeze()
        begun = time.monotonic()
        answer = two.ask("task.submit", prompt="true", key="k", needs=["nobody"])
        check("result" in answer or refused(answer), answer)  # "none" if another call was on its way before it
        check(time.monotonic() - begun < 13, "answered after", time.monotonic() - begun)
        eventually(lambda: "result" in two.ask("task.submit", prompt="true", key="k", needs=["nobody"]), 15, "it goes on")
        check(time.monotonic() - begun < 19, "made anew after", time.monotonic() - begun, "s; 15 are allowed")
        check(fleet.sql("SELECT count(*) FROM duet.request WHERE key = 'k'") == [["1"]], "one submit, one task")
        check(is_alive(record) and one.workers() == {"one": "live", "two": "live"}, one.workers())
        let_go(path)
        check((one.wait(id)["attempts"], len(lines(path))) == (1, 2), one.get(id), lines(path))
        for worker in (one, two):
            worker.run("daemon", "stop")


def many_come_back(fleet):
    """The server is killed under 24 daemons: all are back in time, none was refused, and they did not come at once."""
    fleet.server.set(log_connections="on")
    starts = [Later(lambda n=number: fleet.worker(f"w{n:02}", slots=1)) for number in range(24)]
    for start in starts:
        start.result()
    told = "SELECT name, beat, state FROM duet.worker ORDER BY name"
    fleet.server.kill()
    time.sleep(6)  # so long that they have tried several times
    seen = len(fleet.server.log())
    fleet.server.start()
    accepted = time.monotonic()
    before = {row[0]: int(row[1]) for row in fleet.sql(told)}
    check(len(before) == 24, before)
    eventually(lambda: all(int(row[1]) > before[row[0]] for row in fleet.sql(told)), 40, "all beat again")
    took = time.monotonic() - accepted
    check(took < 20, "all were back after", took, "s; 10 are allowed, and a beat is 5")

    def moments():
        return [line.split()[1] for line in fleet.server.log()[seen:].splitlines() if "connection authorized" in line and "duet-rpc" in line]

    eventually(lambda: len(moments()) >= 48, 10, "both connections of each: a beat needs one of them")
    log = fleet.server.log()[seen:]
    check("too many clients" not in log and "remaining connection slots" not in log, log[-2000:])
    seconds = {moment[:8] for moment in moments()}
    check(len(seconds) > 2, "connections in the seconds", sorted(seconds))
    check(all(row[2] == "0" for row in fleet.sql(told)), "nobody is silent")
    print(f"24 daemons: back after {took:.1f} s, connections in {len(seconds)} different seconds", file=sys.stderr)


def wake_ups_refused(fleet):
    """The notify queue is full: what the server then says to each NOTIFY. Tasks start all the same, as nobody relies on them."""
    one, two = fleet.worker("one"), fleet.worker("two")
    both_work(one, two)
    named = fleet.sql("SELECT pg_get_function_identity_arguments('duet.wake_v1'::regproc), pg_get_function_result('duet.wake_v1'::regproc)")[0]
    fleet.sql(f"CREATE OR REPLACE FUNCTION duet.wake_v1({named[0]}) RETURNS {named[1]} LANGUAGE plpgsql SECURITY DEFINER AS "
              "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = 'too many notifications in the NOTIFY queue'; END $$")
    for _ in range(3):
        begun = time.monotonic()
        check(one.wait(one.submit("true", needs=["name=two"]))["state"] == "completed", "it starts")
        check(time.monotonic() - begun < 12, "started after", time.monotonic() - begun, "s; 6.25 are allowed")
    fleet.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'duet-rpc%'")  # LISTEN is lost with them
    for worker in (one, two):
        eventually(lambda w=worker: "result" in w.ask("task.submit", prompt="true"), 20, "it is back")
    both_work(one, two)


def starts_without_database(fleet):
    """A daemon that had joined starts while the database is down, and joins when it is back: what ran goes on."""
    one, two = fleet.worker("one"), fleet.worker("two", lost_after="5m")
    stays, ends = two.path("stays"), two.path("ends")
    ids = {path: one.submit(appends(path), needs=["name=two"]) for path in (stays, ends)}
    records = {path: one.runs(id) for path, id in ids.items()}
    fleet.server.kill()
    two.kill_daemon()
    two.start()
    check(all(is_alive(record) for record in records.values()), "what runs goes on")
    check(two.ok("daemon.status")["problems"] != [], "its status says so")
    for method, params in (("task.get", {"taskId": ids[stays]}), ("task.submit", {"prompt": "true"}), ("task.cancel", {"taskId": ids[stays]}),
                           ("task.list", {}), ("cluster.status", {}), ("queue.pause", {}), ("events.subscribe", {})):
        begun = time.monotonic()
        answer = two.ask(method, **params)
        check(answer.get("error", {}).get("code") == UNAVAILABLE, method, answer)
        check(time.monotonic() - begun < 13, method, "took", time.monotonic() - begun)
    let_go(ends)
    eventually(lambda: not is_alive(records[ends]), what="the end of one")
    restarted = two.run("daemon", "restart", patience=90)
    check(restarted.code == 0, "and again:", restarted)
    fleet.server.start()
    accepted = time.monotonic()
    ended = eventually(lambda: (r := two.ask("task.get", taskId=ids[ends]).get("result")) and r["state"] == "completed" and r, 15, "it is told")
    check(time.monotonic() - accepted < 12, "joined after", time.monotonic() - accepted)
    check((ended["attempts"], ended["worker"]) == (1, "two"), ended)
    again = one.get(ids[stays])
    check((again["state"], again["pid"], again["attempts"]) == ("running", records[stays]["pid"], 1), again)
    let_go(stays)
    check(two.wait(ids[stays])["state"] == "completed" and len(lines(stays)) == 2, lines(stays))
    both_work(one, two)
    fresh = fleet.worker("fresh", start=False)
    fleet.server.kill()
    never = fresh.run("daemon", "start")
    check(never.code == 75, "one that never joined has nothing to go on with:", never)
    fleet.server.start()


class Faults(suite.TestCase):
    def test_a_synchronous_standby_that_is_gone(self):
        scenarios["standby_gone"].result()

    def test_a_disk_that_is_full(self):
        scenarios["disk_full"].result()

    def test_a_role_that_changes(self):
        scenarios["role_changes"].result()

    def test_packets_that_vanish(self):
        scenarios["packets_vanish"].result()

    def test_many_that_come_back_at_once(self):
        scenarios["many_come_back"].result()

    def test_wake_ups_that_are_refused(self):
        scenarios["wake_ups_refused"].result()

    def test_a_start_without_the_database(self):
        scenarios["starts_without_database"].result()


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
