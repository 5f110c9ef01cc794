"""The rows about daemons: real ones, each a project of its own, that share a queue on one server."""

import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/cluster"))

import fleet  # noqa: E402

CALLS = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
OURS = " AND toplevel AND query NOT LIKE '%pg_stat_statements%'"
CLAIMS = " AND NOT toplevel AND query LIKE '%SKIP LOCKED%' AND query LIKE '%duet.task r WHERE r.lane%'"  # each look for a task


def share(values, part):
    values = sorted(values)
    return values[min(int(part * len(values)), len(values) - 1)]


class Daemons:
    def __init__(self, one, program, part):
        """`part`: of the usual number of tasks and workers."""
        self.one, self.program, self.part = one, program, part

    def some(self, count):
        return max(int(count * self.part), 5)

    def queue(self):
        return fleet.Fleet(self.program, shared=self.one)

    # -- 50 idle workers --

    def idle(self, seconds=40):
        """What idle workers ask, and how many of them a submit makes look."""
        with self.queue() as all:
            all.sql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            many = self.some(50)
            workers = [all.worker(f"w{i}", lease="90s", lost_after="10m") for i in range(many)]
            workers[0].submit("true")  # there is a lane to look at
            time.sleep(20)  # more than a beat: all know of it, and the last of them has looked around
            statements, claims = self.count(all, seconds)
            submits = max(int(seconds / 2), 5)
            quiet_claims = claims / seconds

            def submit_some():
                for i in range(submits):
                    workers[i % many].submit("true")
                    time.sleep(seconds / submits)
            begin = time.monotonic()
            _, busy = self.count(all, 2, submit_some)
            caused = (busy - quiet_claims * (time.monotonic() - begin)) / submits
            return {"idle-statements": statements / seconds / many, "idle-claims": max(caused, 0)}

    @staticmethod
    def count(all, seconds, work=lambda: None):
        """Statements and claims while that is done and so long after it."""
        with fleet.server.Session(all.server.conninfo(all.database)) as session:
            before = [int(session.one(CALLS + kind)) for kind in (OURS, CLAIMS)]
            work()
            time.sleep(seconds)
            return [int(session.one(CALLS + kind)) - old for kind, old in zip((OURS, CLAIMS), before)]

    # -- two daemons --

    def pair(self, all):
        """One that runs tasks, and one that only submits and watches."""
        return all.worker("runs", slots=4), all.worker("watches", cluster="run = false")

    def wait(self):
        """From a task's last word to the answer of task.wait on another daemon, ms."""
        with self.queue() as all:
            runs, watches = self.pair(all)
            seen = []
            for i in range(self.some(40)):
                path = runs.path(f"end-{i}")
                id = runs.submit(f"sleep 0.3; date +%s.%N >{path}")
                watches.wait(id)
                seen.append(1000 * (time.time() - stamp(path)))
            return {"wait": share(seen, 0.5)}

    def follow(self):
        """From a task's first word until `task output --follow` on another daemon prints it, ms."""
        with self.queue() as all:
            runs, watches = self.pair(all)
            seen = []
            for _ in range(self.some(40)):
                id = runs.submit("sleep 1; date +%s.%N; sleep 1")
                with watches.popen("task", "output", id, "--follow") as reader:
                    line = reader.stdout.readline()
                    seen.append(1000 * (time.time() - float(line)))
                    reader.communicate(timeout=60)
            return {"follow": share(seen, 0.99)}

    def start(self):
        """From before a submit on one daemon to the first word of the task on another, over that of a daemon alone, ms."""
        with self.queue() as all, fleet.Project(program=str(self.program)) as alone:
            runs, watches = self.pair(all)
            alone.write_user_settings('default_agent = "shell"\n')
            alone.start()
            local, shared = [], []
            for i in range(self.some(60)):
                local.append(self.started(alone, alone.root, i))
                shared.append(self.started(watches, runs.root, i))
            return {"start": statistics.median(shared) - statistics.median(local), "start-alone": statistics.median(local)}

    @staticmethod
    def started(submitter, root, number):
        path = f"{root}/start-{number}"
        with submitter.connect() as connection:
            begin = time.time()
            answer = connection.call("task.submit", params={"prompt": f"date +%s.%N >{path}"})
            id = answer["result"]["taskId"]
            connection.call("task.wait", id=2, params={"taskId": id, "timeoutSeconds": 60})
        return 1000 * (stamp(path) - begin)


def stamp(path):
    return float(fleet.read_file(path))
