#!/usr/bin/env python3
"""Daemons when a standby takes over under load, when the old primary comes back, and when a backup was restored.

Usage: failover.py --program PATH [unittest options]

All scenarios run at the same time, each with servers of its own: they wait for leases more than they work.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import Failure, eventually, request  # noqa: E402
from fleet import start_time  # noqa: E402
from scenario import Background, appends, check, let_go, lines  # noqa: E402

STEP = 1_000_000
LEASE = 30
scenarios = {}


def setUpModule():
    behind_pooler = [pooled] if server.Bouncer.installed() else []
    for scenario in (synchronous, old_primary, asynchronous, *behind_pooler, one_is_late, restarted, restored_backup, another_server):
        scenarios[scenario.__name__] = Background(scenario, None)


def tearDownModule():
    for one in scenarios.values():
        one.thread.join()


def both(first, second, database):
    """The address of either."""
    hosts = ",".join(f"{one.folder.replace('/', '%2F')}:{one.port}" for one in (first, second))
    return f"postgresql://tester@{hosts}/{database}"


def is_alive(record):
    return start_time(record["pid"]) is not None


def epoch_and_next(worker):
    with worker.connect() as connection:
        result = connection.call("events.subscribe", params={})["result"]
        return result["epoch"], result["next"]


def problems(worker):
    return str(worker.ok("daemon.status")["problems"])


class Load:
    """Submits short tasks at both workers until it is ended; each leaves a line."""

    def __init__(self, workers, path):
        self.workers, self.path = workers, path
        self.acknowledged, self.refused, self.over = {}, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.over.is_set():
            number += 1
            try:
                answer = self.workers[number % 2].ask("task.submit", prompt=f"echo {number} >> {self.path}")
            except (OSError, Failure, ValueError):
                continue
            if "result" in answer:
                self.acknowledged[number] = answer["result"]["taskId"]
            else:
                self.refused += 1
            self.over.wait(0.05)

    def end(self):
        self.over.set()
        self.thread.join()


def check_told(listener, first, last):
    """Who has listened all the time, and asked again when it was told that events may be missing, has every event of the new epoch."""
    seqs, messages = [], []
    while not seqs or seqs[-1] < last:
        message = messages.pop(0) if messages else listener.next_message(30)
        if message["method"] == "event.overflow":
            listener.send(request("events.subscribe", 2, params={"since": message["params"]["seq"]}))
            messages = listener.answer(2)[1]
        else:
            seqs.append(message["params"].get("seq", 0))
    told = [seq for seq in seqs if seq >= first]
    check(told == list(range(first, last + 1)), "of the events", first, "to", last, "not told:", sorted(set(range(first, last + 1)) - set(told)))


def synchronous(fleet):
    """Nothing that was acknowledged is gone, nothing runs twice, and the old primary is refused."""
    first = fleet.server
    second = first.standby(synchronous=True)
    url = both(first, second, fleet.database)
    one, two = (fleet.worker(name, url=url, slots=3) for name in ("one", "two"))
    stays = one.path("stays")
    id = one.submit(appends(stays), needs=["name=two"])
    record = one.runs(id)
    epoch, _ = epoch_and_next(one)
    listeners = [worker.connect() for worker in (one, two)]
    for listener in listeners:
        listener.call("events.subscribe", params={})
    marks = one.path("marks")
    load = Load((one, two), marks)
    eventually(lambda: len(load.acknowledged) > 20, what="some load")
    first.kill()
    second.promote()
    second.set(synchronous_standby_names="")
    accepted = time.monotonic()
    known = len(load.acknowledged)
    eventually(lambda: len(load.acknowledged) > known, 60, "submits go on")
    went_on = time.monotonic() - accepted
    load.end()
    check(went_on < 8, "submits went on after", went_on, "s; 6 are allowed")
    for number, task in load.acknowledged.items():
        check(one.wait(task, LEASE + 30)["state"] == "completed", number, task)
    counted = lines(marks)
    check(len(counted) == len(set(counted)), "ran twice:", [number for number in set(counted) if counted.count(number) > 1])
    check(set(map(str, load.acknowledged)) <= set(counted), "did not run:", set(map(str, load.acknowledged)) - set(counted))
    now = one.get(id)
    check((now["state"], now["pid"], now["attempts"]) == ("running", record["pid"], 1), now)
    other_epoch, next_seq = epoch_and_next(two)
    check(other_epoch != epoch and next_seq > STEP, "a new epoch, moved on:", epoch, other_epoch, next_seq)
    check(max(int(task.split("-")[1]) for task in load.acknowledged.values()) > STEP, "ids moved on")
    let_go(stays)
    check(one.wait(id)["state"] == "completed" and len(lines(stays)) == 2, one.get(id), lines(stays))
    (first_seq, last_seq), = second.sql("SELECT epoch_start, next_seq - 1 FROM duet.meta", fleet.database)
    for listener in listeners:
        with listener:
            check_told(listener, int(first_seq), int(last_seq))


def old_primary(fleet):
    """It is up again beside the new one: who looks for a server passes it by. Alone it is refused."""
    first = fleet.server
    second = first.standby(synchronous=True)
    url = both(first, second, fleet.database)
    one, two = (fleet.worker(name, url=url) for name in ("one", "two"))
    one.wait(two.submit("true"))
    first.kill()
    second.promote()
    second.set(synchronous_standby_names="")
    for worker in (one, two):
        eventually(lambda w=worker: "result" in w.ask("task.submit", prompt="true"), what="it goes on")
    first.start()
    first.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
    first.sql("SELECT pg_reload_conf()")
    two.kill_daemon()
    two.start()
    check(one.wait(two.submit("true", needs=["name=two"]))["state"] == "completed", "the old one stands first in the address")
    check(first.sql("SELECT count(*) FROM duet.task WHERE id > 1000000", fleet.database) == [["0"]], "nothing was written there")
    changed = one.run("cluster", "set", "keep_days=5")
    check(changed.code == 0 and second.sql("SELECT keep_days FROM duet.meta", fleet.database) == [["5"]], "a command passes it by, too:", changed)
    second.stop("immediate")
    changed = one.run("cluster", "set", "keep_days=6")
    check(changed.code == 1 and "old primary" in changed.err, "alone it is refused by a command, too:", changed)
    begun = time.monotonic()
    answer = one.ask("task.submit", prompt="true")
    check(answer.get("error", {}).get("code") == -32003, "the old primary took a task:", answer)
    eventually(lambda: "timeline" in problems(one), 15, f"daemon.status says why: {problems(one)}")
    second.start()
    eventually(lambda: "result" in one.ask("task.submit", prompt="true"), 60, "and with the new one it goes on")
    print(f"old primary: {time.monotonic() - begun:.0f} s", file=sys.stderr)


def hold_back(second):
    """From now on the standby knows nothing new. It is down until it is promoted."""
    second.sql("SELECT pg_wal_replay_pause()")
    eventually(lambda: second.sql("SELECT pg_get_wal_replay_pause_state()") == [["paused"]], what="replay pauses")
    second.stop("immediate")


def take_over(first, second):
    first.kill()
    second.start()
    second.promote()


def caught_up(first, second):
    target = first.sql("SELECT pg_current_wal_lsn()")[0][0]
    eventually(lambda: second.sql(f"SELECT pg_last_wal_replay_lsn() >= '{target}'") == [["t"]], what="the standby has it")


def run_unseen(first, second, one, two, prompt):
    """A task that the standby knows as queued: of its claim by TWO and of all that follows it never hears. Its id and its record."""
    pid = two.lock_holder()
    os.kill(pid, signal.SIGSTOP)  # it takes nothing until the standby hears nothing more
    try:
        id = one.submit(prompt, needs=["name=two"])
        caught_up(first, second)
        hold_back(second)
    finally:
        os.kill(pid, signal.SIGCONT)
    return id, one.runs(id)


def asynchronous(fleet):
    """Claims, starts, ends and submits that the new primary never heard of are told again; none is repeated."""
    first = fleet.server
    second = first.standby()
    url = both(first, second, fleet.database)
    one, two = (fleet.worker(name, url=url, slots=8) for name in ("one", "two"))
    for worker in (one, two):
        check(worker.wait(worker.submit("true", needs=[f"name={worker.name}"]))["state"] == "completed", "both work")
    path = one.path
    names = ("known-running", "known-queued-runs", "known-queued-ends", "new-runs", "new-ends", "known-runs-on")
    files = {name: path(name) for name in names}
    ids = {name: one.submit(appends(files[name]), needs=["name=two"]) for name in ("known-running", "known-runs-on")}
    stopped = one.submit(appends(path("stopped")), needs=["name=two"], retries=2)
    for id in (*ids.values(), stopped):
        one.runs(id)
    pid = two.lock_holder()
    os.kill(pid, signal.SIGSTOP)  # it takes nothing until the standby hears nothing more
    try:
        for name in ("known-queued-runs", "known-queued-ends"):
            ids[name] = one.submit(appends(files[name]), needs=["name=two"])
        cancel = one.submit(appends(path("cancel")), needs=["name=two"])
        caught_up(first, second)
        old_epoch, old_next = epoch_and_next(one)
        hold_back(second)
    finally:
        os.kill(pid, signal.SIGCONT)
    for name in ("new-runs", "new-ends"):
        ids[name] = one.submit(appends(files[name]), needs=["name=two"])
    records = {name: one.runs(id) for name, id in ids.items()}
    one.runs(cancel)
    one.ok("task.cancel", taskId=stopped)
    check(one.wait(stopped)["state"] == "cancelled", "which only the old primary knows")
    for name in ("known-running", "known-queued-ends", "new-ends"):
        let_go(files[name])
        check(one.wait(ids[name])["state"] == "completed", name)
    gone = one.submit("true", needs=["nobody"])
    fence = int(fleet.sql("SELECT max(fence) FROM duet.task")[0][0])
    take_over(first, second)
    accepted = time.monotonic()
    eventually(lambda: "result" in one.ask("task.get", taskId=ids["known-runs-on"]), 20, "reads go on")
    eventually(lambda: epoch_and_next(one)[0] != old_epoch, 20, "a new epoch")
    went_on = time.monotonic() - accepted
    fresh = one.submit("echo $DUET_TASK_FENCE", needs=["name=one"])
    check(int(fresh.split("-")[1]) > STEP, "a task id that was given before?", fresh)
    check(one.wait(fresh, LEASE + 20)["state"] == "completed", "claims go on")
    check(int(one.output(fresh)) > fence + STEP // 2, "fences move on:", one.output(fresh), fence)
    check(epoch_and_next(two)[1] > old_next + STEP // 2, "event numbers move on")
    print(f"asynchronous: a new epoch after {went_on:.1f} s, the first claim after {time.monotonic() - accepted:.1f} s", file=sys.stderr)
    for name in ("known-running", "known-queued-ends", "new-ends"):
        record = eventually(lambda n=name: (r := one.ask("task.get", taskId=ids[n]).get("result")) and r["state"] == "completed" and r, 20,
                            f"the end of {name} is told again: {one.ask('task.get', taskId=ids[name])}")
        check(record["exitCode"] == 0 and record["attempts"] == 1, name, record)
    for name in ("known-queued-runs", "new-runs", "known-runs-on"):
        record = one.get(ids[name])
        check((record["state"], record["pid"], record["attempts"], record["worker"]) == ("running", records[name]["pid"], 1, "two"), name, record)
        let_go(files[name])
        check(one.wait(ids[name])["state"] == "completed", name, one.get(ids[name]))
    for name in names:
        check([line.split()[0] for line in lines(files[name])] == ["begin", "end"], name, "ran as", lines(files[name]))
    one.ok("task.cancel", taskId=cancel)
    check(one.wait(cancel)["state"] == "cancelled", one.get(cancel))
    check(one.wait(stopped)["state"] == "cancelled", "its cancel is told again:", one.get(stopped))
    check(len(lines(path("stopped"))) == 1, "it began again:", lines(path("stopped")))
    answer = one.ask("task.get", taskId=gone)
    check(answer.get("error", {}).get("code") == -32000, "a submit that only the old primary had is gone:", answer)


def pooled(fleet):
    """Behind PgBouncer no connection of a daemon breaks. The new primary is noticed all the same, and nothing is repeated."""
    first = fleet.server
    second = first.standby()
    with server.Bouncer(first) as bouncer:
        url = bouncer.url(fleet.database)
        one, two = (fleet.worker(name, url=url, slots=4) for name in ("one", "two"))
        try:
            for worker in (one, two):
                check(worker.wait(worker.submit("true", needs=[f"name={worker.name}"]))["state"] == "completed", "both work")
            epoch, _ = epoch_and_next(one)
            path = one.path("task")
            id, record = run_unseen(first, second, one, two, appends(path))
            bouncer.lead_to(second, lambda: take_over(first, second))
            eventually(lambda: epoch_and_next(one)[0] != epoch, 30, "a new epoch")
            fresh = one.submit("true", needs=["name=one"])
            check(int(fresh.split("-")[1]) > STEP, "a task id that was given before?", fresh)
            now = eventually(lambda: (r := one.get(id))["state"] == "running" and r, 60, "its daemon tells of it")
            check((now["worker"], now["pid"], now["attempts"]) == ("two", record["pid"], 1), now)
            check(one.wait(fresh, LEASE + 20)["state"] == "completed", "claims go on")
            let_go(path)
            check(one.wait(id, LEASE + 20)["state"] == "completed", one.get(id))
            check([line.split()[0] for line in lines(path)] == ["begin", "end"], "ran as", lines(path))
        finally:
            for worker in fleet.workers:
                worker.run("daemon", "stop")


def one_is_late(fleet):
    """Nobody claims what a worker may be running that has not told yet."""
    first = fleet.server
    second = first.standby()
    url = both(first, second, fleet.database)
    one, two = (fleet.worker(name, url=url, slots=4, lost_after="5m") for name in ("one", "two"))
    one.wait(one.submit("true"))
    one.ok("queue.pause")
    eventually(lambda: two.ok("queue.status")["paused"], what="paused")
    path = one.path("task")
    id = one.submit(appends(path), needs=["here"])
    caught_up(first, second)
    first_pid = one.lock_holder()
    hold_back(second)
    os.kill(first_pid, signal.SIGSTOP)  # so that two takes it
    try:
        two.write_user_settings(two.text.replace("[cluster]\n", '[cluster]\nlabels = ["here"]\n'))
        os.kill(two.lock_holder(), signal.SIGHUP)
        two.ok("queue.resume")
        record = two.runs(id)
    finally:
        os.kill(first_pid, signal.SIGCONT)
    one.write_user_settings(one.text.replace("[cluster]\n", '[cluster]\nlabels = ["here"]\n'))
    os.kill(first_pid, signal.SIGHUP)
    eventually(lambda: "here" in str(one.ok("cluster.status")["workers"][0]["labels"]), 15, "one has the label, too")
    pid = two.lock_holder()
    os.kill(pid, signal.SIGSTOP)
    try:
        take_over(first, second)
        second.sql("UPDATE duet.gate SET paused = false WHERE kind = 'queue'", fleet.database)  # the resume was lost, too
        eventually(lambda: "result" in one.ask("task.get", taskId=id), 20, "one is back")
        end = time.monotonic() + 12
        while time.monotonic() < end:
            state = one.ask("task.get", taskId=id)
            check(state.get("result", {}).get("state", "queued") == "queued", "claimed before all have told:", state)
            time.sleep(0.3)
    finally:
        os.kill(pid, signal.SIGCONT)
    now = eventually(lambda: (r := one.get(id))["state"] == "running" and r, 15, "two tells of it")
    check((now["worker"], now["pid"], now["attempts"]) == ("two", record["pid"], 1), now)
    check(one.wait(one.submit("true", needs=["name=one"]), 15)["state"] == "completed", "claims go on at once")
    let_go(path)
    check(one.wait(id)["state"] == "completed" and len(lines(path)) == 2, one.get(id), lines(path))


def restarted(fleet):
    """A daemon that is killed in a failover that lost commits: what it ran goes on under the next one, and runs once."""
    first = fleet.server
    second = first.standby()
    url = both(first, second, fleet.database)
    one, two = (fleet.worker(name, url=url, slots=4) for name in ("one", "two"))
    for worker in (one, two):
        check(worker.wait(worker.submit("true", needs=[f"name={worker.name}"]))["state"] == "completed", "both work")
    path, middle, last = (one.path(name) for name in ("task", "middle", "last"))
    writes = one.submit(f"echo begin; {appends(middle)}; echo middle; {appends(last)}; echo end", needs=["name=one"])
    eventually(lambda: "begin" in two.output(writes), what="the beginning of its output")
    id, record = run_unseen(first, second, one, two, appends(path))
    let_go(middle)
    eventually(lambda: "middle" in two.output(writes), what="more of its output, which only the old server has")
    quick = one.submit("echo quick", needs=["name=one"])
    check(one.wait(quick)["state"] == "completed", "only the old server knows of it")
    two.kill_daemon()
    take_over(first, second)
    two.start()
    now = eventually(lambda: (r := one.ask("task.get", taskId=id).get("result")) and r["state"] == "running" and r, 60, "its daemon tells of it")
    check((now["worker"], now["pid"], now["attempts"]) == ("two", record["pid"], 1), now)
    let_go(path)
    check(two.wait(id, LEASE + 30)["state"] == "completed", two.get(id))
    check([line.split()[0] for line in lines(path)] == ["begin", "end"], "ran as", lines(path))
    let_go(last)
    check(one.wait(writes, LEASE + 30)["state"] == "completed", one.get(writes))
    check(two.output(writes).split() == ["begin", "middle", "end"], "what the database has:", two.output(writes))
    eventually(lambda: two.ask("task.get", taskId=quick).get("result", {}).get("state") == "completed", 30, "the end of a quick one is told again")
    check(two.output(quick).split() == ["quick"], "what the database has of it:", two.output(quick))


def restored_backup(fleet):
    """A server that lacks more than a minute of what a daemon has seen is refused, with and without a restart."""
    one = fleet.worker("one")
    two = fleet.worker("two")
    one.wait(one.submit("true"))
    fleet.server.stop()
    backup = fleet.server.data + ".backup"
    subprocess.run(["cp", "-a", fleet.server.data, backup], check=True)
    fleet.server.start()
    copied = time.monotonic()
    eventually(lambda: "result" in one.ask("task.submit", prompt="true"), 30, "it goes on")
    with two.connect() as listener:
        listener.call("events.subscribe", params={})
        time.sleep(max(0.0, 70 - (time.monotonic() - copied)))  # what is missing must be more than a minute
        for worker in (one, two):
            worker.wait(worker.submit("true", needs=[f"name={worker.name}"]))
        time.sleep(6)  # a beat: the newest event is remembered
    fleet.server.kill()
    shutil.rmtree(fleet.server.data)
    os.rename(backup, fleet.server.data)
    fleet.server.start()
    for worker in (two, one):
        eventually(lambda w=worker: "problems" not in problems(w) and problems(w) not in ("[]",), 20, f"{worker.name} refuses it")
        answer = worker.ask("task.submit", prompt="true")
        check(answer.get("error", {}).get("code") == -32003, worker.name, "took a task into a restored backup:", answer)
    two.kill_daemon()
    refused = two.run("daemon", "start")
    check(refused.code != 0, "a daemon that had seen more starts on a restored backup:", refused)
    print("restored backup:", refused.err.strip(), file=sys.stderr)


def another_server(fleet):
    """A dump that was restored elsewhere is refused until somebody adopts it."""
    one = fleet.worker("one")
    waits = one.submit("true", needs=["nobody"])
    one.run("daemon", "stop")
    with server.Server() as other:
        other.make_database(fleet.database)
        dump = subprocess.run(["pg_dumpall", "-r", "-d", fleet.server.conninfo()], stdout=subprocess.PIPE, check=True).stdout.decode()
        other.script("\n".join(line for line in dump.splitlines() if "tester" not in line or line.startswith("GRANT")), fleet.database)
        dump = subprocess.run(["pg_dump", fleet.server.conninfo(fleet.database)], stdout=subprocess.PIPE, check=True).stdout.decode()
        other.script(dump, fleet.database)
        for worker in (one, fleet.worker("fresh", start=False)):
            worker.write_user_settings(worker.text.replace(fleet.url(), other.url(fleet.database)))
            refused = worker.run("daemon", "start")
            check(refused.code != 0 and "adopt" in refused.err, worker.name, refused)
        one.write_user_settings(one.text.replace(fleet.url(), both(other, fleet.server, fleet.database)))
        one.start()  # the copy stands first in the address, and is passed by
        check(fleet.sql("SELECT state FROM duet.worker WHERE name = 'one' AND state = 0") == [["0"]], "it has joined the original")
        one.run("daemon", "stop")
        one.write_user_settings(one.text.replace(fleet.url(), other.url(fleet.database)))
        adopted = one.run("cluster", "adopt", "--queue", "cancel")
        check(adopted.code == 0, adopted)
        one.start()
        check(one.get(waits)["state"] == "cancelled", one.get(waits))
        check(one.wait(one.submit("true"))["state"] == "completed", "it is the one to use now")
        one.run("daemon", "stop")


class Failover(suite.TestCase):
    def test_to_a_synchronous_standby(self):
        scenarios["synchronous"].result()

    def test_the_old_primary_comes_back(self):
        scenarios["old_primary"].result()

    def test_to_an_asynchronous_standby(self):
        scenarios["asynchronous"].result()

    def test_behind_a_pooler(self):
        if "pooled" not in scenarios:
            self.skipTest("pgbouncer is not installed")
        scenarios["pooled"].result()

    def test_with_a_worker_that_is_late(self):
        scenarios["one_is_late"].result()

    def test_with_a_daemon_that_is_restarted(self):
        scenarios["restarted"].result()

    def test_a_restored_backup(self):
        scenarios["restored_backup"].result()

    def test_a_restored_dump(self):
        scenarios["another_server"].result()


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
