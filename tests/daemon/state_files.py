#!/usr/bin/env python3
"""The daemon's files: who may open them, how long their names may be, and what happens when they go."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import Failure, eventually, request  # noqa: E402
from project import NOBODY, Connection, ProjectTestCase, held  # noqa: E402

BACK = 30  # seconds; 5 by contract, of a machine that has nothing else to do


def exchange(one, other):
    """Two names in one step: the daemon never finds either of them missing."""
    at_here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(at_here, os.fsencode(one), at_here, os.fsencode(other), both) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), one)


class Watch:
    """Looks at a file's mode as fast as it can; `widest` are all bits that were ever seen."""

    def __init__(self, path):
        self.path, self.widest, self.looks, self.over = path, 0, 0, False
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over:
            try:
                self.widest |= stat.S_IMODE(os.stat(self.path).st_mode)
                self.looks += 1
            except FileNotFoundError:
                pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.over = True
        self.thread.join()


class Modes(ProjectTestCase):
    def test_the_socket_is_never_wider_than_0600(self):
        with Watch(self.project.socket) as watch:
            for _ in range(5):
                pid = self.project.start(preexec_fn=lambda: os.umask(0))
                os.unlink(self.project.socket)
                eventually(self.project.reachable, BACK, "the socket is back")
                self.project.kill(pid, signal.SIGTERM)
                self.project.wait_gone(pid)
        self.assertGreater(watch.looks, 0)
        self.assertEqual(oct(watch.widest), oct(0o600))

    def test_the_folder_is_0700_and_every_file_0600(self):
        for mask in (0o000, 0o022, 0o077):
            project = self.new_project()
            project.start(preexec_fn=lambda mask=mask: os.umask(mask))
            self.assertEqual(stat.S_IMODE(os.stat(project.state).st_mode), 0o700)
            for folder, _, names in os.walk(project.state):
                for name in names:
                    path = os.path.join(folder, name)
                    self.assertEqual(oct(stat.S_IMODE(os.lstat(path).st_mode)), oct(0o600), name)
            above = stat.S_IMODE(os.stat(os.path.join(project.root, ".aiwg")).st_mode)
            self.assertEqual(above & 0o022, 0, "others could replace the folder below")
            with open(os.path.join(project.state, ".gitignore"), encoding="ascii") as file:
                self.assertEqual(file.read(), "*\n")

    def test_a_folder_that_was_opened_is_closed_again(self):
        self.project.start()
        self.project.run("daemon", "stop")
        os.chmod(self.project.state, 0o777)
        self.project.start()
        self.assertEqual(stat.S_IMODE(os.stat(self.project.state).st_mode), 0o700)


class NotAFolder(ProjectTestCase):
    """Something else stands where the state folder should be: it is left as it is."""

    def assert_left_alone(self, make):
        os.mkdir(os.path.join(self.project.root, ".aiwg"))
        make(self.project.state)
        before = os.lstat(self.project.state)
        self.assert_refused(self.project.run("daemon", "start"), 1, r"\.aiwg/daemon", "move it away", "--project")
        self.assert_refused(self.project.run("daemon", "status"), 3, "no daemon is running")
        self.assertTrue(os.path.samestat(before, os.lstat(self.project.state)))

    def test_a_plain_file(self):
        self.assert_left_alone(lambda path: open(path, "w").close())

    def test_a_dangling_link(self):
        self.assert_left_alone(lambda path: os.symlink("nowhere", path))

    def test_a_link_to_a_folder_with_another_purpose(self):
        other = os.path.join(self.project.place.name, "other")
        os.mkdir(other, 0o755)
        self.assert_left_alone(lambda path: os.symlink(other, path))
        self.assertEqual(os.listdir(other), [])
        self.assertEqual(stat.S_IMODE(os.stat(other).st_mode), 0o755)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
class OtherUsers(ProjectTestCase):
    """Runs the daemon as root and asks as nobody, and the other way round."""

    def as_nobody(self, function):
        """What FUNCTION returns in a process of another user; an exception comes as its class's name."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                answer = function()
            except BaseException as fault:  # noqa: BLE001
                answer = type(fault).__name__
            os.write(write_end, json.dumps(answer).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return json.loads(text)

    def connect_and_ask(self):
        with Connection(self.project.socket) as client:
            try:
                client.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
            except BrokenPipeError:
                pass
            return client.next_line() is None

    def open_everything(self):
        os.chmod(self.project.place.name, 0o755)
        for path in (os.path.join(self.project.root, ".aiwg"), self.project.state):
            os.chmod(path, 0o777)
        os.chmod(self.project.socket, 0o666)

    def test_another_user_is_refused_although_the_modes_were_opened(self):
        pid = self.project.start()
        self.assertIn(self.as_nobody(self.connect_and_ask), ("PermissionError", "FileNotFoundError"))
        self.open_everything()
        self.assertIs(self.as_nobody(self.connect_and_ask), True, "the connection was not closed")
        self.assertEqual(self.project.pid(), pid)
        eventually(lambda: f"uid={NOBODY}" in self.project.log(), what="a line in the log")

    def test_a_command_of_another_user_says_why(self):
        self.project.start()
        question = ("call", "ping", "--project", self.project.root)
        self.assert_refused(self.project.run_as_nobody(*question), 1, "Permission denied", "another user")
        self.open_everything()
        self.assert_refused(self.project.run_as_nobody(*question), 1, "another user")

    def test_a_folder_of_another_user_is_not_used(self):
        os.makedirs(self.project.state)
        os.chown(self.project.state, NOBODY, NOBODY)
        self.assert_refused(self.project.run("daemon", "start"), 1, "another user", "--project")

    def test_root_may_ask_the_daemon_of_a_user(self):
        os.chown(self.project.root, NOBODY, NOBODY)
        result = self.project.run_as_nobody("daemon", "start", "--json", "--project", self.project.root)
        self.assertEqual(result.code, 0, result)
        self.project.pids.add(result.json()["pid"])
        self.assertEqual(self.project.pid(), result.json()["pid"])


class LongPaths(ProjectTestCase):
    def assert_works(self, length):
        root = len(self.project.place.name) + 1
        names, left = [], length - root
        while left > 0:
            size = min(left, 200) if left != 201 else 100
            names.append("d" * size)
            left -= size + 1
        project = self.new_project("/".join(names))
        self.assertEqual(len(project.root), length)
        pid = project.start()
        self.assertEqual(project.run("call", "daemon.status").json()["pid"], pid)
        self.assertEqual(project.run("daemon", "status", cwd="/", program=None).code, 3)
        elsewhere = project.run("call", "daemon.status", "--project", project.root, cwd="/")
        self.assertEqual(elsewhere.json()["pid"], pid)
        task = project.run("task", "submit", "--agent", "shell", "--follow", "pwd; exit 7")
        self.assertEqual((task.code, task.out), (7, project.root + "\n"), task)
        os.unlink(project.socket)
        eventually(lambda: project.reachable() == pid, BACK, "the socket is back")
        project.kill(pid)
        pid = project.start("--project", project.root, cwd="/")
        self.assertEqual(project.run("daemon", "restart").code, 0)
        self.assertEqual(project.run("daemon", "stop").code, 0)
        self.assertFalse(os.path.exists(project.socket))

    def test_300_bytes(self):
        self.assert_works(300)

    def test_1000_bytes(self):
        self.assert_works(1000)


class SocketFile(ProjectTestCase):
    """What happens to the socket's file under a running daemon."""

    def setUp(self):
        super().setUp()
        self.pid = self.project.start()

    def assert_back(self):
        eventually(lambda: self.project.reachable() == self.pid, BACK, "the same daemon is reachable")

    def test_deleted(self):
        with self.project.connect() as client:
            client.call("ping")
            for _ in range(3):
                os.unlink(self.project.socket)
                self.assert_back()
            self.assertTrue(client.call("ping")["result"]["pong"], "who is connected stays so")

    def test_moved_away(self):
        os.rename(self.project.socket, self.project.socket + ".away")
        self.assert_back()

    def test_replaced_by_a_stale_socket(self):
        os.unlink(self.project.socket)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(self.project.socket)
        self.assert_back()

    def replace(self, make):
        """Whatever stands there is not ours to remove; it is named, and once it is gone the socket is back."""
        with self.project.connect() as client:
            client.call("ping")
            os.unlink(self.project.socket)
            make(self.project.socket)
            before = os.lstat(self.project.socket)
            status = eventually(lambda: self.degraded(client), what="the status tells of it")
            self.assertEqual([problem["subsystem"] for problem in status["problems"]], ["ipc"])
            self.assertIn("daemon.sock", status["problems"][0]["message"])
            self.assertTrue(os.path.samestat(before, os.lstat(self.project.socket)), "it was touched")
            result = self.project.run("call", "ping", "--timeout", "3s")
            self.assert_refused(result, 4, f"pid {self.pid}", "daemon.sock")
            if stat.S_ISDIR(before.st_mode):
                os.rmdir(self.project.socket)
            else:
                os.unlink(self.project.socket)
            self.assert_back()
            eventually(lambda: not self.degraded(client), what="the status is healthy again")

    @staticmethod
    def degraded(client):
        status = client.call("daemon.status")["result"]
        return status if status["health"] == "degraded" else None

    def test_replaced_by_a_folder(self):
        self.replace(os.mkdir)

    def test_replaced_by_a_dangling_link(self):
        self.replace(lambda path: os.symlink("nowhere", path))

    def test_replaced_by_a_plain_file(self):
        self.replace(lambda path: open(path, "w").close())

    def test_nobody_takes_the_daemon_for_gone(self):
        os.unlink(self.project.socket)
        os.mkdir(self.project.socket)
        self.assert_refused(self.project.run("daemon", "start"), 1, f"already running, pid {self.pid}")

    def test_a_client_waits_until_it_is_back(self):
        os.unlink(self.project.socket)
        self.assertEqual(self.project.run("call", "daemon.status").json()["pid"], self.pid)

    def test_a_stop_removes_only_the_own_file(self):
        """Somebody put another socket in its place and the daemon was told to stop before it could mend that."""
        with self.project.connect() as client:
            client.call("ping")
            os.kill(self.pid, signal.SIGSTOP)
            os.unlink(self.project.socket)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                other.bind(self.project.socket)
                other.listen()
                client.send('{"jsonrpc":"2.0","id":1,"method":"daemon.stop"}')
                os.kill(self.pid, signal.SIGCONT)
                self.project.wait_gone(self.pid)
                self.assertTrue(os.path.exists(self.project.socket))


class SocketFileAtStart(ProjectTestCase):
    def assert_left_alone(self, make):
        os.makedirs(self.project.state, mode=0o700)
        make(self.project.socket)
        before = os.lstat(self.project.socket)
        self.assert_refused(self.project.run("daemon", "start"), 1, "daemon.sock", "move it away")
        self.assertTrue(os.path.samestat(before, os.lstat(self.project.socket)))
        self.assertIsNone(self.project.lock_holder())

    def test_a_folder(self):
        self.assert_left_alone(os.mkdir)

    def test_a_dangling_link(self):
        self.assert_left_alone(lambda path: os.symlink("nowhere", path))

    def test_a_plain_file(self):
        self.assert_left_alone(lambda path: open(path, "w").close())


class SocketElsewhere(ProjectTestCase):
    """--socket"""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.project.place.name, "elsewhere", "s")
        os.mkdir(os.path.dirname(self.path))

    def test_works_and_is_put_back(self):
        pid = self.project.start("--socket", self.path)
        self.assertFalse(os.path.exists(self.project.socket))
        ask = lambda: self.project.run("call", "daemon.status", "--socket", self.path, cwd="/")  # noqa: E731
        self.assertEqual(ask().json()["pid"], pid)
        os.unlink(self.path)
        eventually(lambda: os.path.exists(self.path), BACK, "the socket is back")
        self.assertEqual(ask().json()["pid"], pid)
        self.assertEqual(self.project.run("daemon", "stop", "--socket", self.path).code, 0)
        self.assertFalse(os.path.exists(self.path))

    def test_is_put_back_after_its_folder_was_replaced(self):
        pid = self.project.start("--socket", self.path)
        folder = os.path.dirname(self.path)
        os.rename(folder, folder + ".old")
        os.mkdir(folder)
        for _ in range(3):
            eventually(lambda: os.path.exists(self.path), BACK, "the socket is back")
            result = self.project.run("call", "daemon.status", "--socket", self.path)
            self.assertEqual(result.json()["pid"], pid)
            os.unlink(self.path)

    def test_a_name_relative_to_where_one_is(self):
        pid = self.project.start("--socket", "../elsewhere/s")
        result = self.project.run("call", "daemon.status", "--socket", "s", cwd=os.path.dirname(self.path))
        self.assertEqual(result.json()["pid"], pid)

    def test_who_asks_at_the_usual_place_learns_of_it(self):
        pid = self.project.start("--socket", self.path)
        self.assert_refused(self.project.run("call", "ping", "--timeout", "3s"), 4, f"pid {pid}", "--socket")

    def test_a_place_that_is_taken(self):
        other = self.new_project()
        other.start("--socket", self.path)
        self.assert_refused(self.project.run("daemon", "start", "--socket", self.path), 1, "listen", self.path)

    def test_a_folder_that_is_not_there(self):
        self.assert_refused(self.project.run("daemon", "start", "--socket", "/nowhere/s"), 1, "/nowhere/s",
                            "no such folder", "--socket")


class NothingIsAcknowledged(ProjectTestCase):
    """From the moment that the folder, the lock or the store is gone, though the daemon has not noticed yet."""

    WRITES = (("task.submit", {"prompt": "true", "agent": "shell"}), ("task.cancel", {"taskId": "task-1"}),
              ("automation.disable", {}))

    def path(self, *names):
        return os.path.join(self.project.state, *names)

    def assert_refuses(self, remove):
        pid = self.project.start()
        for method, params in self.WRITES:
            task = self.project.call("task.submit", params={"prompt": "exec sleep 100", "agent": "shell"})["result"]["taskId"]
            # Until then its keeper makes files, too.
            eventually(lambda: self.project.call("task.get", params={"taskId": task})["result"]["state"] == "running",
                       what="a running task")
            with self.project.connect() as client:
                client.call("ping")
                with held(pid):
                    remove()
                    client.send(request(method, 1, params=params))
                answer, events = client.answer(1)
                self.assertEqual(answer.get("error", {}).get("code"), -32003, answer)
                last = (events + client.ends())[-1]
                self.assertEqual(last["method"], "event.daemonStopping")
                self.assertIn("removed or replaced", last["params"]["reason"])
            self.project.wait_gone(pid)
            shutil.rmtree(self.project.state, ignore_errors=True)
            pid = self.project.start()

    def test_the_folder_is_removed(self):
        self.assert_refuses(lambda: shutil.rmtree(self.project.state))

    def test_the_folder_is_moved(self):
        away = self.project.state + ".away"
        self.assert_refuses(lambda: (shutil.rmtree(away, ignore_errors=True), os.rename(self.project.state, away)))

    def test_the_lock_is_removed(self):
        self.assert_refuses(lambda: os.unlink(self.path("daemon.lock")))

    def test_the_store_is_removed(self):
        self.assert_refuses(lambda: os.unlink(self.path("tasks.db")))

    def test_the_store_is_replaced(self):
        self.assert_refuses(lambda: (shutil.copy(self.path("tasks.db"), self.path("copy")),
                                     os.rename(self.path("copy"), self.path("tasks.db"))))

    def test_the_outputs_are_removed(self):
        self.assert_refuses(lambda: shutil.rmtree(self.path("tasks")))


class StateFolderGone(ProjectTestCase):
    """`rm -rf` and `git clean` under a running daemon: it says why, stops, and makes nothing anew."""

    def assert_stops(self, remove, at_once=True):
        pid = self.project.start()
        with self.project.connect() as client:
            client.call("ping")
            with held(pid) if at_once else contextlib.nullcontext():
                remove()
            messages = client.ends()
        self.assertEqual([message["method"] for message in messages], ["event.daemonStopping"])
        self.assertIn("removed or replaced", messages[0]["params"]["reason"])
        self.project.wait_gone(pid)

    def assert_starts_again(self):
        self.assertEqual(self.project.run("call", "ping").code, 3)
        self.assertNotIn("last one", self.project.run("daemon", "status").err)
        self.project.start()
        self.assert_answers()

    def test_the_folder_is_removed(self):
        self.assert_stops(lambda: shutil.rmtree(self.project.state))
        self.assertFalse(os.path.exists(self.project.state))
        self.assert_starts_again()

    def test_nothing_is_made_in_it_while_it_is_removed(self):
        """Or whoever removes it would fail: it is not empty."""
        def empty():
            for entry in os.scandir(self.project.state):
                shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
        self.assert_stops(empty)
        self.assertEqual(os.listdir(self.project.state), [])

    def test_git_clean(self):
        shutil.rmtree(os.path.join(self.project.root, ".git"))
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run([*git, "init", "-q"], cwd=self.project.root, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=self.project.root, check=True)
        self.assert_stops(lambda: subprocess.run(["git", "clean", "-q", "-fdx"], cwd=self.project.root, check=True))
        self.assertEqual(os.listdir(self.project.root), [".git"])
        self.assert_starts_again()

    def test_git_does_not_see_it(self):
        shutil.rmtree(os.path.join(self.project.root, ".git"))
        subprocess.run(["git", "init", "-q"], cwd=self.project.root, check=True)
        self.project.start()
        seen = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=self.project.root, check=True,
                              capture_output=True)
        self.assertEqual(seen.stdout, b"")

    def test_the_whole_project_is_removed(self):
        self.assert_stops(lambda: shutil.rmtree(self.project.root))
        self.assertFalse(os.path.exists(self.project.root))

    def test_the_folder_is_replaced(self):
        def replace():
            os.rename(self.project.state, self.project.state + ".old")
            os.mkdir(self.project.state, 0o700)
        self.assert_stops(replace)
        self.assertLessEqual(set(os.listdir(self.project.state)), {"daemon.log"})  # which says why
        self.assert_starts_again()

    def test_the_lock_is_removed(self):
        """Another daemon could take a new one: there would be two."""
        self.assert_stops(lambda: os.unlink(os.path.join(self.project.state, "daemon.lock")))
        self.assert_starts_again()

    def test_the_store_is_removed_while_nobody_asks(self):
        self.assert_stops(lambda: os.unlink(os.path.join(self.project.state, "tasks.db")))

    def link_state(self):
        os.mkdir(os.path.join(self.project.place.name, "real"))
        os.symlink("../real", os.path.join(self.project.root, ".aiwg"))

    def test_the_link_that_led_there_is_removed(self):
        self.link_state()
        self.assert_stops(lambda: os.unlink(os.path.join(self.project.root, ".aiwg")))
        self.assert_starts_again()

    def test_the_link_that_led_there_leads_elsewhere_where_a_second_daemon_is(self):
        self.link_state()

        def replace():
            os.unlink(os.path.join(self.project.root, ".aiwg"))
            os.mkdir(os.path.join(self.project.root, ".aiwg"))
            self.second = self.project.start()
        self.assert_stops(replace, at_once=False)
        self.assertEqual(self.project.pid(), self.second)

    def test_what_became_a_link_leads_elsewhere_where_a_second_daemon_is(self):
        above = os.path.join(self.project.root, ".aiwg")
        real = os.path.join(self.project.place.name, "real")
        os.symlink("../real", real)

        def replace():
            exchange(above, real)
            os.unlink(self.project.socket)
            eventually(lambda: os.path.exists(self.project.socket), BACK, "it was looked at, and is still in its place")
            os.unlink(above)
            os.mkdir(above)
            self.second = self.project.start()
        self.assert_stops(replace, at_once=False)
        self.assertEqual(self.project.pid(), self.second)

    def test_the_folder_above_is_moved(self):
        self.assert_stops(lambda: os.rename(os.path.join(self.project.root, ".aiwg"),
                                            os.path.join(self.project.root, ".other")))
        self.assert_starts_again()

    def test_other_files_may_go(self):
        pid = self.project.start()
        for name in ("daemon.pid", "daemon.log", ".gitignore"):
            os.unlink(os.path.join(self.project.state, name))
        for _ in range(3):
            try:
                self.assertEqual(self.project.pid(), pid)
            except Failure as failure:
                self.fail(str(failure))


if __name__ == "__main__":
    suite.main()
