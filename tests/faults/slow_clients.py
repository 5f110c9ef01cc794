#!/usr/bin/env python3
"""Clients that write a lot, read late or never: nothing deadlocks, memory stays bounded, the end comes in time."""

import os
import select
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually, frame, request  # noqa: E402

MEMORY_BOUND = 100 * 1000 * 1000
STALLED = 1.0  # seconds without a byte taken: the daemon has stopped reading
CEILING = 30  # the 2 s of a shutdown that cannot flush, and what a busy machine adds; it would last for ever


def peak_memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) * 1024


class NeverReads(suite.TestCase):
    """Reading pauses when the answers that wait have reached their bound; SIGTERM and the end of input still work."""

    def fill(self, daemon, portion, most):
        """Sends PORTION again and again until the daemon takes no more; returns how many bytes it took."""
        taken = 0
        while taken < most:
            unsent = daemon.write_some(portion, STALLED)
            taken += len(portion) - len(unsent)
            if unsent:
                return taken
        self.fail(f"{taken} bytes were taken without a pause")

    def test_many_small_requests(self):
        with suite.rpc(read_stdout=False) as daemon:
            self.fill(daemon, frame(request("describeMethods", 1)) * 5000, 200_000_000)
            self.assert_bounded(daemon)
            daemon.signal(15)
            self.assertEqual(daemon.wait_exit(CEILING), 0)

    def test_large_ids_come_back(self):
        with suite.rpc(read_stdout=False) as daemon:
            self.fill(daemon, frame(request("version", "x" * 1_000_000)), 300_000_000)
            self.assert_bounded(daemon)
            daemon.signal(1)
            self.assertEqual(daemon.wait_exit(CEILING), 0)

    def test_faults_are_answers_too(self):
        with suite.rpc(read_stdout=False) as daemon:
            self.fill(daemon, b"Content-Length: 2\r\n\r\n{]" * 20000, 200_000_000)
            self.assert_bounded(daemon)
            daemon.signal(2)
            self.assertEqual(daemon.wait_exit(CEILING), 0)

    def assert_bounded(self, daemon):
        if not suite.is_sanitized():  # which keeps freed memory for a while
            self.assertLessEqual(peak_memory(daemon.pid), MEMORY_BOUND)

    def test_end_of_input_is_not_held_up(self):
        with suite.rpc(read_stdout=False) as daemon:
            daemon.write_some(frame(request("describeMethods", 1)) * 2000, STALLED)
            daemon.close_input()
            self.assertEqual(daemon.wait_exit(CEILING), 0)

    def test_shutdown_is_not_held_up(self):
        with suite.rpc(read_stdout=False) as daemon:
            daemon.write_some(frame(request("describeMethods", 1)) * 500 + frame(request("shutdown", 2)), STALLED)
            self.assertEqual(daemon.wait_exit(CEILING), 0)


class ReadsLate(suite.TestCase):
    def test_everything_written_before_the_first_read_is_answered(self):
        with suite.rpc(read_stdout=False) as daemon:
            daemon.send_bytes(b"".join(frame(request("version", id)) for id in range(20000)))
            daemon.read_stdout()
            for id in range(20000):
                self.assertEqual(daemon.next_message()["id"], id)
            daemon.close_input()
            daemon.expect_exit(0)

    def test_reading_resumes_after_a_pause(self):
        """More answers than may wait: the daemon stops reading, and goes on when the client reads."""
        self.assert_all_is_answered_after_a_pause(2000, STALLED)

    def test_time_spent_paused_does_not_count_against_a_frame(self):
        """The daemon stops in the middle of a frame for longer than the read timeout; the frame is not dropped."""
        self.assert_all_is_answered_after_a_pause(1000, 7.0, "--read-timeout", "5")

    def assert_all_is_answered_after_a_pause(self, count, pause, *options):
        ids = [f"{number} " + "x" * 100_000 for number in range(count)]
        with suite.rpc(*options, read_stdout=False) as daemon:
            left = daemon.write_some(b"".join(frame(request("version", id)) for id in ids), pause)
            self.assertTrue(left, "all was taken: the bound was not reached")
            daemon.read_stdout()
            writer = threading.Thread(target=daemon.send_bytes, args=(left,))
            writer.start()
            for id in ids:
                self.assertEqual(daemon.next_message()["id"], id)
            writer.join()
            daemon.close_input()
            daemon.expect_exit(0)

    def test_a_signal_never_cuts_an_answer_that_is_being_read(self):
        id = "x" * 9_000_000
        with suite.rpc(read_stdout=False) as daemon:
            daemon.send(request("version", id))
            self.assertTrue(select.select([daemon.process.stdout], [], [], PATIENCE)[0])
            daemon.signal(15)
            daemon.read_stdout()
            self.assertEqual(daemon.next_message()["id"], id)
            daemon.expect_exit(0, CEILING)

    def test_memory_is_given_back(self):
        with suite.rpc(read_stdout=False) as daemon:
            for _ in range(30):
                daemon.send(request("version", "x" * 1_000_000))
            daemon.read_stdout()
            for _ in range(30):
                daemon.next_body()
            self.assert_version(daemon)
            if not suite.is_sanitized():
                eventually(lambda: self.resident(daemon.pid) < 15_000_000, what="memory given back")
            daemon.close_input()
            daemon.expect_exit(0)

    @staticmethod
    def resident(pid):
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class WritesSlowly(suite.TestCase):
    def test_one_byte_at_a_time(self):
        with suite.rpc() as daemon:
            for byte in frame(request("version", "drip")):
                daemon.send_bytes(bytes([byte]))
            self.assertEqual(daemon.next_message()["id"], "drip")
            daemon.close_input()
            daemon.expect_exit(0)


class LargeMessages(suite.TestCase):
    def test_nine_megabytes_both_ways(self):
        with suite.rpc() as daemon:
            id = "ö" * 4_500_000
            answer = daemon.call("version", id)
            self.assertEqual(answer["id"], id)
            daemon.close_input()
            daemon.expect_exit(0)

    def test_an_oversize_payload_is_skipped_in_constant_memory(self):
        with suite.rpc() as daemon:
            self.assert_version(daemon)
            before = peak_memory(daemon.pid)
            daemon.send_bytes(b"Content-Length: 300000000\r\n\r\n")
            for _ in range(300):
                daemon.send_bytes(b"a" * 1_000_000)
            self.assertEqual(daemon.next_message()["error"]["data"], {"reason": "oversize"})
            self.assert_version(daemon)
            self.assert_not_above(before + 5_000_000, daemon)
            daemon.close_input()
            daemon.expect_exit(0)

    def assert_not_above(self, bound, daemon):
        if not suite.is_sanitized():
            self.assertLess(peak_memory(daemon.pid), bound)

    def test_endless_junk_in_constant_memory(self):
        for junk in (b"{" * 1_000_000, b"Content-Length: 1\r\nx\r\n" * 50_000, b"X: y\r\n" * 150_000,
                     b"\r\n\r\n" * 250_000):
            with self.subTest(junk[:24]), suite.rpc() as daemon:
                self.assert_version(daemon)
                before = peak_memory(daemon.pid)
                for _ in range(60):
                    daemon.send_bytes(junk)
                self.assertIn("error", daemon.next_message())
                self.assert_not_above(before + 5_000_000, daemon)
                daemon.signal(15)
                self.assertEqual(daemon.wait_exit(CEILING), 0)


class LinearTime(suite.TestCase):
    """Input built to be looked at again and again: all of it is taken within the patience a few megabytes deserve."""

    def assert_survives(self, data):
        with suite.rpc("--log-level", "error") as daemon:
            daemon.send_bytes(data)
            daemon.send(request("version", "survived"))
            while True:
                if daemon.next_message().get("id") == "survived":
                    break
            daemon.close_input()
            daemon.expect_exit(0)

    def test_headers_that_almost_are(self):
        self.assert_survives(b"junk\r\n" + b"Content-Length: 5\r\n" * 400_000)

    def test_header_names_in_the_middle_of_a_line(self):
        self.assert_survives(b"{" + b"Content-Length:" * 500_000)
        self.assert_survives(b"{" + b"Content-Type:" * 500_000 + b"\r\nContent-Length: x\r\n\r\n")

    def test_header_names_inside_an_unfinished_body(self):
        self.assert_survives(b"Content-Length: 9000000\r\n\r\n" + b"Content-Length: " * 500_000)

    def test_empty_lines(self):
        self.assert_survives(b"\r\n" * 3_000_000)

    def test_a_body_in_tiny_pieces(self):
        body = request("version", "x" * 2_000_000).encode()
        with suite.rpc() as daemon:
            daemon.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body))
            for start in range(0, len(body), 500):
                daemon.send_bytes(body[start:start + 500])
            self.assertIn("result", daemon.next_message())
            daemon.close_input()
            daemon.expect_exit(0)


if __name__ == "__main__":
    suite.main()
