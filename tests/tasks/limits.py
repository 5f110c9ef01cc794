#!/usr/bin/env python3
"""Limits of tasks: kept by a cgroup of their own where the daemon was handed one, and refused where it was not. What the
machine is short of delays a start, and fails nothing.

What needs cgroups of version 2 with their controllers makes one below the root of all, as root; else it is skipped.
"""

import os
import resource
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import eventually  # noqa: E402
from project import Project, ProjectTestCase  # noqa: E402
from task_project import TaskTestCase  # noqa: E402

MIB = 1 << 20
CONTROLLERS = {"cpu", "memory", "pids"}


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def cgroup_root():
    """Where all cgroups are, or why none can be made there."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split()[4] for line in file if " - cgroup2 " in line and line.split()[3] == "/"]
    if not mounts:
        return None, "no cgroups of version 2 are mounted"
    if os.geteuid() != 0:
        return None, "only root may make a cgroup here"
    missing = CONTROLLERS - set(read(f"{mounts[0]}/cgroup.controllers").split())
    if missing:
        return None, f"cgroups of version 2 have no {', '.join(sorted(missing))} here"
    if os.path.exists("/run/systemd/system"):
        return None, "the cgroups here are systemd's"
    try:
        write(f"{mounts[0]}/cgroup.subtree_control", "+cpu +memory +pids")
    except OSError as error:
        return None, f"controllers cannot be switched on: {error}"
    return mounts[0], None


ROOT, WHY_NOT = cgroup_root()


class Refused(TaskTestCase):
    settings = 'default_agent = "shell"\n[agents.small]\ncommand = ["cat"]\nmemory = "1G"\n'

    def test_a_limit_that_cannot_be_kept_is_refused_with_the_cure(self):
        for limit in ({"memory": 64 * MIB}, {"processes": 5}, {"cpu": 0.5}):
            for place in ({}, store.HERE):
                error = self.error("task.submit", prompt="true", **limit, **place)
                self.assertEqual((error["code"], error["data"]["reason"]), (-32003, "limits-not-kept"), error)
                self.assertIn("cgroup", error["message"])
        self.assertEqual(self.error("task.submit", prompt="true", agent="small", **store.HERE)["data"]["reason"], "limits-not-kept")
        result = self.project.run("task", "submit", "--memory", "64M", "true", *store.HERE_FLAG)
        self.assertEqual(result.code, 1, result)
        self.assertIn("limits cannot be kept", result.err)
        self.assertEqual(self.call("task.stats")["result"]["total"], 0)

    def test_a_limit_that_makes_no_sense_is_no_limit(self):
        for limit in ({"memory": 4095}, {"memory": -1}, {"processes": 0}, {"cpu": 0}, {"cpu": -1}, {"memory": "2G"}):
            self.assertEqual(self.error("task.submit", prompt="true", **limit)["code"], -32602, limit)

    def test_settings_with_such_a_limit_are_a_problem(self):
        problems = self.call("daemon.status")["result"]["problems"]
        self.assertEqual([problem["subsystem"] for problem in problems], ["limits"])
        self.assertIn("agents.small", problems[0]["message"])


class Shortage(TaskTestCase):
    def problems(self):
        return {problem["subsystem"]: problem["message"] for problem in self.call("daemon.status")["result"]["problems"]}

    def test_a_task_waits_for_what_is_short_and_it_is_told(self):
        numbers = [int(name) for name in os.listdir(f"/proc/{self.pid}/fd")]
        usual = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (len(numbers), usual[1]))
        id = self.submit("echo at last")
        told = eventually(lambda: self.problems().get("starts"), what="a problem")
        self.assertRegex(told, "^tasks cannot be started, since 2.*Z: .*Too many open files")
        self.assertEqual(self.get(id)["state"], "queued")
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, usual)
        record = self.wait(id)
        self.assertEqual((record["state"], record["result"], record["attempts"]), ("completed", "at last\n", 1))
        self.assertNotIn("starts", self.problems())


@suite.unittest.skipIf(WHY_NOT, WHY_NOT)
class Kept(TaskTestCase):
    def setUp(self):
        self.cgroup = f"{ROOT}/duet-test-{os.getpid()}"
        os.mkdir(self.cgroup)
        self.addCleanup(self.remove_cgroups)
        ProjectTestCase.setUp(self)
        self.write_settings(self.settings)
        self.daemons = []
        self.addCleanup(lambda: [daemon.communicate() for daemon in self.daemons])
        self.addCleanup(self.project.run, "daemon", "stop", "--force")
        self.pid = self.start()
        self.connect()

    def remove_cgroups(self):
        for name in self.cgroups() + ["duet-rpc-daemon", ""]:
            path = os.path.join(self.cgroup, name)
            if os.path.isdir(path):
                eventually(lambda: not os.path.isdir(path) or self.removed(path), what="an empty cgroup")

    @staticmethod
    def removed(path):
        try:
            os.rmdir(path)
            return True
        except OSError:
            return False

    def cgroups(self):
        return [name for name in os.listdir(self.cgroup) if name.startswith("task-")]

    def start(self, subgroup=""):
        """As systemd starts a service with Delegate=yes, and DelegateSubgroup=."""
        def enter():
            write(f"{self.cgroup}/{subgroup}/cgroup.procs", "0")
            resource.setrlimit(resource.RLIMIT_STACK, (64 * MIB, resource.RLIM_INFINITY))  # it bounds environments, too

        daemon = self.project.popen("daemon", "start", "--foreground", preexec_fn=enter)
        self.daemons.append(daemon)
        eventually(self.project.reachable, what="a daemon")
        return daemon.pid

    def begin(self, prompt, **limits):
        id = self.submit(prompt, **limits)
        record = eventually(lambda: (task := self.get(id))["state"] == "running" and task, what="a running task")
        return id, record["pid"]

    @staticmethod
    def kill_keeper(pid):
        os.kill(int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1]), signal.SIGKILL)

    def test_more_memory_than_allowed_ends_the_task(self):
        hog = f"{sys.executable} -c 'x = bytearray({300 * MIB}); x[::4096] = bytes(len(x[::4096]))' & wait"
        record = self.wait(self.submit(hog, memory=64 * MIB))
        self.assertEqual((record["state"], record["error"]["reason"], record["signal"]), ("failed", "memory", "SIGKILL"))
        self.assertLessEqual(record["maxMemory"], 64 * MIB)
        self.assertGreater(record["maxMemory"], 32 * MIB)
        self.assertEqual(record["metadata"]["memory"], 64 * MIB)
        eventually(lambda: not self.cgroups(), what="its cgroup is removed")

    def test_more_processes_than_allowed_are_refused_to_the_task(self):
        record = self.wait(self.submit("for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; echo all", processes=4))
        self.assertEqual((record["state"], record["result"]), ("failed", ""))
        record = self.wait(self.submit("sleep 0 & sleep 0 & wait; echo all", processes=4))
        self.assertEqual((record["state"], record["result"]), ("completed", "all\n"))

    def test_a_cgroup_has_what_was_asked_for_and_its_keeper_is_not_in_it(self):
        id, pid = self.begin("exec sleep 60", cpu=0.25, processes=1, memory=512 * MIB)
        [name] = self.cgroups()
        for file, content in (("cpu.max", "25000 100000"), ("pids.max", "1"), ("memory.max", str(512 * MIB)),
                              ("cgroup.procs", str(pid))):
            eventually(lambda: read(f"{self.cgroup}/{name}/{file}").strip() == content, what=f"{file} of {content}")
        self.call("task.cancel", taskId=id)
        self.assertEqual(self.wait(id)["state"], "cancelled")
        eventually(lambda: not self.cgroups(), what="its cgroup is removed")

    def test_it_survives_its_daemon(self):
        id, pid = self.begin("while [ ! -e go ]; do sleep 0.1; done; exit 7", memory=512 * MIB)
        self.project.kill(self.pid)
        self.pid = self.start("duet-rpc-daemon")
        self.connect()
        self.assertEqual(len(self.cgroups()), 1)
        write(self.path("go"), "")
        record = self.wait(id)
        self.assertEqual((record["exitCode"], record["pid"]), (7, pid))
        eventually(lambda: not self.cgroups(), what="its cgroup is removed")
        self.assertEqual(self.wait(self.submit("true", memory=64 * MIB))["state"], "completed")

    def test_without_its_keeper_it_is_found_by_its_cgroup(self):
        hidden = "setsid env -i /bin/sh -c '(sleep 1000 &) ; echo > hidden' ; sleep 1000"
        id, pid = self.begin(hidden, memory=512 * MIB)
        eventually(lambda: os.path.exists(self.path("hidden")), what="a hidden process")
        [name] = self.cgroups()
        self.kill_keeper(pid)
        self.assertEqual(self.wait(id)["error"]["reason"], "lost")
        eventually(lambda: not os.path.exists(f"{self.cgroup}/{name}"), what="all are ended, and the cgroup is removed")

    def start_another_daemon(self, more=""):
        """A limited task starts the daemon of another project, which has a task itself. Returns the task and that one's pid."""
        other = Project()
        self.enterContext(other)
        self.addCleanup(other.run, "daemon", "stop", "--force")
        pid_file = os.path.join(other.root, "pid")
        start = f"cd {other.root}; {other.program} daemon start && {other.program} task submit --agent shell"
        id, pid = self.begin(f"({start} 'echo $$ > pid; exec sleep 1000'); {more}", memory=512 * MIB)
        eventually(lambda: os.path.exists(pid_file) and read(pid_file), what="a task of the other daemon")
        self.assertTrue(other.reachable())
        return id, pid, other, int(read(pid_file))

    def test_a_daemon_that_a_task_starts_leaves_its_cgroup_and_outlives_it(self):
        id, _, other, inner = self.start_another_daemon()
        self.assertEqual(self.wait(id)["state"], "completed")
        eventually(lambda: not self.cgroups(), what="the cgroup is removed")
        self.assertTrue(other.reachable())
        self.assertTrue(os.path.exists(f"/proc/{inner}"))
        self.assertEqual(other.run("task", "submit", "--memory", "64M", "--agent", "shell", "true").code, 0)

    def test_a_daemon_that_a_task_starts_outlives_its_keeper(self):
        id, pid, other, inner = self.start_another_daemon("exec sleep 1000")
        self.kill_keeper(pid)
        self.assertEqual(self.wait(id)["error"]["reason"], "lost")
        eventually(lambda: not self.cgroups(), what="the cgroup is removed")
        self.assertTrue(other.reachable())
        self.assertTrue(os.path.exists(f"/proc/{inner}"))

    def test_memory_that_is_exceeded_before_the_program_begins_does_not_end_the_keeper(self):
        environment = {f"LARGE_{number}": "x" * 120_000 for number in range(45)}  # which the kernel copies first
        record = self.wait(self.submit("true", env=environment, memory=4 * MIB))
        self.assertEqual((record["state"], record["error"]["reason"]), ("failed", "memory"), record)

    def test_the_keeper_is_not_measured(self):
        record = self.wait(self.submit("exec true", memory=64 * MIB, cpu=1))
        self.assertLess(record["maxMemory"], MIB)

    def test_a_task_may_divide_its_cgroup(self):
        divide = "own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); mkdir -p $own/a/b; "
        hide = "setsid sh -c 'echo $$ > $0/a/b/cgroup.procs; echo > hidden; sleep 1000' $own & "
        until = "while [ ! -e hidden ]; do sleep 0.01; done; "
        self.assertEqual(self.wait(self.submit(divide + hide + until, memory=512 * MIB))["state"], "completed")
        eventually(lambda: not self.cgroups(), what="its cgroups are removed")
        os.remove(self.path("hidden"))
        id, pid = self.begin(divide + hide.replace("setsid", "setsid env -i") + until + "sleep 1000", memory=512 * MIB)
        eventually(lambda: os.path.exists(self.path("hidden")), what="a hidden process")
        self.kill_keeper(pid)
        self.assertEqual(self.wait(id)["error"]["reason"], "lost")
        eventually(lambda: not self.cgroups(), what="its cgroups are removed")

    def test_one_that_the_next_daemon_cannot_limit_waits(self):
        self.write_settings('default_agent = "shell"\nmax_running = 1\n')
        os.kill(self.pid, signal.SIGHUP)
        first, _ = self.begin("while [ ! -e go ]; do sleep 0.1; done")
        second = self.submit("echo limited", memory=64 * MIB)
        self.project.kill(self.pid)
        self.pid = self.project.start()  # in the cgroup of this test
        self.connect()
        write(self.path("go"), "")
        self.wait(first)
        eventually(lambda: any(problem["subsystem"] == "starts" and second in problem["message"]
                               for problem in self.call("daemon.status")["result"]["problems"]), what="a problem")
        self.assertEqual(self.get(second)["state"], "queued")
        self.project.run("daemon", "stop")
        self.pid = self.start("duet-rpc-daemon")
        self.connect()
        self.assertEqual(self.wait(second)["state"], "completed")


if __name__ == "__main__":
    suite.main()
