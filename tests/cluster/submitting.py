#!/usr/bin/env python3
"""`duet-rpc task submit` to a daemon that shares its queue: what is sent, and what is asked again. The daemon is a fake one.

Usage: submitting.py --program PATH
"""

import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from project import ProjectTestCase  # noqa: E402

UNKNOWN = {"code": -32003, "message": "nobody knows whether it was taken", "data": {"outcome": "unknown"}}
NONE = {"code": -32003, "message": "it was not taken", "data": {"outcome": "none"}}


class FakeDaemon:
    """Answers task.submit with what it is given, one after the other, the last one for ever, and not with None; keeps what it was sent."""

    def __init__(self, path, answers):
        self.answers, self.submits = list(answers), []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rw", encoding="utf-8") as stream:
                for line in stream:
                    message = json.loads(line)
                    if "id" not in message:
                        continue
                    answer = self.answer(message)
                    if answer is None:
                        continue
                    stream.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
                    stream.flush()

    def answer(self, message):
        if message["method"] == "daemon.status":
            return {"result": {"worker": "here", "problems": []}}
        if message["method"] != "task.submit":
            return {"error": {"code": -32601, "message": "Method not found"}}
        self.submits.append(message["params"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            return None
        return {"error": answer} if "code" in answer else {"result": answer}


class Submitting(ProjectTestCase):
    def fake(self, *answers, worker="here"):
        os.makedirs(self.project.state, mode=0o700)
        if worker:
            with open(os.path.join(self.project.state, "daemon.worker"), "w", encoding="utf-8") as file:
                file.write(worker + "\n")
        daemon = FakeDaemon(self.project.socket, answers or ({"taskId": "task-1"},))
        self.addCleanup(daemon.close)
        return daemon

    def submit(self, *words, **options):
        return self.project.run("task", "submit", *words, **options)

    def test_without_a_shared_queue_all_is_as_it_was(self):
        daemon = self.fake(worker=None)
        self.assertEqual(self.submit("do it").out, "task-1\n")
        self.assertIn("PATH", daemon.submits[0]["env"])
        self.assertNotIn("key", daemon.submits[0])

    def test_the_path_stays_at_home_and_a_key_goes_along(self):
        daemon = self.fake()
        self.assertEqual(self.submit("do it").out, "task-1\n")
        self.assertNotIn("env", daemon.submits[0])
        self.assertRegex(daemon.submits[0]["key"], "^cli-[0-9a-f]{32}$")
        self.submit("do it", "--key", "mine", "--env", "PATH=/opt")
        self.assertEqual((daemon.submits[1]["key"], daemon.submits[1]["env"]), ("mine", {"PATH": "/opt"}))

    def test_here_is_this_worker_with_this_path(self):
        daemon = self.fake()
        self.submit("do it", "--here", "--needs", "gpu")
        self.assertEqual((daemon.submits[0]["needs"], daemon.submits[0]["here"]), (["gpu"], True))
        self.assertIn("PATH", daemon.submits[0]["env"])

    def test_labels_and_what_a_lost_one_becomes(self):
        daemon = self.fake()
        self.submit("do it", "--needs", "gpu", "--needs", "os=debian", "--on-lost", "retry")
        self.assertEqual((daemon.submits[0]["needs"], daemon.submits[0]["onLost"]), (["gpu", "os=debian"], "retry"))
        refused = self.submit("do it", "--on-lost", "never")
        self.assertNotEqual(refused.code, 0)
        self.assertEqual(len(daemon.submits), 1)

    def test_what_is_uncertain_is_asked_again_under_the_same_key(self):
        daemon = self.fake(UNKNOWN, UNKNOWN, {"taskId": "task-7"})
        self.assertEqual(self.submit("do it").out, "task-7\n")
        self.assertEqual(len(daemon.submits), 3)
        self.assertEqual(len({submit["key"] for submit in daemon.submits}), 1)

    def test_that_ends_with_the_time_and_with_certainty(self):
        daemon = self.fake(NONE, UNKNOWN, UNKNOWN, None)
        self.assert_refused(self.submit("do it"), 1, "it was not taken")
        self.assertEqual(len(daemon.submits), 1)
        self.assert_refused(self.submit("do it", "--timeout", "5s"), 1, "nobody knows")
        self.assertEqual(len(daemon.submits), 4)

    def test_a_daemon_that_is_known_by_its_socket_is_asked(self):
        daemon = self.fake(worker=None)
        away = self.new_project("away")
        result = self.project.run("task", "submit", "do it", "--socket", self.project.socket, cwd=away.root)
        self.assertEqual(result.out, "task-1\n", result)
        self.assertIn("key", daemon.submits[0])


if __name__ == "__main__":
    suite.main()
