#!/usr/bin/env python3
"""Where the log goes, and that a log which cannot be written delays nobody."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import Daemon, Stream, eventually, frame, request  # noqa: E402

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:debug|info |warn |error) [^\x00-\x1f]+")


def lines_of(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


class Sink(suite.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name="rpc.log"):
        return os.path.join(self.folder, name)

    def logging_to(self, path, *arguments, **options):
        return suite.rpc(*arguments, env={"DUET_RPC_LOG": path}, **options)

    def assert_unimpressed(self, daemon, requests=3000):
        """Every request is answered although each writes log lines; SIGTERM ends it in time."""
        daemon.send_bytes(b"".join(frame(request("nope", id)) for id in range(requests)))
        for id in range(requests):
            self.assertEqual(daemon.next_message()["id"], id)
        self.assert_version(daemon)
        daemon.signal(15)
        daemon.expect_exit(0)


    def assert_on_stderr_instead(self, daemon, reason):
        """Once why, then the warnings, and nothing below."""
        lines = daemon.stderr_text().splitlines()
        self.assertEqual([reason in line for line in lines if "DUET_RPC_LOG" in line], [True])
        self.assertIn("Method not found", lines[-1])
        self.assertEqual([line for line in lines if " warn  " not in line], [])


class CannotBeWritten(Sink):
    def test_a_full_stderr_pipe(self):
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        while True:
            try:
                os.write(write_end, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(write_end, True)
        with suite.rpc("--log-level", "debug", stderr=write_end) as daemon:
            self.assert_unimpressed(daemon)
        os.close(read_end)
        os.close(write_end)

    def test_a_stderr_pipe_nobody_reads(self):
        with suite.rpc("--log-level", "debug", read_stderr=False) as daemon:
            self.assert_unimpressed(daemon)

    def test_lines_that_found_no_room_are_counted(self):
        total = 100_000
        with suite.rpc(read_stderr=False) as daemon:
            writer = threading.Thread(target=daemon.send_bytes, args=(frame(request("nope", 1)) * total,))
            writer.start()
            for _ in range(total):
                daemon.next_body()
            writer.join()
            daemon.stderr = Stream(daemon.process.stderr.fileno())
            daemon.expect_stderr("dropped=")

            def is_logged():  # what is unwritten half a second after the end is lost, rightly
                nonlocal total
                total += 1
                daemon.call(f"waiting {total}", total)
                return "waiting" in daemon.stderr.text()
            eventually(is_logged, what="the log is written")
            daemon.close_input()
            daemon.expect_exit(0)
            text = daemon.stderr_text()
        dropped = sum(int(count) for count in re.findall(r"dropped=(\d+)", text))
        self.assertEqual(text.count("Method not found") + dropped, total)

    def test_a_fifo_without_a_reader(self):
        os.mkfifo(self.path())
        with self.logging_to(self.path()) as daemon:
            self.assert_unimpressed(daemon)

    def test_a_fifo_whose_reader_sleeps(self):
        os.mkfifo(self.path())
        reader = os.open(self.path(), os.O_RDONLY | os.O_NONBLOCK)
        with self.logging_to(self.path()) as daemon:
            self.assert_unimpressed(daemon)
        os.close(reader)

    def test_a_fifo_whose_reader_leaves(self):
        os.mkfifo(self.path())
        reader = os.open(self.path(), os.O_RDONLY | os.O_NONBLOCK)
        with self.logging_to(self.path()) as daemon:
            self.assert_version(daemon)
            os.close(reader)
            self.assert_unimpressed(daemon)
            self.assert_on_stderr_instead(daemon, "Broken pipe")

    def test_a_device_that_is_always_full(self):
        with self.logging_to("/dev/full") as daemon:
            self.assert_unimpressed(daemon)
            self.assert_on_stderr_instead(daemon, "No space left on device")

    def test_a_full_disk(self):
        """A file system of 64 KiB, in a mount namespace of its own so that nothing is left behind."""
        mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"', "sh",
                   self.folder]
        if subprocess.run([*mounted, "true"], capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        with Daemon([*mounted, suite.program(), "rpc"], env={"DUET_RPC_LOG": self.path()}) as daemon:
            self.assert_unimpressed(daemon)
            self.assert_on_stderr_instead(daemon, "No space left on device")

    def test_a_folder(self):
        with self.logging_to(self.folder) as daemon:
            daemon.expect_stderr("Is a directory")
            self.assert_unimpressed(daemon)

    def test_no_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        os.chmod(self.folder, 0o500)
        with self.logging_to(self.path()) as daemon:
            daemon.expect_stderr("Permission denied")
            self.assert_unimpressed(daemon)


class File(Sink):
    def test_is_created_for_its_owner_only(self):
        previous = os.umask(0)
        try:
            with self.logging_to(self.path()) as daemon:
                self.assert_version(daemon)
                daemon.close_input()
                daemon.expect_exit(0)
        finally:
            os.umask(previous)
        self.assertEqual(stat.S_IMODE(os.stat(self.path()).st_mode), 0o600)

    def test_is_appended_to(self):
        for _ in range(2):
            with self.logging_to(self.path()) as daemon:
                daemon.close_input()
                daemon.expect_exit(0)
        text = "\n".join(lines_of(self.path()))
        self.assertEqual(text.count("stdin closed, shutting down gracefully"), 2)

    def test_startup_line_names_version_pid_level_and_sink(self):
        with self.logging_to(self.path()) as daemon:
            version = daemon.call("version")["result"]["version"]
            daemon.close_input()
            daemon.expect_exit(0)
        first = lines_of(self.path())[0]
        for part in (" info  ", version, str(daemon.pid), "info", self.path()):
            self.assertIn(part, first)

    def test_every_line_is_on_disk_after_a_shutdown(self):
        with self.logging_to(self.path()) as daemon:
            daemon.send_bytes(b"".join(frame(request("nope", id)) for id in range(300)))
            for _ in range(300):
                daemon.next_message()
            daemon.call("shutdown", "bye")
            daemon.expect_exit(0)
        lines = lines_of(self.path())
        self.assertEqual(sum("Method not found" in line for line in lines), 300)
        self.assertIn("shutdown requested, shutting down gracefully", lines[-1])

    def test_lines_are_written_while_it_runs(self):
        with self.logging_to(self.path()) as daemon:
            daemon.call("nope", 1)
            eventually(lambda: any("Method not found" in line for line in lines_of(self.path())), what="a line")
            daemon.close_input()
            daemon.expect_exit(0)


class SharedFile(Sink):
    """Several editors' daemons have one DUET_RPC_LOG."""

    def flood(self, daemons, requests, method):
        """Each daemon gets as many unknown methods, writes its log and ends; returns how many lines that makes."""
        portion, lines = 500, 0
        for start in range(0, requests, portion):
            count = min(portion, requests - start)
            for daemon in daemons:
                daemon.send_bytes(frame(request(method, start)) * count)
            for daemon in daemons:
                for _ in range(count):
                    daemon.next_body()
                lines += count
        for daemon in daemons:
            lines += self.wait_for_the_log(daemon)
            daemon.close_input()
        for daemon in daemons:
            daemon.expect_exit(0)
        return lines

    def wait_for_the_log(self, daemon):
        """What is unwritten half a second after the end is lost, rightly; so wait. Returns how many lines this adds."""
        if not os.path.isfile(self.path()):
            return 0
        asked = 0

        def is_logged():
            nonlocal asked
            asked += 1
            daemon.call(f"waiting {daemon.pid} {asked}", asked)
            return any(f"waiting {daemon.pid} " in tail for tail in self.tails())
        eventually(is_logged, what="the log is written")
        return asked

    def tails(self):
        """The last lines of every file."""
        for name in os.listdir(self.folder):
            try:
                with open(self.path(name), "rb") as file:
                    file.seek(max(0, os.fstat(file.fileno()).st_size - 20_000))
                    yield file.read().decode("utf-8", "replace")
            except FileNotFoundError:  # rotated away meanwhile
                pass

    def assert_accounted(self, lines, expected):
        """Lines are whole, and those that are not there have been counted."""
        for line in lines:
            self.assertRegex(line, rf"\A{LINE.pattern}\Z")
        written = sum("Method not found" in line for line in lines)
        dropped = sum(int(count) for line in lines for count in re.findall(r"dropped=(\d+)", line))
        self.assertEqual(written + dropped, expected)
        self.assertGreater(written, 0)

    def test_lines_of_two_daemons_stay_whole(self):
        with self.logging_to(self.path()) as one, self.logging_to(self.path()) as two:
            expected = self.flood([one, two], 3000, "nope")
        self.assert_accounted(lines_of(self.path()), expected)

    def test_rotation_keeps_three_and_loses_nothing_before(self):
        with self.logging_to(self.path()) as one, self.logging_to(self.path()) as two:
            expected = self.flood([one, two], 50_000, "m" * 190)
        names = sorted(os.listdir(self.folder))
        files = [name for name in names if re.fullmatch(r"rpc\.log(\.[1-3])?", name)]
        self.assertIn("rpc.log.1", files)
        self.assertLessEqual(len(files), 4)
        self.assertNotIn("rpc.log.4", names)
        lines = []
        for name in files:
            status = os.stat(self.path(name))
            self.assertLessEqual(status.st_size, 10 * 1024 * 1024 + 4096)
            self.assertEqual(stat.S_IMODE(status.st_mode), 0o600)
            lines += lines_of(self.path(name))
        self.assert_accounted(lines, expected)

    def test_rotation_ends_at_three(self):
        for name in ("rpc.log", "rpc.log.1", "rpc.log.2", "rpc.log.3"):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(f"{name} was here\n" + "x" * 99 + "\n" + ("y" * 99 + "\n") * (10 * 1024 * 1024 // 100))
        with self.logging_to(self.path()) as daemon:
            self.flood([daemon], 300, "nope")
        contents = {name: lines_of(self.path(name))[0] for name in sorted(os.listdir(self.folder)) if name[-1] in "123"}
        self.assertEqual(contents, {"rpc.log.1": "rpc.log was here", "rpc.log.2": "rpc.log.1 was here",
                                    "rpc.log.3": "rpc.log.2 was here"})

    def test_only_regular_files_rotate(self):
        os.symlink("/dev/null", self.path())
        with self.logging_to(self.path()) as daemon:
            self.flood([daemon], 50_000, "m" * 190)
        self.assertEqual(os.readlink(self.path()), "/dev/null")
        self.assertNotIn("rpc.log.1", os.listdir(self.folder))


class Contents(Sink):
    """What a client sends can neither forge a line nor make one endless; broken bodies are never shown."""

    HOSTILE = ["a\nb", "\x1b[31mred\x1b[0m", 'a" id=9 x="', "\r", "\x00", "\x7f", "\u2028", "\u0085", "\ud800",
               "m" * 10_000, "é" * 10_000, "\\", "2026-01-01T00:00:00.000Z error forged", "\u202eevil",
               "%s%n", "key=value"]

    def test_hostile_names_and_ids(self):
        with self.logging_to(self.path(), "--log-level", "debug") as daemon:
            for text in self.HOSTILE:
                daemon.send_bytes(frame('{"jsonrpc":"2.0","id":%s,"method":%s}' % (json.dumps(text), json.dumps(text))))
                self.assertEqual(daemon.next_message()["error"]["code"], -32601)
                daemon.send_bytes(frame('{"jsonrpc":"2.0","method":%s}' % json.dumps(text)))
            self.assert_version(daemon)
            daemon.close_input()
            daemon.expect_exit(0)
        lines = lines_of(self.path())
        for line in lines:
            self.assertRegex(line, rf"\A{LINE.pattern}\Z")
            self.assertLess(len(line), 1000)
        self.assertGreaterEqual(sum("Method not found" in line for line in lines), len(self.HOSTILE))

    def test_secrets_in_what_is_broken(self):
        secret = "hunter2"
        broken = [f'{{"password":"{secret}"', f"password={secret}\r\n",
                  f'{{"jsonrpc":"1.0","id":1,"params":"{secret}"}}',
                  f'{{"jsonrpc":"2.0","id":1,"method":"setLogLevel","params":{{"level":5,"password":"{secret}"}}}}',
                  f'{{"jsonrpc":"2.0","method":"setLogLevel","params":{{"password":"{secret}"}}}}',
                  f'{{"jsonrpc":"2.0","id":1,"result":"{secret}"}}', f'[{{"password":"{secret}"}}]', f'"{secret}"']
        with self.logging_to(self.path(), "--log-level", "debug") as daemon:
            for text in broken:
                daemon.send(text)
            daemon.send_bytes(b"X-Token: hunter2 and no end\nhunter2\r\n")
            daemon.send_bytes(b"Content-Length: 20000000\r\n\r\nhunter2")
            daemon.send(request("version", "all read"))
            while daemon.next_message().get("id") != "all read":
                pass
            daemon.close_input()
            daemon.expect_exit(0)
        self.assertNotIn(secret, "\n".join(lines_of(self.path())))

    def test_secrets_never_come_back_in_an_error(self):
        with suite.rpc() as daemon:
            for text in ('{"password":"hunter2"', '{"jsonrpc":"2.0","id":1,"method":"hunter2"}', '["hunter2"]',
                         '{"jsonrpc":"hunter2","id":1,"method":"version"}'):
                daemon.send(text)
                self.assertNotIn(b"hunter2", daemon.next_body())
            daemon.close_input()
            daemon.expect_exit(0)


if __name__ == "__main__":
    suite.main()
