#!/usr/bin/env python3
"""What needs a whole lease (30 s, the shortest there is): workers that are gone, stopped or cut off, and a database that is down.

Usage: leases.py --program PATH [unittest options]

All scenarios run at the same time, each with a queue of its own: they wait for leases more than they work.
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import Failure, eventually  # noqa: E402
from database_proxy import DROP, STALL, Proxy  # noqa: E402
from fleet import start_time  # noqa: E402
from scenario import Background, Later, appends, check, happens, let_go, lines  # noqa: E402

UNAVAILABLE = -32003
shared = None
scenarios = {}


def setUpModule():
    global shared
    shared = server.Server(settings={"max_connections": "120"})
    shared.__enter__()
    for scenario in (worker_gone, daemon_killed, keepers_killed, daemon_stopped, cut_off, answers_cut_off, changes_cut_off):
        scenarios[scenario.__name__] = Background(scenario, shared)
    for scenario in (database_killed, database_down):
        scenarios[scenario.__name__] = Background(scenario, None)


def tearDownModule():
    for one in scenarios.values():
        one.thread.join()
    shared.__exit__()


def is_alive(record):
    return start_time(record["pid"]) is not None


def worker_gone(fleet):
    """A worker's machine is gone: silent after the lease; retry tasks run elsewhere, fail tasks are lost."""
    one = fleet.worker("one")
    two = fleet.worker("two", slots=4, lost_after="45s")
    again, never = one.path("again"), one.path("never")
    one.ok("queue.pause")
    retry = one.submit(appends(again), onLost="retry", priority=5)
    fail = one.submit(appends(never), onLost="fail", priority=5)
    blockers = [one.submit("sleep 15", needs=["name=one"], priority=9) for _ in range(2)]
    one.ok("queue.resume")
    records = [two.runs(id) for id in (retry, fail)]
    check({record["worker"] for record in records} == {"two"}, records)
    two.kill_whole()
    begun = time.monotonic()
    eventually(lambda: not is_alive(records[0]), 5, "a retry attempt dies with its keeper")
    two.kill_family()
    eventually(lambda: one.workers()["two"] == "silent", 60, "two is silent")
    silent = time.monotonic() - begun
    check(25 < silent < 46, "silent after", silent, "s")
    check(one.get(fail).get("silent") is True or one.get(fail)["state"] == "failed", one.get(fail))
    record = eventually(lambda: (r := one.get(retry))["state"] == "running" and r["worker"] == "one" and r, 10, "it runs elsewhere")
    check(record["attempts"] == 2, record)
    let_go(again)
    check(one.wait(retry)["state"] == "completed", one.get(retry))
    check([line.split()[:2] for line in lines(again)] == [["begin", "two"], ["begin", "one"], ["end", "one"]], lines(again))
    lost = one.wait(fail, 60)
    check((lost["state"], lost["error"]["reason"], lost["attempts"]) == ("failed", "lost", 1), lost)
    check(len(lines(never)) == 1, lines(never))
    check(time.monotonic() - begun < 80, "lost after", time.monotonic() - begun, "s")
    for blocker in blockers:
        check(one.wait(blocker)["state"] == "completed", one.get(blocker))
    two.start()
    check(one.wait(one.submit("true", needs=["name=two"]))["state"] == "completed", "it may come back")
    check(one.get(fail)["state"] == "failed", "lost for good")


def daemon_killed(fleet):
    """A daemon is dead until its tasks are lost. Their keepers saw how they ended: that is kept as `late`."""
    one = fleet.worker("one")
    two = fleet.worker("two", slots=4, lost_after="30s")
    before, after, never = (one.path(name) for name in ("before", "after", "never"))
    ids = [one.submit(appends(path) + "; exit 6", needs=["name=two"]) for path in (before, after, never)]
    records = [one.runs(id) for id in ids]
    two.kill_daemon()
    let_go(before)
    for id in ids:
        lost = one.wait(id, 100)
        check((lost["state"], lost["error"]["reason"], lost.get("late")) == ("failed", "lost", None), lost)
    let_go(after)
    eventually(lambda: not is_alive(records[1]), what="its end")
    two.start()
    for id in ids[:2]:
        record = eventually(lambda i=id: (r := one.get(i)).get("late") and r, 15, f"its end is told, though late: {one.get(id)}")
        check((record["state"], record["late"]["exitCode"]) == ("failed", 6), record)
    eventually(lambda: not is_alive(records[2]), 15, "what is not its own any more is ended")
    record = eventually(lambda: (r := one.get(ids[2])).get("late") and r, 15, "and that is told")
    check(record["late"]["signal"] == "SIGTERM", record)
    check(one.wait(one.submit("true", needs=["name=two"]))["state"] == "completed", "it works again")


def keepers_killed(fleet):
    """Three attempts that were lost with their keepers are enough."""
    one = fleet.worker("one")
    path = one.path("task")
    id = one.submit(appends(path), onLost="retry", retries=1)
    for attempt in (1, 2, 3):
        record = eventually(lambda a=attempt: (r := one.get(id))["state"] == "running" and r["attempts"] == a and r, 20, f"attempt {attempt}")
        eventually(lambda a=attempt: len(lines(path)) == a, what="it has written that it began")
        keeper = parent(record["pid"])
        check(keeper in one.keepers(), "no keeper:", keeper, one.keepers())
        os.kill(keeper, signal.SIGKILL)
    lost = one.wait(id)
    check((lost["state"], lost["error"]["reason"], lost["attempts"]) == ("failed", "lost", 3), lost)
    check(len(lines(path)) == 3, lines(path))


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def daemon_stopped(fleet):
    """SIGSTOP for longer than the lease, then SIGCONT: a new incarnation, nothing twice."""
    one = fleet.worker("one", lost_after="5m", slots=4)
    two = fleet.worker("two", lost_after="5m", slots=4)
    again, ends, stays = two.path("again"), two.path("ends"), two.path("stays")
    one.ok("queue.pause")
    ids = {name: one.submit(appends(name), onLost=lost, needs=needs) for name, lost, needs in (
        (ends, "fail", ["name=two"]), (stays, "fail", ["name=two"]))}
    retry = one.submit(appends(again), onLost="retry", priority=-1)
    blockers = [one.submit("sleep 12", needs=["name=one"], priority=9) for _ in range(4)]
    one.ok("queue.resume")
    for id in ids.values():
        two.runs(id)
    record = two.runs(retry)
    check(record["worker"] == "two", record)
    secret = fleet.sql("SELECT incarnation FROM duet.worker WHERE name = 'two'")
    pid = two.lock_holder()
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    try:
        let_go(ends)
        eventually(lambda: not is_alive(record), 40, "the keeper ends the retry attempt")
        ended = time.monotonic() - begun
        check(13 < ended < 27, "two thirds of the lease are 20 s, then 5 s of TERM; it was", ended)
        eventually(lambda: one.workers()["two"] == "silent", 60, "silent")
        eventually(lambda: (r := one.get(retry))["state"] == "running" and r["worker"] == "one", 10, "it runs elsewhere")
        eventually(lambda: len(lines(again)) > 1, what="its shell has written")
        begins = [line.split() for line in lines(again)]
        check(len(begins) == 2 and begins[1][1] == "one", begins)
        check(one.get(ids[stays]).get("silent") is True, one.get(ids[stays]))
    finally:
        os.kill(pid, signal.SIGCONT)
    back = eventually(lambda: (r := one.get(ids[ends]))["state"] == "completed" and r, 10, "its end counts")
    check(back["attempts"] == 1, back)
    eventually(lambda: one.workers()["two"] == "live", 10, "two is back")
    check(fleet.sql("SELECT incarnation FROM duet.worker WHERE name = 'two'") != secret, "a new incarnation")
    check(one.get(ids[stays])["state"] == "running" and "silent" not in one.get(ids[stays]), one.get(ids[stays]))
    let_go(stays)
    let_go(again)
    check(one.wait(ids[stays])["state"] == "completed", one.get(ids[stays]))
    check(one.wait(retry)["worker"] == "one", one.get(retry))
    check(len(lines(ends)) == 2 and len(lines(stays)) == 2 and len(lines(again)) == 3, lines(ends), lines(stays), lines(again))
    for blocker in blockers:
        one.wait(blocker)


def cut_off(fleet):
    """A worker that the database is out of reach for: as gone to the others, but its fail attempts go on and count."""
    with Proxy(shared) as between:
        one = fleet.worker("one", lost_after="5m", slots=4)
        two = fleet.worker("two", url=between.url(fleet.database), lost_after="5m", slots=4)
        again, stays = two.path("again"), two.path("stays")
        blockers = [one.submit("sleep 12", needs=["name=one"]) for _ in range(4)]
        for blocker in blockers:
            one.runs(blocker)
        retry, fail = (two.submit(appends(path), onLost=lost) for path, lost in ((again, "retry"), (stays, "fail")))
        records = [two.runs(id) for id in (retry, fail)]
        check({record["worker"] for record in records} == {"two"}, records)
        between.up.mode = between.down.mode = STALL
        begun = time.monotonic()
        answer = two.ask("task.submit", prompt="true")
        check(answer.get("error", {}).get("code") == UNAVAILABLE and "outcome" in answer["error"]["data"], answer)
        check(time.monotonic() - begun < 13, "refused after", time.monotonic() - begun)
        eventually(lambda: not is_alive(records[0]), 40, "the retry attempt is ended there")
        check(time.monotonic() - begun < 27, "ended after", time.monotonic() - begun)
        check(is_alive(records[1]), "the fail attempt goes on")
        eventually(lambda: (r := one.get(retry))["state"] == "running" and r["worker"] == "one", 60, "it runs elsewhere")
        check(time.monotonic() - begun > 24, "not before the lease is over")
        let_go(stays)
        eventually(lambda: not is_alive(records[1]), what="the end")
        between.kind()
        between.cut()
        back = eventually(lambda: (r := one.get(fail))["state"] == "completed" and r, 12, "its end counts within 10 s")
        check(back["attempts"] == 1, back)
        let_go(again)
        check(one.wait(retry)["worker"] == "one", one.get(retry))
        check(len(lines(stays)) == 2 and len(lines(again)) == 3, lines(stays), lines(again))
        check(two.wait(two.submit("true", needs=["name=two"]))["state"] == "completed", "it works again")
        for worker in (one, two):
            worker.run("daemon", "stop")


class Cutter:
    """Lets a worker's commits happen and their answers be lost."""

    def __init__(self, between, worker):
        self.between, self.worker = between, worker

    def without_answers(self, act, is_committed):
        """ACT while nothing comes back from the server; the connections end as soon as the server has done it.

        A connection that was busy with another call has not sent it: then it is done once more.
        """
        for _ in range(5):
            self.worker.wait(self.worker.submit("true", needs=[f"name={self.worker.name}"]))  # both connections are up
            eventually(lambda: self.worker.ok("daemon.status")["problems"] == [], what="no problem")
            self.between.down.mode = DROP
            later = Later(act)
            done = happens(is_committed, 8)
            self.between.cut()
            self.between.kind()
            result = later.result()
            if done or happens(is_committed, 3):
                return result
        raise Failure("it was never committed")


def number(id):
    return id.removeprefix("task-")


def answers_cut_off(fleet):
    """A commit whose answer is lost, of a submit, a cancel, a claim and an end: each is found again, none is repeated."""
    with Proxy(shared) as between:
        one = fleet.worker("one")
        two = fleet.worker("two", url=between.url(fleet.database), slots=4)
        without_answers = Cutter(between, two).without_answers
        path = two.path("task")

        def state(id):
            return fleet.sql(f"SELECT state FROM duet.task WHERE id = {number(id)}")[0][0]

        waiting = "SELECT 1 FROM duet.task WHERE state = 1"
        id = without_answers(lambda: two.submit(appends(path), needs=["gpu"]), lambda: fleet.sql(waiting) != [])
        check(len(fleet.sql(waiting)) == 1, "one submit, one task")
        answer = without_answers(lambda: two.ask("task.cancel", taskId=id), lambda: state(id) == "5")
        check("result" in answer, "a cancel whose answer was cut off is refused:", answer)
        check(one.get(id)["state"] == "cancelled", one.get(id))
        claimed = without_answers(lambda: one.submit(appends(path), needs=["name=two"]),
                                  lambda: fleet.sql("SELECT 1 FROM duet.task WHERE state = 2") != [])
        record = one.runs(claimed, 20)
        check((record["attempts"], len(eventually(lambda: lines(path)))) == (1, 1), record, lines(path))
        without_answers(lambda: let_go(path), lambda: state(claimed) == "3")
        record = one.wait(claimed)
        check((record["state"], record["attempts"], len(lines(path))) == ("completed", 1, 2), record, lines(path))
        check(two.wait(two.submit("true", needs=["name=two"]), 30)["state"] == "completed", "it goes on")
        events = [row[0] for row in fleet.sql(f"SELECT kind FROM duet.event WHERE task = {number(claimed)} ORDER BY id")]
        check(events == ["taskQueued", "taskStarted", "taskCompleted"], events)
        for worker in (one, two):
            worker.run("daemon", "stop")


def changes_cut_off(fleet):
    """The same of what people change: each is answered by what is there then, as if nothing had happened."""
    with Proxy(shared) as between:
        two = fleet.worker("two", url=between.url(fleet.database))
        cutter = Cutter(between, two)
        id = two.submit("true", needs=["gpu"])

        def change(what, committed, **params):
            """The result of the change; COMMITTED says in SQL whether it is made."""
            answer = cutter.without_answers(lambda: two.ask(what, **params), lambda: fleet.sql(f"SELECT {committed}") == [["t"]])
            check("result" in answer, what, "was refused:", answer)
            return answer["result"]

        task = f"FROM duet.task WHERE id = {number(id)}"
        change("task.hold", f"held {task}", taskId=id)
        check(two.get(id)["held"] is True, two.get(id))
        edited = change("task.edit", f"rank = ~7::bigint {task}", taskId=id, priority=7, prompt="echo edited")
        check((edited["priority"], edited["prompt"]) == (7, "echo edited"), edited)
        change("task.release", f"NOT held {task}", taskId=id)
        paused = "coalesce((SELECT g.paused FROM duet.gate g WHERE g.kind = 'group' AND g.name = 'default'), false)"
        check(change("queue.pause", paused, group="default")["changed"] is True, "it was we who paused it")
        two.ok("queue.resume", group="default")
        change("task.cancel", f"state = 5 {task}", taskId=id)
        removed = change("task.remove", f"NOT EXISTS (SELECT {task})", taskIds=[id])
        check(removed["removed"] == [id], removed)
        two.run("daemon", "stop")


def database_killed(fleet):
    """kill -9 of postgres: all goes on by itself, nothing is lost, nothing runs twice."""
    one, two = fleet.worker("one"), fleet.worker("two")
    marks = one.path("marks")
    before = [one.submit(f"echo {at} >> {marks}; sleep 3", needs=["name=two"]) for at in range(2)]
    after = [one.submit(f"echo {at} >> {marks}", needs=["name=two"]) for at in range(2, 6)]
    for id in before:
        two.runs(id)
    fleet.server.kill()
    fleet.server.start()
    accepted = time.monotonic()
    answer = one.ask("task.submit", prompt=f"echo 6 >> {marks}")
    check("result" in answer, answer)
    check(time.monotonic() - accepted < 8, "went on after", time.monotonic() - accepted)
    for id in [*before, *after, answer["result"]["taskId"]]:
        check(one.wait(id)["state"] == "completed", one.get(id))
    check(sorted(lines(marks)) == [str(at) for at in range(7)], "none is lost, none ran twice:", lines(marks))
    check(two.workers() == {"one": "live", "two": "live"}, two.workers())


def database_down(fleet):
    """Without the database submits are refused in time, tasks go on, and nobody is silent."""
    one, two = fleet.worker("one"), fleet.worker("two")
    marks = two.path("marks")
    id = one.submit(f"echo begin >> {marks}; sleep 4; echo end >> {marks}; exit 6", needs=["name=two"])
    record = two.runs(id)
    fleet.server.kill()
    begun = time.monotonic()
    answer = one.ask("task.submit", prompt="true")
    check(answer.get("error", {}).get("code") == UNAVAILABLE, answer)
    outcome = answer["error"]["data"]["outcome"]
    check(outcome in ("none", "unknown") and time.monotonic() - begun < 13, answer, time.monotonic() - begun)
    begun = time.monotonic()
    read = one.ask("task.get", taskId=id)
    check(read.get("error", {}).get("code") == UNAVAILABLE and time.monotonic() - begun < 13, read)
    check(one.ok("daemon.status")["problems"] != [], "its status says so")
    eventually(lambda: lines(marks) == ["begin", "end"], what="the task goes on")
    eventually(lambda: not is_alive(record), what="and ends")
    time.sleep(max(0, 12 - (time.monotonic() - begun)))  # with the time before, longer than a third of the lease
    fleet.server.start()
    ended = eventually(lambda: (r := one.ask("task.get", taskId=id).get("result")) and r["state"] == "failed" and r, 8, "its end, within 6 s")
    check((ended["exitCode"], ended["attempts"]) == (6, 1), ended)
    check(one.workers() == {"one": "live", "two": "live"}, one.workers())
    if outcome == "none":
        check(fleet.sql("SELECT count(*) FROM duet.task") == [["1"]], "it never turns up")
    eventually(lambda: one.ok("daemon.status")["problems"] == [], 10, "no problem is left")


class WhenALeaseEnds(suite.TestCase):
    def test_a_worker_that_is_gone(self):
        scenarios["worker_gone"].result()

    def test_a_daemon_that_is_dead_until_its_tasks_are_lost(self):
        scenarios["daemon_killed"].result()

    def test_keepers_that_are_killed(self):
        scenarios["keepers_killed"].result()

    def test_a_daemon_that_was_stopped(self):
        scenarios["daemon_stopped"].result()

    def test_answers_that_are_cut_off(self):
        scenarios["answers_cut_off"].result()

    def test_changes_whose_answers_are_cut_off(self):
        scenarios["changes_cut_off"].result()

    def test_a_database_that_is_killed(self):
        scenarios["database_killed"].result()

    def test_a_database_that_is_down(self):
        scenarios["database_down"].result()

    def test_a_worker_that_is_cut_off(self):
        scenarios["cut_off"].result()


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
