#!/usr/bin/env python3
"""stdin, stdout and stderr of every kind: pipe, socket, terminal, file, nothing, closed, gone."""

import fcntl
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import termios
import tty

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, LspFraming, Peer, Stream, clean_environment, eventually, frame, request  # noqa: E402
from terminal import Terminal  # noqa: E402

SESSION = frame(request("version", 1)) + frame(request("nope", 2)) + frame(request("initialize", 3))


def ids_in(data):
    """The ids of all frames in DATA, which must hold nothing else."""
    found = []
    while data:
        body, used = LspFraming.cut(data)
        found.append(json.loads(body)["id"])
        data = data[used:]
    return found


def in_shell(redirections, input=b""):
    """`duet-rpc rpc REDIRECTIONS`, to its end."""
    command = f"exec {shlex.quote(suite.program())} rpc --log-level debug {redirections}"
    return subprocess.run(["sh", "-c", command], input=input, capture_output=True, env=clean_environment(),
                          timeout=PATIENCE)


class Input(suite.TestCase):
    def test_a_pipe(self):
        with suite.rpc() as daemon:
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)

    def test_a_regular_file_is_read_to_its_end(self):
        with tempfile.TemporaryFile() as file:
            file.write(SESSION)
            file.seek(0)
            with suite.rpc(stdin=file) as daemon:
                self.assertEqual([daemon.next_message()["id"] for _ in range(3)], [1, 2, 3])
                daemon.expect_exit(0)

    def test_a_large_regular_file(self):
        with tempfile.TemporaryFile() as file:
            for id in range(20000):
                file.write(frame(request("version", id)))
            file.seek(0)
            with suite.rpc(stdin=file) as daemon:
                for id in range(20000):
                    self.assertEqual(daemon.next_message()["id"], id)
                daemon.expect_exit(0)

    def test_an_empty_file(self):
        with tempfile.TemporaryFile() as file, suite.rpc("--log-level", "info", stdin=file) as daemon:
            daemon.expect_exit(0)
            self.assertIn("stdin closed, shutting down gracefully", daemon.stderr_text())

    def test_dev_null(self):
        with suite.rpc("--log-level", "info", stdin=subprocess.DEVNULL) as daemon:
            daemon.expect_exit(0)
            self.assertIn("stdin closed, shutting down gracefully", daemon.stderr_text())

    def test_a_file_cut_in_a_frame(self):
        with tempfile.TemporaryFile() as file:
            file.write(SESSION[:-5])
            file.seek(0)
            with suite.rpc(stdin=file) as daemon:
                self.assertEqual([daemon.next_message()["id"] for _ in range(2)], [1, 2])
                self.assertEqual(daemon.next_message()["error"]["data"], {"reason": "content-length-mismatch"})
                daemon.expect_exit(0)

    def test_a_socket_for_both_directions(self):
        ours, theirs = socket.socketpair()
        with ours, theirs, suite.rpc(stdin=theirs, stdout=theirs) as daemon:
            theirs.close()
            peer = Peer(LspFraming, ours.sendall, Stream(ours.fileno()))
            self.assertIn("result", peer.call("version", "over a socket"))
            peer.send(request("version", "then the end"))
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(peer.next_message()["id"], "then the end")
            self.assertEqual(daemon.wait_exit(), 0)

    def test_closed_from_the_start_is_an_end_of_input(self):
        result = in_shell("<&-")
        self.assertEqual((result.stdout, result.returncode), (b"", 0))
        self.assertIn(b"stdin closed, shutting down gracefully", result.stderr)


class TerminalInput(suite.TestCase):
    def test_a_raw_terminal_carries_frames(self):
        with Terminal() as terminal:
            tty.setraw(terminal.slave)
            with suite.rpc(stdin=terminal.slave) as daemon:
                terminal.type(frame(request("version", "typed")))
                self.assertEqual(daemon.next_message()["id"], "typed")
                daemon.signal(15)
                daemon.expect_exit(0)

    def test_control_d_ends_it(self):
        with Terminal() as terminal, suite.rpc("--log-level", "info", stdin=terminal.slave) as daemon:
            daemon.expect_stderr("pid=")
            terminal.type(b"\x04")
            daemon.expect_exit(0)
            self.assertIn("stdin closed, shutting down gracefully", daemon.stderr_text())

    def test_the_flags_are_unchanged_after_exit(self):
        for ending in ("shutdown", "signal"):
            with self.subTest(ending), Terminal() as terminal:
                tty.setraw(terminal.slave)
                before = self.flags(terminal.slave)
                with suite.rpc(stdin=terminal.slave, stderr=terminal.slave) as daemon:
                    terminal.type(frame(request("version", 1)))
                    daemon.next_message()
                    if ending == "shutdown":
                        terminal.type(frame(request("shutdown", 2)))
                        daemon.next_message()
                    else:
                        daemon.signal(15)
                    daemon.expect_exit(0)
                self.assertEqual(self.flags(terminal.slave), before)

    @staticmethod
    def flags(descriptor):
        return termios.tcgetattr(descriptor), fcntl.fcntl(descriptor, fcntl.F_GETFL)


class SharedDescriptions(suite.TestCase):
    def test_a_pipe_we_share_keeps_its_flags(self):
        """O_NONBLOCK belongs to the pipe, not to a process: whoever shares the pipe would suffer from it."""
        read_end, write_end = os.pipe()
        answers, out = os.pipe()
        before = fcntl.fcntl(read_end, fcntl.F_GETFL), fcntl.fcntl(out, fcntl.F_GETFL)
        with suite.rpc(stdin=read_end, stdout=out) as daemon:
            os.write(write_end, frame(request("version", 1)))
            peer = Peer(LspFraming, None, Stream(answers))
            self.assertEqual(peer.next_message()["id"], 1)
            os.close(write_end)
            self.assertEqual(daemon.wait_exit(), 0)
        self.assertEqual((fcntl.fcntl(read_end, fcntl.F_GETFL), fcntl.fcntl(out, fcntl.F_GETFL)), before)
        os.close(read_end)
        os.close(out)


class Output(suite.TestCase):
    def test_into_a_file(self):
        with tempfile.TemporaryFile() as session, tempfile.TemporaryFile() as out:
            session.write(SESSION)
            session.seek(0)
            with suite.rpc(stdin=session, stdout=out) as daemon:
                self.assertEqual(daemon.wait_exit(), 0)
            out.seek(0)
            self.assertEqual(ids_in(out.read()), [1, 2, 3])

    def test_closed_from_the_start_is_a_failed_start(self):
        self.assertEqual(in_shell(">&-", SESSION).returncode, 1)

    def test_all_closed(self):
        self.assertEqual(in_shell("<&- >&- 2>&-").returncode, 1)

    def test_gone_is_exit_1_and_no_death_by_signal(self):
        with suite.rpc(read_stdout=False) as daemon:
            daemon.process.stdout.close()
            daemon.send(request("version", 1))
            daemon.expect_exit(1)

    def test_gone_while_answers_wait(self):
        with suite.rpc(read_stdout=False) as daemon:
            daemon.write_some(frame(request("describeMethods", 1)) * 2000, 1.0)
            daemon.process.stdout.close()
            daemon.expect_exit(1)

    def test_a_socket_that_is_reset(self):
        ours, theirs = socket.socketpair()
        with suite.rpc(stdin=theirs, stdout=theirs) as daemon:
            theirs.close()
            ours.sendall(frame(request("version", 1)) * 100)
            ours.close()
            self.assertIn(daemon.wait_exit(), (0, 1))  # an end of input or a lost output, whichever is seen first


class Errors(suite.TestCase):
    def test_stderr_closed_never_lets_the_log_into_stdout(self):
        for redirections in ("2>&-", "2>&- 3>&-"):
            with self.subTest(redirections):
                result = in_shell(redirections, SESSION)
                self.assertEqual(ids_in(result.stdout), [1, 2, 3])
                self.assertEqual(result.returncode, 0)

    def test_stdin_and_stderr_closed(self):
        result = in_shell("<&- 2>&-")
        self.assertEqual((result.stdout, result.returncode), (b"", 0))

    def test_a_stderr_nobody_reads_any_more_kills_nobody(self):
        with suite.rpc("--log-level", "debug", read_stderr=False) as daemon:
            daemon.process.stderr.close()
            for id in range(50):
                daemon.call("nope", id)
            daemon.close_input()
            daemon.expect_exit(0)


class Guard(suite.TestCase):
    def test_the_real_stdout_is_private(self):
        """Descriptor 1 is stderr; the way out has another number and does not survive an exec."""
        with suite.rpc() as daemon:
            self.assert_version(daemon)
            folder = f"/proc/{daemon.pid}/fd"
            self.assertEqual(os.readlink(f"{folder}/1"), os.readlink(f"{folder}/2"))
            ours = os.readlink(f"/proc/self/fd/{daemon.process.stdout.fileno()}")
            private = [name for name in os.listdir(folder) if self.target(folder, name) == ours]
            self.assertTrue(private)
            for name in private:
                self.assertNotIn(name, ("0", "1", "2"))
                with open(f"/proc/{daemon.pid}/fdinfo/{name}", encoding="ascii") as file:
                    flags = int(next(line for line in file if line.startswith("flags:")).split()[1], 8)
                self.assertTrue(flags & os.O_CLOEXEC)
            daemon.close_input()
            daemon.expect_exit(0)

    @staticmethod
    def target(folder, name):
        try:
            return os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            return None

    def test_no_descriptor_is_left_open_by_a_conversation(self):
        with suite.rpc() as daemon:
            count = lambda: len(os.listdir(f"/proc/{daemon.pid}/fd"))  # noqa: E731
            self.assert_version(daemon)
            before = count()
            for id in range(200):
                daemon.call("initialize", id, params={"processId": os.getpid()})
            eventually(lambda: count() <= before + 1, what="descriptors are given back")
            daemon.close_input()
            daemon.expect_exit(0)


if __name__ == "__main__":
    suite.main()
