#!/usr/bin/env python3
"""What a service manager offers by environment variables: readiness (NOTIFY_SOCKET), a watchdog, sockets (LISTEN_FDS).

This test is the manager: it makes the sockets, passes them as systemd does, and listens to what it is told.
"""

import os
import select
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import ProjectTestCase  # noqa: E402

# LISTEN_PID is the pid of the process that is meant, which is not known before it is there.
WITH_PID = ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"]


class Manager(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.notices.close)
        self.notices.settimeout(PATIENCE)

    def service(self, *words, env=None, listener=None, prefix=()):
        """The daemon as a service: in the foreground, with the socket as descriptor 3."""
        argv = [*prefix, suite.program(), "daemon", "start", "--foreground", "--project", self.project.root, *words]
        place = (lambda: os.dup2(listener.fileno(), 3)) if listener else None
        process = subprocess.Popen(argv, env=self.project.environment(env), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
                                   pass_fds=[3] if listener else [], preexec_fn=place)
        self.project.pids.add(process.pid)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def listener(self):
        os.makedirs(self.project.state, mode=0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(self.project.socket)
        listener.listen(1024)
        return listener

    def told(self):
        return dict(line.split("=", 1) for line in self.notices.recv(4096).decode().splitlines())

    def assert_ends(self, process, code=0):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, err)
        return err.decode()


class Readiness(Manager):
    def assert_told(self, address):
        process = self.service(env={"NOTIFY_SOCKET": address})
        ready = self.told()
        self.assertEqual((ready["READY"], ready["MAINPID"]), ("1", str(process.pid)))
        self.assertEqual(self.project.pid(), process.pid)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.told(), {"STOPPING": "1"})
        self.assert_ends(process)

    def test_at_a_path(self):
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        self.assert_told(path)

    def test_at_an_abstract_address(self):
        name = f"duet-notify-{os.getpid()}"
        self.notices.bind("\0" + name)
        self.assert_told("@" + name)

    def test_a_stop_that_a_client_asks_for(self):
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        process = self.service(env={"NOTIFY_SOCKET": path})
        self.told()
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assertEqual(self.told(), {"STOPPING": "1"})
        self.assert_ends(process)

    def test_a_manager_that_is_not_there_is_no_fault(self):
        for address in ("/nowhere/notify", "@nobody", "x" * 300, ""):
            process = self.service(env={"NOTIFY_SOCKET": address})
            eventually(lambda: self.project.reachable() == process.pid, what="the daemon answers")
            process.terminate()
            self.assert_ends(process)

    def test_a_detached_daemon_tells_nobody(self):
        """Whoever starts it is no service of that manager."""
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        self.project.start(env={"NOTIFY_SOCKET": path})
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.notices.settimeout(0)
        self.assertRaises(BlockingIOError, self.notices.recv, 4096)


class RestartInPlace(Manager):
    """The process stays, and so does all that the manager gave it."""

    def test_the_manager_still_has_its_service_and_its_socket(self):
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        listener = self.listener()
        process = self.service(env={"NOTIFY_SOCKET": path, "LISTEN_FDS": "1"}, listener=listener, prefix=WITH_PID)
        inode = os.stat(self.project.socket).st_ino
        for env in ({}, {"DUET_TASK_ID": "task-1"}, {}):
            self.assertEqual(self.told(), {"READY": "1", "MAINPID": str(process.pid)})
            self.assertTrue(self.project.call("daemon.status")["result"]["managed"])
            result = self.project.run("daemon", "restart", env=env)
            self.assertEqual((result.code, result.out), (0, f"restarted, pid {process.pid}\n"), result)
            self.assertEqual(self.told(), {"RELOADING": "1"})
        self.assertEqual(self.project.pid(), process.pid)
        self.assertEqual(os.stat(self.project.socket).st_ino, inode)
        process.terminate()
        self.assert_ends(process)


    def assert_stays(self, process):
        eventually(lambda: self.project.reachable() == process.pid, what="the daemon answers")
        for _ in range(2):
            result = self.project.run("daemon", "restart")
            self.assertEqual((result.code, result.out), (0, f"restarted, pid {process.pid}\n"), result)
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assert_ends(process)

    def test_with_a_place_to_tell_only(self):
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        self.assert_stays(self.service(env={"NOTIFY_SOCKET": path}))

    def test_with_a_socket_only(self):
        self.assert_stays(self.service(env={"LISTEN_FDS": "1"}, listener=self.listener(), prefix=WITH_PID))

    def test_one_that_nobody_manages_is_started_anew(self):
        pid = self.project.start()
        self.assertNotIn("managed", self.project.call("daemon.status")["result"])
        self.assertEqual(self.project.run("daemon", "restart").code, 0)
        self.assertNotEqual(self.project.pid(), pid)


class Watchdog(Manager):
    def watched(self, **env):
        path = os.path.join(self.project.place.name, "notify")
        self.notices.bind(path)
        process = self.service(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000", **env})
        while "READY" not in self.told():
            pass
        return process

    def test_is_told_again_and_again(self):
        self.watched()
        self.assertEqual([self.told() for _ in range(4)], [{"WATCHDOG": "1"}] * 4)

    def test_is_not_told_while_the_loop_hangs(self):
        self.watched()
        with self.project.connect() as client:
            if "error" in client.call("test.sleep", params={"ms": 0}):
                self.skipTest("a build without test methods")
            client.send('{"jsonrpc":"2.0","id":2,"method":"test.sleep","params":{"ms":5000}}')
            while heard := select.select([self.notices, client.socket], [], [], 1)[0]:
                self.assertNotIn(client.socket, heard, "the loop did not turn all the while, and yet it was told")
                self.told()
            self.assertEqual(client.next_message()["id"], 2)
            self.assertEqual(self.told(), {"WATCHDOG": "1"})

    def test_of_another_process_is_not_told(self):
        self.watched(WATCHDOG_PID="1")
        self.notices.settimeout(0.5)
        self.assertRaises(TimeoutError, self.told)


class Activation(Manager):
    def test_the_socket_is_used_and_left(self):
        listener = self.listener()
        inode = os.stat(self.project.socket).st_ino
        with self.project.connect() as early:  # before there is a daemon: it waits
            early.send('{"jsonrpc":"2.0","id":"early","method":"ping"}')
            process = self.service(env={"LISTEN_FDS": "1"}, listener=listener, prefix=WITH_PID)
            self.assertEqual(early.next_message()["id"], "early")
        self.assertEqual(self.project.run("call", "daemon.status").json()["pid"], process.pid)
        self.assertEqual(os.stat(self.project.socket).st_ino, inode)
        result = self.project.run("daemon", "stop")
        self.assertEqual((result.code, result.out), (0, f"stopped, pid {process.pid}\n"))
        self.assert_ends(process)
        self.assertEqual(os.stat(self.project.socket).st_ino, inode, "the manager's socket was removed or replaced")

    def test_a_removed_socket_is_the_managers_business(self):
        process = self.service(env={"LISTEN_FDS": "1"}, listener=self.listener(), prefix=WITH_PID)
        with self.project.connect() as client:
            client.call("ping")
            os.unlink(self.project.socket)
            os.mkdir(os.path.join(self.project.state, "a change"))
            eventually(lambda: client.call("daemon.status")["result"]["health"] == "healthy", what="nobody minds")
            process.terminate()
            client.ends()
        self.assert_ends(process)
        self.assertFalse(os.path.exists(self.project.socket), "it was bound again")

    def test_it_is_still_the_only_daemon(self):
        first = self.project.start()
        os.rename(self.project.socket, self.project.socket + ".old")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(os.path.join(self.project.place.name, "other"))
        listener.listen()
        process = self.service(env={"LISTEN_FDS": "1"}, listener=listener, prefix=WITH_PID)
        self.assertIn(f"already running, pid {first}", self.assert_ends(process, 1))

    def test_sockets_for_another_process_are_not_touched(self):
        listener = self.listener()
        os.unlink(self.project.socket)
        process = self.service(env={"LISTEN_FDS": "1", "LISTEN_PID": "1"}, listener=listener)
        eventually(lambda: self.project.reachable() == process.pid, what="it listens at its own place")
        process.terminate()
        self.assert_ends(process)
        self.assertFalse(os.path.exists(self.project.socket))

    def test_what_is_no_listening_socket_is_refused(self):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_UNIX, kind) as other:
                process = self.service(env={"LISTEN_FDS": "1"}, listener=other, prefix=WITH_PID)
                self.assertIn("ListenStream=", self.assert_ends(process, 1))


if __name__ == "__main__":
    suite.main()
