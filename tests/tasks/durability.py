#!/usr/bin/env python3
"""An accepted task survives: the daemon is killed at any instant, the disk is full, syncs fail.

    durability.py --program PATH [--rounds N]      N rounds of kills, 15 unless given
"""

import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import PATIENCE, Failure, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402

CLIENTS = 8
SETTINGS = 'default_agent = "shell"\nmax_running = 4\nqueue_capacity = 100000\nkeep_tasks = 100000\n'


class Effects:
    """Tasks that leave one more line in a file of their own each time they run."""

    def __init__(self, project):
        self.folder = os.path.join(project.place.name, "effects")
        os.mkdir(self.folder)
        self.lock = threading.Lock()
        self.asked = 0
        self.accepted = {}  # token -> task id
        self.refused = set()

    def submit(self, connection, patience=PATIENCE):
        """One task more; the answer."""
        with self.lock:
            self.asked += 1
            token = f"token-{self.asked}"
        prompt = f"echo ran >> {self.folder}/{token}"
        answer = connection.call("task.submit", params={"prompt": prompt}, patience=patience)
        with self.lock:
            if "result" in answer:
                self.accepted[token] = answer["result"]["taskId"]
            else:
                self.refused.add(token)
        return answer

    def runs(self, token):
        try:
            with open(os.path.join(self.folder, token), encoding="ascii") as file:
                return len(file.readlines())
        except FileNotFoundError:
            return 0


def submit_until_gone(project, effects):
    """Submits one task after the other until the daemon is gone."""
    try:
        with project.connect() as connection:
            while True:
                effects.submit(connection)
    except (OSError, Failure):
        pass


class DurabilityTestCase(ProjectTestCase):
    def set_up_project(self, project):
        project.write_settings(SETTINGS)
        return Effects(project)

    def wait_until_all_ended(self, project, patience=4 * PATIENCE):
        def ended():
            stats = project.call("task.stats")["result"]
            return stats["queued"] == 0 and stats["running"] == 0
        eventually(ended, patience, "the end of all tasks")

    def check(self, project, effects):
        """Every accepted task exists and has run once, no refused one has run, and none has run twice."""
        with project.connect() as connection:
            for token, id in effects.accepted.items():
                record = connection.call("task.get", params={"taskId": id}).get("result")
                self.assertIsNotNone(record, f"{id} was accepted and is gone")
                self.assertEqual((record["state"], record["attempts"]), ("completed", 1), record)
                self.assertEqual(effects.runs(token), 1, f"runs of {id}")
        ids = collections.Counter(effects.accepted.values())
        self.assertEqual([id for id, count in ids.items() if count > 1], [], "an id was given twice")
        for number in range(1, effects.asked + 1):
            token = f"token-{number}"
            self.assertLessEqual(effects.runs(token), 0 if token in effects.refused else 1, token)


class Killed(DurabilityTestCase):
    def test_no_accepted_task_is_lost_or_run_twice(self):
        effects = self.set_up_project(self.project)
        chance = random.Random(os.environ.get("DUET_SEED"))
        for number in range(int(suite.option("rounds") or 15)):
            pid = self.project.start()
            before = len(effects.accepted)
            clients = [threading.Thread(target=submit_until_gone, args=(self.project, effects)) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            if number % 5:  # some are killed before anything is accepted
                eventually(lambda: len(effects.accepted) > before + 1, what="work is coming in")
            time.sleep(chance.uniform(0.001, 0.15))
            self.project.kill(pid)
            for client in clients:
                client.join()
        self.project.start()
        self.wait_until_all_ended(self.project)
        self.assertGreater(len(effects.accepted), 20)
        self.check(self.project, effects)


@unittest.skipUnless(os.geteuid() == 0, "only root can make a small disk")
@store.only_sqlite("the disk that is full is this machine's")
class FullDisk(DurabilityTestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="duet-disk-")
        self.addCleanup(os.rmdir, self.place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "duet-test", self.place], check=False,
                                 stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.place], check=False)
        self.project = self.new_project()
        self.project.root = os.path.join(self.place, "project")
        self.project.state = os.path.join(self.project.root, ".aiwg", "daemon")
        self.project.socket = os.path.join(self.project.state, "daemon.sock")
        os.makedirs(os.path.join(self.project.root, ".git"))

    @staticmethod
    def fill(ballast):
        with open(ballast, "wb", buffering=0) as file:
            for size in (65536, 512):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass

    def test_what_does_not_fit_is_refused_and_what_was_accepted_runs(self):
        effects = self.set_up_project(self.project)
        self.project.start()
        ballast = os.path.join(self.place, "ballast")
        with self.project.connect() as connection:
            for _ in range(10):
                self.assertIn("result", effects.submit(connection))
            self.fill(ballast)
            answers = [effects.submit(connection) for _ in range(400)]
            refusals = [answer for answer in answers if "error" in answer]
            self.assertTrue(refusals, "the disk was never full")
            error = refusals[-1]["error"]
            self.assertEqual((error["code"], error["data"]["subsystem"]), (-32003, "store"))
            status = connection.call("daemon.status")["result"]
            self.assertEqual(status["health"], "degraded")
            self.assertIn("store", [problem["subsystem"] for problem in status["problems"]])
            os.unlink(ballast)
            eventually(lambda: connection.call("daemon.status")["result"]["health"] == "healthy", what="health")
            self.assertIn("result", effects.submit(connection))
        self.wait_until_all_ended(self.project)
        self.check(self.project, effects)


def can_trace():
    """Whether strace can make the system calls of another process fail here."""
    if shutil.which("strace") is None:
        return False
    probe = subprocess.run(["strace", "-qq", "-o", os.devnull, "-e", "inject=getppid:error=EIO", "true"], check=False,
                           stderr=subprocess.DEVNULL)
    return probe.returncode == 0


class FailingSyncs:
    """Every fsync and fdatasync of a process fails while this lasts."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", os.devnull, "-p", str(self.pid), "-e", "trace=fsync,fdatasync",
             "-e", "inject=fsync,fdatasync:error=EIO"], stderr=subprocess.DEVNULL)
        eventually(lambda: all(self.tracer_of(thread) == self.tracer.pid for thread in self.threads()), what="a tracer")
        return self

    def threads(self):
        return os.listdir(f"/proc/{self.pid}/task")

    def tracer_of(self, thread):
        with open(f"/proc/{self.pid}/task/{thread}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("TracerPid:")).split()[1])

    def __exit__(self, *exception):
        self.tracer.send_signal(signal.SIGINT)
        self.tracer.wait(PATIENCE)


@unittest.skipUnless(can_trace(), "strace is needed")
@store.only_sqlite("the syncs that fail are this machine's")
class SyncFails(DurabilityTestCase):
    def test_nothing_is_accepted_while_syncs_fail_and_what_was_refused_never_runs(self):
        effects = self.set_up_project(self.project)
        pid = self.project.start()
        with self.project.connect() as connection:
            effects.submit(connection)
            self.wait_until_all_ended(self.project)
            with FailingSyncs(pid):
                for _ in range(5):
                    error = effects.submit(connection)["error"]
                    self.assertEqual((error["code"], error["data"]["subsystem"]), (-32003, "store"))
                self.assertEqual(connection.call("daemon.status")["result"]["health"], "degraded")
            eventually(lambda: connection.call("daemon.status")["result"]["health"] == "healthy", what="health")
            self.assertIn("result", effects.submit(connection))
        self.wait_until_all_ended(self.project)
        self.project.kill(pid)
        self.project.start()
        self.check(self.project, effects)

    def test_what_was_refused_is_not_there_after_a_crash_either(self):
        effects = self.set_up_project(self.project)
        pid = self.project.start()
        with self.project.connect() as connection:
            effects.submit(connection)
            self.wait_until_all_ended(self.project)
            with FailingSyncs(pid):
                self.assertEqual(effects.submit(connection)["error"]["code"], -32003)
                self.project.kill(pid)
        self.project.start()
        self.assertEqual(self.project.call("task.stats")["result"]["total"], 1)
        self.check(self.project, effects)


if __name__ == "__main__":
    suite.main()
