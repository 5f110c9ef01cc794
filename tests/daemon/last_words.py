#!/usr/bin/env python3
"""A daemon that ends for any reason but a stop leaves its last words, and nothing that was acknowledged is lost."""

import os
import re
import resource
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, Failure, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402

LINE = re.compile(r'(?m)^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) error ended by (SIG\w+)(.*)$')
SETTINGS = 'default_agent = "shell"\nmax_running = 4\nqueue_capacity = 100000\n'


class Ends(ProjectTestCase):
    def words(self, pid, name):
        """The one line in the log, by its fields; behind it stands the stack."""
        found = LINE.findall(self.project.log())
        self.assertEqual([each[1] for each in found], [name], self.project.log())
        self.assertIn(f" pid={pid} version=", found[0][2])
        self.assertRegex(self.project.log(), r"(?m)^\S*duet-rpc\(\S*\+0x[0-9a-f]+\)", "there is no stack")
        return found[0]

    def assert_told(self, pid, how):
        """Without a daemon, and by the next one."""
        status = self.project.run("daemon", "status")
        self.assert_refused(status, 3, f"no daemon is running .*; the last one, pid {pid}, {how}")
        doctor = self.project.run("doctor")
        self.assertRegex(doctor.out, f"last daemon +note +the last one, pid {pid}, {how}")
        self.project.start()
        last = self.project.call("daemon.status")["result"]["last_end"]
        self.assertEqual(last["pid"], pid)
        self.assertRegex(last["how"] + (f" at {last['at']}" if "at" in last else ""), how)
        self.assertRegex(self.project.run("daemon", "status").out, f"(?m)^before +the last one, pid {pid}, {how}")
        self.assert_logged(f'warn  the daemon before was not stopped what="the last one, pid {pid}, {how}')
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assert_forgotten()

    def assert_forgotten(self):
        self.assertNotIn("last one", self.project.run("daemon", "status").err)
        self.project.start()
        self.assertNotIn("last_end", self.project.call("daemon.status")["result"])


class Signals(Ends):
    def test_a_signal_that_ends_it_is_told_with_its_sender(self):
        for name in ("SEGV", "BUS", "FPE", "ILL", "ABRT", "QUIT", "XCPU"):
            with self.subTest(name):
                self.setUp()
                pid = self.project.start()
                os.kill(pid, getattr(signal, f"SIG{name}"))
                self.project.wait_gone(pid)
                line = self.words(pid, f"SIG{name}")
                self.assertIn(f" sender={os.getpid()} ", line[2])
                self.assertIn(' thread="duet-rpc"', line[2])
                self.assertIn(f"ended by SIG{name} at {line[0]}", self.project.run("daemon", "status").err)

    def test_everybody_who_asks_is_told(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSEGV)
        self.project.wait_gone(pid)
        at = self.words(pid, "SIGSEGV")[0]
        self.assert_told(pid, f"ended by SIGSEGV at {at}")

    def test_a_kill_leaves_no_words_but_is_told(self):
        pid = self.project.start()
        self.project.kill(pid)
        self.assertEqual(LINE.findall(self.project.log()), [])
        self.assert_told(pid, "was killed or the machine went down")

    def test_words_of_the_one_before_the_last_are_not_told_again(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSEGV)
        self.project.wait_gone(pid)
        second = self.project.start()
        self.project.kill(second)
        self.assertIn(f"pid {second}, was killed", self.project.run("daemon", "status").err)

    def test_words_are_forgotten_once_the_next_one_is_there(self):
        """It may have the same number, in a container say."""
        pid = self.project.start()
        os.kill(pid, signal.SIGSEGV)
        self.project.wait_gone(pid)
        path = os.path.join(self.project.state, "daemon.last")
        self.assertGreater(os.path.getsize(path), 0)
        second = self.project.start()
        self.assertEqual(os.path.getsize(path), 0)
        self.assertEqual(self.project.call("daemon.status")["result"]["last_end"]["pid"], pid)
        os.kill(second, signal.SIGABRT)
        self.project.wait_gone(second)
        self.assertIn(f"pid {second}, ended by SIGABRT", self.project.run("daemon", "status").err)

    def test_a_start_that_fails_does_not_forget(self):
        pid = self.project.start()
        os.kill(pid, signal.SIGSEGV)
        self.project.wait_gone(pid)
        result = self.project.run("daemon", "start", "--socket", "/nowhere/at/all")
        self.assertEqual(result.code, 1, result)
        self.assertIn("error the daemon cannot start", self.project.log())
        self.assertIn(f"pid {pid}, ended by SIGSEGV", self.project.run("daemon", "status").err)

    def test_a_rotated_log_gets_them_too(self):
        pid = self.project.start()
        log = os.path.join(self.project.state, "daemon.log")
        os.rename(log, log + ".1")
        open(log, "w", encoding="utf-8").close()
        os.kill(pid, signal.SIGSEGV)
        self.project.wait_gone(pid)
        self.words(pid, "SIGSEGV")


class Foreground(Ends):
    def end(self, env=None):
        with self.project.popen("daemon", "start", "--foreground", env=env) as process:
            eventually(lambda: self.project.reachable() == process.pid, what="the daemon answers")
            process.send_signal(signal.SIGSEGV)
            err = process.communicate(timeout=PATIENCE)[1].decode()
            return process.returncode, err

    def test_they_go_to_stderr_and_the_exit_status_stays_that_of_the_signal(self):
        code, err = self.end()
        self.assertEqual(code, -signal.SIGSEGV)
        self.assertEqual([each[1] for each in LINE.findall(err)], ["SIGSEGV"], err)

    def test_what_whoever_started_it_had_ignored_stays_ignored(self):
        def ignore():
            for number in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGSEGV):
                signal.signal(number, signal.SIG_IGN)

        with self.project.popen("daemon", "start", "--foreground", preexec_fn=ignore) as process:
            eventually(lambda: self.project.reachable() == process.pid, what="the daemon answers")
            for number in (signal.SIGQUIT, signal.SIGUSR1):
                process.send_signal(number)
                self.assertEqual(self.project.pid(), process.pid)
            process.send_signal(signal.SIGSEGV)
            err = process.communicate(timeout=PATIENCE)[1].decode()
        self.assertEqual(process.returncode, -signal.SIGSEGV, "a fault of its own is not ignored")
        self.assertEqual([each[1] for each in LINE.findall(err)], ["SIGSEGV"], err)

    def test_they_go_to_the_file_of_duet_rpc_log(self):
        path = os.path.join(self.project.place.name, "own.log")
        self.end({"DUET_RPC_LOG": path})
        with open(path, encoding="utf-8") as file:
            self.assertEqual([each[1] for each in LINE.findall(file.read())], ["SIGSEGV"])


class Faults(Ends):
    """By the methods that only builds for tests have."""

    def setUp(self):
        super().setUp()
        self.pid = self.project.start()
        if "error" in self.project.call("test.sleep", params={"ms": 0}):
            self.skipTest("a build without test methods")

    def provoke(self, method):
        with self.project.connect() as client:
            client.send('{"jsonrpc":"2.0","id":1,"method":"%s"}' % method)
            client.ends()
        self.project.wait_gone(self.pid)

    def test_an_uncaught_exception(self):
        self.provoke("test.uncaught")
        line = self.words(self.pid, "SIGABRT")
        self.assertIn("reason=\"uncaught exception, std::runtime_error: a 'quoted' reason\"", line[2])
        self.assertRegex(line[2], r'ran="transport::FdChannel::Side, test\.uncaught"')

    def test_an_abort(self):
        self.provoke("test.abort")
        line = self.words(self.pid, "SIGABRT")
        self.assertNotIn("sender", line[2])
        self.assertRegex(line[2], r'ran="transport::FdChannel::Side, test\.abort"')

    def test_a_stack_that_overflows(self):
        resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
        self.provoke("test.overflow")
        self.assertRegex(self.words(self.pid, "SIGSEGV")[2], r' address="0x[0-9a-f]+"')

    def test_what_a_callback_throws_ends_nothing_and_is_told(self):
        for count in (1, 2):
            self.project.call("test.defect")
            status = eventually(lambda n=count: self.defects(n), what="the problem is told")
            self.assertEqual(status["health"], "degraded")
            self.assertEqual(status["pid"], self.pid)
        line = re.compile(r'error a callback of the loop failed, which is a defect in="\S+" '
                          r'what="std::runtime_error: nobody expects this" count=1')
        eventually(lambda: line.search(self.project.log()), what="the log tells")
        doctor = self.project.run("doctor")
        self.assertRegex(doctor.out, "loop +wrong +a defect of the program, 2 times")

    def defects(self, count):
        status = self.project.call("daemon.status")["result"]
        told = [each["message"] for each in status["problems"] if each["subsystem"] == "loop"]
        return status if any(f"{count} time" in each and "nobody expects this" in each for each in told) else None

    def test_a_slow_turn_is_logged_with_what_ran_in_it(self):
        self.project.call("test.sleep", params={"ms": 1100})
        line = re.compile(r'warn  a turn of the loop took long ms=(\d+) in="transport::FdChannel::Side, test\.sleep"')
        told = eventually(lambda: line.search(self.project.log()), what="the log tells")
        self.assertGreaterEqual(int(told.group(1)), 1100)
        loop = self.project.call("daemon.status")["result"]["subsystems"]["loop"]
        self.assertGreaterEqual(loop["longest_turn_ms"], 1100)


class UnderLoad(Ends):
    def setUp(self):
        super().setUp()
        with open(os.path.join(self.project.root, ".duet-rpc.toml"), "w", encoding="utf-8") as file:
            file.write(SETTINGS)

    def submit_until_it_ends(self, accepted):
        try:
            with self.project.connect() as client:
                while True:
                    answer = client.call("task.submit", params={"prompt": "true"})
                    accepted.append(answer["result"]["taskId"])
        except (OSError, Failure):
            pass

    def test_nothing_that_was_acknowledged_is_lost(self):
        pid = self.project.start()
        accepted = [[] for _ in range(3)]
        threads = [threading.Thread(target=self.submit_until_it_ends, args=(each,)) for each in accepted]
        for thread in threads:
            thread.start()
        eventually(lambda: all(len(each) > 5 for each in accepted), what="work is coming in")
        os.kill(pid, signal.SIGSEGV)
        for thread in threads:
            thread.join()
        self.project.wait_gone(pid)
        self.words(pid, "SIGSEGV")
        self.assertIn(f"pid {pid}, ended by SIGSEGV at ", self.project.run("daemon", "status").err)
        self.project.start()
        for task in sum(accepted, []):
            ended = self.project.run("task", "wait", task)
            self.assertEqual(ended.code, 0, (task, ended))


if __name__ == "__main__":
    suite.main()
