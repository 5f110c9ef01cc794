#!/usr/bin/env python3
"""Real daemons on one queue: what a user sees of two machines, and of each fault that one of them may have.

Usage: daemons.py --program PATH [unittest options]

What needs a whole lease is in leases.py, faults of the database are in faults.py and failover.py, what must not be seen is in canaries.py.
"""

import datetime
import json
import os
import shutil
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402
from fleet import Fleet, read_file, start_time  # noqa: E402
from project import Project  # noqa: E402
from scenario import Later, lines  # noqa: E402

UNAVAILABLE, WRONG = -32003, -32602
LIMITS = "[groups.batch]\nmax_running = 1\n[agents.slow]\ncommand = [\"/bin/sh\", \"-c\", \"{prompt}\"]\nmax_running = 1\n"

shared = None


def setUpModule():
    global shared
    shared = server.Server(settings={"max_connections": "120"})
    shared.__enter__()


def tearDownModule():
    shared.__exit__()


def is_alive(record):
    return start_time(record["pid"]) is not None


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class FleetTestCase(suite.TestCase):
    """Tests with a queue each, or with one for the class that has two workers."""

    options = None  # of the two workers of a class

    @classmethod
    def setUpClass(cls):
        if cls.options is not None:
            cls.fleet = Fleet(suite.program(), shared).__enter__()
            cls.addClassCleanup(cls.fleet.__exit__)
            cls.pair = cls.fleet.worker("one", **cls.options), cls.fleet.worker("two", **cls.options)

    def setUp(self):
        if self.options is None:
            self.fleet = Fleet(suite.program(), shared).__enter__()
            self.addCleanup(self.fleet.__exit__)
        self.addCleanup(self.show_logs)

    def show_logs(self):
        if self.has_failed():
            print(self.fleet.logs(), file=sys.stderr)

    def two(self):
        return self.pair if self.options is not None else (self.fleet.worker("one"), self.fleet.worker("two"))


class Together(FleetTestCase):
    options = {"slots": 4}

    def test_submitted_here_run_there_seen_from_both(self):
        one, two = self.two()
        id = one.submit("echo hello; echo there >&2; exit 3", needs=["name=two"])
        for worker in (one, two):
            record = worker.wait(id)
            self.assertEqual((record["state"], record["exitCode"], record["worker"], record["result"]), ("failed", 3, "two", "hello\n"))
            self.assertEqual(worker.output(id), "hello\nthere\n")
        followed = one.run("task", "submit", "--needs", "name=two", "--follow", "echo a; sleep 1; echo b; exit 5")
        self.assertEqual((followed.code, followed.out), (5, "a\nb\n"), followed)
        late = two.submit("true", after=[one.submit("sleep 1", needs=["name=one"])])
        self.assertEqual(one.wait(late)["state"], "completed")

    def test_one_key_is_one_task_at_either(self):
        one, two = self.two()
        self.assertEqual(one.submit("true", key="k"), two.submit("true", key="k"))

    def test_output_is_followed_from_elsewhere_as_it_comes(self):
        one, two = self.two()
        id = two.submit("echo first; sleep 4; echo last", needs=["name=two"])
        one.runs(id)
        begun = time.monotonic()
        with one.popen("task", "output", "--follow", id) as follow:
            self.assertEqual(follow.stdout.readline(), b"first\n")
            self.assertLess(time.monotonic() - begun, 3.5)
            self.assertEqual(follow.stdout.read(), b"last\n")

    def test_output_is_followed_at_a_daemon_that_read_no_events_when_its_task_began(self):
        one, two = self.two()
        go = two.path("go")
        id = one.submit(f"echo first; until [ -e {go} ]; do sleep 0.05; done; echo second; sleep 4; echo last", needs=["name=two"],
                        delaySeconds=4)  # by then it reads none any more
        one.runs(id)
        with two.popen("task", "output", "--follow", id) as follow:
            self.assertEqual(follow.stdout.readline(), b"first\n")
            begun = time.monotonic()
            open(go, "w").close()
            self.assertEqual(follow.stdout.readline(), b"second\n")
            self.assertLess(time.monotonic() - begun, 2, "as it comes, and not at the end")
            self.assertEqual(follow.stdout.read(), b"last\n")

    def test_a_cancel_reaches_a_task_that_runs_elsewhere(self):
        one, two = self.two()
        mark = two.path("terminated")
        id = one.submit(f"trap 'date +%s.%N > {mark}; exit 0' TERM; echo ready; while :; do sleep 0.05; done", needs=["name=two"])
        eventually(lambda: "ready" in one.output(id), what="the trap stands")
        begun = time.time()
        one.ok("task.cancel", taskId=id)
        told = float(eventually(lambda: read_file(mark), what="TERM").decode())
        self.assertLess(told - begun, 2.5, "TERM follows within 1 s, and a beat here is 5 s")
        self.assertEqual(one.wait(id)["state"], "cancelled")
        self.assertEqual(two.get(id)["state"], "cancelled")

    def test_a_task_waits_for_a_worker_with_its_labels(self):
        one, _ = self.two()
        id = one.submit("true", needs=["gpu"])
        eventually(lambda: one.get(id).get("waitingFor") == "no worker with gpu", 6, "waitingFor")
        self.fleet.worker("three", cluster='labels = ["gpu", "os=debian"]')
        record = one.wait(id)
        self.assertEqual((record["state"], record["worker"]), ("completed", "three"))
        self.assertNotIn("waitingFor", record)

    def test_a_limit_goes_to_a_worker_that_can_keep_it(self):
        one, _ = self.two()
        limit = {"memory": 64 << 20}
        if any("limit=memory" in worker["labels"] for worker in one.ok("cluster.status")["workers"]):
            self.skipTest("the daemons of this machine can keep limits")
        error = one.ask("task.submit", prompt="true", **limit)["error"]
        self.assertEqual((error["code"], error["data"]["reason"]), (UNAVAILABLE, "limits-not-kept"))
        four = self.fleet.worker("four")
        os.kill(four.pid(), signal.SIGSTOP)
        self.fleet.sql("UPDATE duet.worker SET labels = labels || '{limit=memory}' WHERE name = 'four'")  # as of one that can
        answer = eventually(lambda: one.ask("task.submit", prompt="true", delaySeconds=3600, **limit).get("result"), what="it is known here")
        self.assertEqual(one.get(answer["taskId"])["needs"], ["limit=memory"])
        one.run("cluster", "drain", "four")
        eventually(lambda: one.get(answer["taskId"]).get("waitingFor") == "the only workers with limit=memory are draining", what="waitingFor")
        one.ok("task.cancel", taskId=answer["taskId"])

    def test_here_is_here(self):
        one, two = self.two()
        folder = os.path.realpath(one.home)
        ids = [one.run("task", "submit", "--here", "--cwd", folder, "pwd; echo $PATH", env={"PATH": "/only/here:/usr/bin:/bin"}).out.strip()
               for _ in range(4)]
        for id in ids:
            self.assertEqual(two.wait(id)["worker"], "one")
            self.assertEqual(two.output(id), f"{folder}\n/only/here:/usr/bin:/bin\n")
        self.assertEqual(one.ask("task.submit", prompt="true", cwd=folder)["error"]["code"], WRONG)
        os.mkdir(one.path("sub"))
        os.mkdir(two.path("sub"))
        id = one.submit("pwd", cwd=one.path("sub"), needs=["name=two"])
        one.wait(id)
        self.assertEqual(one.output(id), f"{two.path('sub')}\n")


class Accepting(FleetTestCase):
    def test_an_agent_that_nobody_accepts_is_refused(self):
        one = self.fleet.worker("one")
        two = self.fleet.worker("two", accept="[]")
        self.assertEqual(one.ask("task.submit", prompt="true", agent="nothing")["error"]["code"], UNAVAILABLE)
        for _ in range(4):
            self.assertEqual(one.wait(one.submit("true"))["worker"], "one", "two does not accept shell")
        self.assertIn(two.wait(two.submit("true"))["worker"], ("one", "two"))


class Control(FleetTestCase):
    """Pauses, holds and limits are the queue's."""

    options = {"accept": '["shell", "slow"]', "cluster": LIMITS}

    def most_at_once(self, files):
        """By the times that tasks wrote: how many ran at the same time at most."""
        moments = []
        for line in [line for file in files for line in lines(file)]:
            begin, end = line.split()
            moments += [(float(begin), 1), (float(end), -1)]
        most = now = 0
        for _, step in sorted(moments):
            now += step
            most = max(most, now)
        return most

    def run_many(self, one, two, **params):
        log = one.path(f"times-{self.id()}")
        prompt = f"b=$(date +%s.%N); sleep 0.4; echo $b $(date +%s.%N) >> {log}"
        ids = [(one, two)[at % 2].submit(prompt, **params) for at in range(6)]
        workers = {one.wait(id)["worker"] for id in ids}
        self.assertEqual(len(lines(log)), 6)
        return self.most_at_once([log]), workers

    def test_limits_of_groups_are_counted_over_all(self):
        one, two = self.two()
        most, _ = self.run_many(one, two, group="batch")
        self.assertEqual(most, 1)

    def test_limits_of_agents_are_counted_over_all(self):
        one, two = self.two()
        most, _ = self.run_many(one, two, agent="slow")
        self.assertEqual(most, 1)

    def test_without_limits_both_work(self):
        one, two = self.two()
        most, workers = self.run_many(one, two)
        self.assertEqual((workers, most > 2), ({"one", "two"}, True))

    def test_two_edits_at_once_both_count(self):
        one, two = self.two()
        id = one.submit("true", delaySeconds=3600)
        for turn in range(1, 16):
            edits = [threading.Thread(target=one.ok, args=("task.edit",), kwargs={"taskId": id, "prompt": f"echo {turn}"}),
                     threading.Thread(target=two.ok, args=("task.edit",), kwargs={"taskId": id, "priority": turn})]
            for edit in edits:
                edit.start()
            for edit in edits:
                edit.join()
            body = json.loads(self.fleet.sql(f"SELECT body FROM duet.request WHERE task = {id.removeprefix('task-')}")[0][0])
            self.assertEqual((body["prompt"], body["priority"]), (f"echo {turn}", turn))
        one.ok("task.edit", taskId=id, delaySeconds=0)
        self.assertEqual(two.wait(id)["result"], "15\n")

    def test_pauses_and_holds_count_everywhere(self):
        one, two = self.two()
        one.ok("queue.pause")
        eventually(lambda: two.ok("queue.status")["paused"], 6, "the pause is seen there")
        id = two.submit("true")
        held = one.submit("true", group="batch")
        two.ok("task.hold", taskId=held)
        self.assertTrue(one.get(held)["held"])
        two.ok("queue.resume")
        self.assertEqual(one.wait(id)["state"], "completed")
        self.assertEqual(one.get(held)["state"], "queued")
        one.ok("queue.pause", group="batch")
        one.ok("task.release", taskId=held)
        self.assertEqual(two.wait(two.submit("true"))["state"], "completed", "the other group goes on")
        self.assertEqual(two.get(held)["state"], "queued")
        two.ok("queue.resume", group="batch")
        self.assertEqual(one.wait(held)["state"], "completed")


class Events(FleetTestCase):
    def read(self, worker, since, until=None):
        """Events from SINCE on, up to UNTIL (not with it) or to what there is now; and the epoch."""
        with worker.connect() as connection:
            connection.send(request("events.subscribe", 1, params={"since": since}))
            answer, events = connection.answer(1)
            result = answer["result"]
            self.assertFalse(result.get("missed"), answer)
            until = until or result["next"]
            while len(events) < until - since:
                events.append(connection.next_message())
            return [event["params"] | {"method": event["method"]} for event in events[:until - since]], result["epoch"]

    def test_since_goes_on_at_another_daemon(self):
        one, two = self.two()
        for at in range(6):
            one.wait((one, two)[at % 2].submit(f"exit {at % 2}"))
        total = int(self.fleet.sql("SELECT count(*) FROM duet.event")[0][0])
        self.assertGreaterEqual(total, 6 * 3 + 2)
        first, epoch = self.read(one, 1, 8)
        rest, other_epoch = self.read(two, 8, total + 1)
        self.assertEqual(epoch, other_epoch)
        self.assertEqual([event["seq"] for event in first + rest], list(range(1, total + 1)))
        self.assertEqual(self.read(one, 1, total + 1)[0], first + rest, "the same for both")
        for task in {event["taskId"] for event in first + rest if "taskId" in event}:
            kinds = [event["method"].removeprefix("event.task") for event in first + rest if event.get("taskId") == task]
            self.assertEqual(kinds[:2], ["Queued", "Started"])
            self.assertIn(kinds[2:], (["Completed"], ["Failed"]))

    def test_what_happens_there_is_heard_here(self):
        one, two = self.two()
        with one.connect() as connection:
            connection.call("events.subscribe", params={})
            id = two.submit("true", needs=["name=two"])
            methods = []
            while "event.taskCompleted" not in methods:
                event = connection.next_message()
                if event["params"].get("taskId") == id:
                    methods.append(event["method"])
            self.assertEqual(methods, ["event.taskQueued", "event.taskStarted", "event.taskCompleted"])
            three = self.fleet.worker("three")

            def change():
                while (event := connection.next_message())["method"] != "event.workerChanged":
                    self.assertEqual(event["method"], "event.taskOutput", "the end of it")
                return event["params"]["worker"], event["params"]["state"]
            self.assertEqual(change(), ("three", "live"))
            three.run("daemon", "stop")
            self.assertEqual(change(), ("three", "gone"))


class Names(FleetTestCase):
    def test_a_name_is_one_daemons(self):
        one = self.fleet.worker("one")
        other = self.fleet.worker("one", start=False)
        refused = other.run("daemon", "start")
        self.assertNotEqual(refused.code, 0, refused)
        self.assertIn("one", refused.err)
        self.assertEqual(one.workers(), {"one": "live"})
        one.run("daemon", "stop")
        other.start()
        self.assertEqual(other.wait(other.submit("true"))["state"], "completed")

    def copy(self, one, name):
        """A worker whose state folder is a copy of that of ONE, which goes on."""
        other = self.fleet.worker(name, start=False)
        shutil.copytree(one.root, other.root, dirs_exist_ok=True,
                        ignore=lambda folder, names: [n for n in names if n.endswith(".sock") or n in ("daemon.lock", "daemon.pid")])
        return other

    def test_a_copied_folder_is_another_worker(self):
        one = self.fleet.worker("one")
        marks = one.path("marks")
        id = one.submit(f"echo x >> {marks}; until [ -e {one.path('go')} ]; do sleep 0.05; done")
        record = one.runs(id)
        refused = self.copy(one, "one").run("daemon", "start")
        self.assertNotEqual(refused.code, 0, "it has the name of one that is live")
        other = self.copy(one, "other")
        shutil.copy(os.path.join(one.state, "daemon.pid"), os.path.join(other.state, "daemon.pid"))
        status = other.run("daemon", "status")
        self.assertNotIn("was killed", status.out + status.err, "it is the other one's, and lives")
        started = other.run("daemon", "start")
        self.assertIn("another worker", started.err)
        self.assertIn("another worker", other.log())
        self.assertNotIn("was not stopped", other.log())
        other.run("daemon", "stop")
        self.assertEqual(other.run("daemon", "start").err, "", "it is told once")
        self.assertEqual(other.workers(), {"one": "live", "other": "live"})
        self.assertEqual(other.wait(other.submit("true", needs=["name=other"]))["state"], "completed")
        self.assertTrue(is_alive(record))
        with open(one.path("go"), "w", encoding="ascii"):
            pass
        self.assertEqual((one.wait(id)["state"], lines(marks)), ("completed", ["x"]))


    def test_a_name_may_be_as_long_as_a_label(self):
        name = "n" * 64
        one = self.fleet.worker(name)
        for words in (["--here"], ["--needs", "name=" + name]):
            id = one.run("task", "submit", *words, "true").out.strip()
            self.assertEqual(one.wait(id)["worker"], name)
        self.assertEqual(one.ask("task.submit", prompt="true", needs=["x" * 65])["error"]["code"], WRONG)
        self.assertEqual(one.ask("task.submit", prompt="true", needs=["name=" + "x" * 65])["error"]["code"], WRONG)


class Outage(suite.TestCase):
    def test_who_waits_waits_on_over_a_restart_of_the_daemon(self):
        server.skip_unless_installed()
        with Fleet(suite.program()) as fleet:
            one = fleet.worker("one")
            id = one.submit(f"echo begun; until [ -e {one.path('go')} ]; do sleep 0.05; done; echo done")
            one.runs(id)
            waiting = [one.popen(*words) for words in (["task", "wait", id], ["task", "output", "-f", id])]
            events = one.popen("events", "--since", "1")
            self.assertTrue(events.stdout.readline(), "it has subscribed")
            self.assertIn(b"begun", waiting[1].stdout.readline(), "it follows")
            eventually(lambda: one.ok("daemon.status")["subsystems"]["ipc"]["clients"] >= 4, what="all are connected, and we")
            fleet.server.stop("immediate")
            one.kill_daemon()
            one.start()  # it goes on without its queue
            late = one.popen("task", "wait", id)
            time.sleep(3)
            for process in [*waiting, events, late]:
                self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            fleet.server.start()
            with open(one.path("go"), "w", encoding="ascii"):
                pass
            for process in [*waiting, late]:
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0, (out, err, fleet.logs()))
            reader = Later(lambda: next((line for line in events.stdout if b"taskCompleted" in line), None))
            reader.thread.join(60)
            self.assertTrue(reader.value, "it does not tell of the end")
            events.terminate()
            events.communicate(timeout=20)


class DaemonDies(FleetTestCase):
    def test_its_tasks_go_on_and_nobody_notices(self):
        one, two = self.two()
        go = two.path("go")
        stays = one.submit(f"until [ -e {go} ]; do sleep 0.05; done; echo end", needs=["name=two"])
        ends = one.submit(f"sleep 1; echo ended; echo x >> {two.path('ended')}; exit 4", needs=["name=two"])
        record = one.runs(stays)
        one.runs(ends)
        two.kill_daemon()
        eventually(lambda: lines(two.path("ended")), what="the end without a daemon")
        time.sleep(0.3)
        two.start()
        begun = time.monotonic()
        record_of_end = eventually(lambda: (r := one.get(ends))["state"] == "failed" and r, 3, "the end is told within 2 s")
        self.assertEqual((record_of_end["exitCode"], one.output(ends)), (4, "ended\n"), time.monotonic() - begun)
        again = one.get(stays)
        self.assertEqual((again["state"], again["pid"], again["attempts"]), ("running", record["pid"], 1))
        self.assertEqual(one.workers(), {"one": "live", "two": "live"})
        states = self.fleet.sql("SELECT params FROM duet.event WHERE kind = 'workerChanged'")
        self.assertEqual({json.loads(row[0])["state"] for row in states}, {"live"})
        with open(go, "w", encoding="ascii"):
            pass
        self.assertEqual((one.wait(stays)["state"], one.output(stays)), ("completed", "end\n"))
        self.assertEqual(len(lines(two.path("ended"))), 1)

    def test_stop_leaves_and_restart_stays(self):
        one, two = self.two()
        go = two.path("go")
        id = one.submit(f"until [ -e {go} ]; do sleep 0.05; done", needs=["name=two"])
        record = one.runs(id)
        worker = self.fleet.sql("SELECT id FROM duet.worker WHERE name = 'two'")
        restarted = two.run("daemon", "restart")
        self.assertEqual(restarted.code, 0, restarted)
        self.assertEqual(one.workers()["two"], "live")
        self.assertEqual(self.fleet.sql("SELECT id FROM duet.worker WHERE name = 'two'"), worker)
        self.assertEqual((one.get(id)["pid"], is_alive(record)), (record["pid"], True))
        with open(go, "w", encoding="ascii"):
            pass
        self.assertEqual(one.wait(id)["state"], "completed")
        blockers = [one.submit("sleep 60", needs=["name=two"]) for _ in range(2)]
        for blocker in blockers:
            one.runs(blocker)
        queued = one.submit("true", needs=["name=two"])
        stopped = two.run("daemon", "stop")
        self.assertEqual(stopped.code, 0, stopped)
        self.assertNotEqual(one.workers().get("two"), "live", "it has left")
        for blocker in blockers:
            self.assertIn(one.wait(blocker, 10)["state"], ("failed", "cancelled"), "it was ended by the stop")
        eventually(lambda: one.get(queued).get("waitingFor"), 6, "nobody is there for it")
        taker = self.fleet.worker("two")
        self.assertEqual((taker.wait(queued)["state"], taker.workers()["two"]), ("completed", "live"))


    def test_a_stop_that_waits_for_its_tasks_is_seen_by_others(self):
        one, two = self.two()
        go = two.path("go")
        id = one.submit(f"until [ -e {go} ]; do sleep 0.05; done", needs=["name=two"])
        one.runs(id)
        stopping = Later(lambda: two.run("daemon", "stop", "--drain"))
        eventually(lambda: one.workers()["two"] == "draining", what="the queue knows")
        queued = one.submit("true", needs=["name=two"])
        eventually(lambda: one.get(queued).get("waitingFor"), 6, "nobody is there for it")
        with open(go, "w", encoding="ascii"):
            pass
        self.assertEqual(stopping.result().code, 0)
        self.assertEqual(one.wait(id)["state"], "completed")

    def test_a_task_that_waits_for_a_slot_says_so_at_each_daemon(self):
        one, two = self.two()
        ids = [one.submit("sleep 60", needs=["name=two"]) for _ in range(3)]
        for id in ids[:2]:
            one.runs(id)
        for daemon in (one, two):
            self.assertEqual([reason["reason"] for reason in daemon.ok("task.explain", taskId=ids[2])["reasons"]], ["slot"])
        for id in ids:
            one.ok("task.cancel", taskId=id)

    def test_a_restart_that_would_be_refused_leaves_the_daemon(self):
        one, _ = self.two()
        one.write_user_settings(one.text.replace('project = "site"', 'project = "another"'))
        refused = one.run("daemon", "restart")
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("site", refused.err)
        one.write_user_settings(one.text.replace('store = "postgresql:', 'store = "nosql:'))
        self.assertEqual(one.run("daemon", "restart").code, 1)
        one.write_user_settings(one.text)
        self.assertEqual(one.run("daemon", "status").code, 0)
        local = Project(program=suite.program())
        self.addCleanup(local.clean_up)
        local.write_user_settings('default_agent = "shell"\n')
        local.start()
        local.run("task", "submit", "sleep 60")
        local.write_user_settings(one.text.replace('name = "one"', 'name = "local"'))
        refused = local.run("daemon", "restart")
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("has 1 task that has not ended", refused.err)
        self.assertEqual(local.run("daemon", "status").code, 0)
        local.run("daemon", "stop", "--force")


class Pooled(FleetTestCase):
    def test_behind_a_pooler_all_works_by_polling(self):
        if not server.Bouncer.installed():
            self.skipTest("pgbouncer is not installed")
        with server.Bouncer(shared) as bouncer:
            url = bouncer.url(self.fleet.database)
            one, two = (self.fleet.worker(name, url=url) for name in ("one", "two"))
            try:
                ids = [one.submit("echo hello", needs=["name=two"]) for _ in range(4)]
                for id in ids:
                    self.assertEqual((one.wait(id)["state"], one.output(id)), ("completed", "hello\n"))
                id = one.submit("true", needs=["name=two"])
                record = one.wait(id)
                self.assertLess(moment(record["startedAt"]) - moment(record["createdAt"]), 4, "1.3 s are allowed")
                database = one.ok("cluster.status")["database"]
                self.assertEqual((database["wakeUps"], database["pooler"]), ("poll", True))
                id = one.submit("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", needs=["name=two"])
                eventually(lambda: "ready" in one.output(id), what="it runs")
                one.ok("task.cancel", taskId=id)
                self.assertEqual(one.wait(id, 15)["state"], "cancelled", "with the next beat at the latest")
            finally:
                for worker in self.fleet.workers:
                    worker.run("daemon", "stop")


if __name__ == "__main__":
    server.skip_unless_installed()
    suite.main()
