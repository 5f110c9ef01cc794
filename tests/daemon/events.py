#!/usr/bin/env python3
"""Events as clients get them: joined up over lost connections, restarts and kills; a client that does not read.

Tasks that wait for a task that is cancelled then make two events each: when they are queued, and when they fail.
"""

import json
import os
import shutil
import random
import select
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import store  # noqa: E402
import suite  # noqa: E402
from daemon import PATIENCE, Failure, eventually, request  # noqa: E402
from project import ProjectTestCase  # noqa: E402

PORTION = 1000
LONG_NAME = "a" * 64  # of an agent: it stands in every event


class Events(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.project.write_settings(f'[agents.{LONG_NAME}]\ncommand = ["sleep", "{{prompt}}"]\n')
        self.pid = self.project.start()

    def make_events(self, count, agent="shell"):
        """COUNT events from now on, or some more; returns the number of the last one."""
        with self.project.connect() as client:
            for _ in range(0, count, 2 * PORTION):
                before = self.next(client)
                first = client.call("task.submit", params={"prompt": "1000", "agent": LONG_NAME})["result"]["taskId"]
                submit = {"prompt": "true", "agent": agent, "after": [first]}
                lines = [request("task.submit", id, params=submit) for id in range(PORTION)]
                client.send_bytes("\n".join([*lines, ""]).encode())
                for id in range(PORTION):
                    client.answer(id)
                client.call("task.cancel", params=[first])
                enough = before + 2 * (PORTION + 1)  # each is queued and ends; a shared queue numbers that a moment later
                eventually(lambda: self.all_ended(client) and self.next(client) >= enough, what="the tasks have failed")
            return self.next(client) - 1

    @staticmethod
    def next(client):
        return client.call("events.subscribe")["result"]["next"]

    @staticmethod
    def all_ended(client):
        stats = client.call("task.stats")["result"]
        return stats["queued"] + stats["running"] == 0


class Joining(Events):
    def test_over_lost_connections(self):
        """A client that leaves at random and comes back asks for the first event it lacks."""
        worker = threading.Thread(target=lambda: setattr(self, "last", self.make_events(10_000)))
        self.last, got, missing = None, set(), 1
        worker.start()
        dice = random.Random(1)
        while not self.last or missing <= self.last:
            here = set()
            with self.project.connect() as client:
                client.send(request("events.subscribe", params={"since": missing}))
                answered, before = False, None
                for _ in range(dice.randrange(1, 3000)):
                    try:
                        message = client.next_message(0.5)
                    except Failure:
                        break  # nothing new for now
                    if "id" in message:
                        self.assertNotIn("missed", message["result"])
                        answered, before = True, None
                        continue
                    if message["method"] == "event.taskOutput":
                        continue
                    seq = message["params"]["seq"]
                    self.assertNotIn(seq, here, "twice on one connection")
                    self.assertTrue(before is None or seq > before, "out of order")
                    before = seq
                    here.add(seq)
                self.assertTrue(answered or len(here) < 3000)
            got |= here
            while missing in got:
                missing += 1
        worker.join()
        self.assertEqual(missing, self.last + 1)
        self.assertGreater(self.last, 10_000)

    def test_by_the_command(self):
        """What it prints is in order and complete, though events come while it subscribes."""
        self.make_events(1000)
        command = self.project.popen("events", "--since", "1")
        last = self.make_events(1000)
        seqs = []
        while not seqs or seqs[-1] < last:
            params = json.loads(command.stdout.readline())["params"]
            seqs += [params["seq"]] if "seq" in params else []
        command.send_signal(signal.SIGINT)
        command.communicate()
        self.assertEqual(seqs, list(range(1, last + 1)))

    def test_over_a_restart_and_a_kill(self):
        epochs = set()
        last = self.make_events(1000)
        for end in ("stop", "kill", "restart"):
            if end == "kill":
                self.project.kill(self.pid)
            else:
                self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
            self.pid = self.project.start()
            with self.project.connect() as client:
                answer = client.call("events.subscribe", params={"since": last + 1})["result"]
                self.assertNotIn("missed", answer)
                epochs.add(answer["epoch"])
                seqs = [client.next_message()["params"]["seq"] for _ in range(last + 1, answer["next"])]
                self.assertEqual(seqs, list(range(last + 1, answer["next"])))
            last = self.make_events(100)
        self.assertEqual(len(epochs), 1)
        with self.project.popen("events", "--since", "1") as command:
            everything = []
            self.read_until(last, command, everything)
            command.kill()
        self.assertEqual(everything, list(range(1, last + 1)))

    @store.only_sqlite("a database has other ways to be lost")
    def test_a_new_epoch_when_the_store_was_removed(self):
        last = self.make_events(1000)
        before = self.project.call("events.subscribe")["result"]["epoch"]
        self.project.kill(self.pid)
        self.remove_store()
        self.pid = self.project.start()
        answer = self.project.call("events.subscribe", params={"since": last + 1})["result"]
        self.assertNotEqual(answer["epoch"], before)
        self.assertTrue(answer["missed"])
        self.assertLessEqual(answer["oldest"], answer["next"])

    def remove_store(self):
        for name in ("tasks.db", "tasks.db-wal", "tasks.db-shm"):
            os.unlink(os.path.join(self.project.state, name))
        shutil.rmtree(os.path.join(self.project.state, "tasks"))

    @staticmethod
    def read_until(last, command, seqs):
        while not seqs or seqs[-1] < last:
            params = json.loads(command.stdout.readline())["params"]
            seqs.extend([params["seq"]] if "seq" in params else [])

    def test_the_command_goes_on_with_the_next_daemon(self):
        with self.project.popen("events", "--since", "1") as command:
            seqs = []
            self.read_until(self.make_events(10), command, seqs)
            self.project.kill(self.pid)
            self.pid = self.project.start()
            self.read_until(self.make_events(10), command, seqs)
            self.assertEqual(self.project.run("daemon", "restart").code, 0)
            last = self.make_events(10)
            self.read_until(last, command, seqs)
            self.assertEqual(self.project.run("daemon", "stop").code, 0)
            err = command.communicate(timeout=PATIENCE)[1].decode()
        self.assertEqual(seqs, list(range(1, last + 1)))
        self.assertEqual((command.returncode, err.count("waiting for the next one")), (3, 2), err)
        self.assertTrue(err.endswith("the daemon has stopped\n"), err)

    @store.only_sqlite("a database has other ways to be lost")
    def test_the_command_says_that_the_history_was_lost(self):
        with self.project.popen("events", "--since", "1") as command:
            self.read_until(self.make_events(10), command, [])
            self.project.kill(self.pid)
            self.remove_store()
            self.pid = self.project.start()
            seqs = []
            last = self.make_events(10)
            self.read_until(last, command, seqs)
            self.assertEqual(seqs, list(range(1, last + 1)))
            self.assertEqual(self.project.run("daemon", "stop", "--force").code, 0)
            err = command.communicate(timeout=PATIENCE)[1].decode()
        self.assertEqual(command.returncode, 3)
        self.assertIn("the history of events was lost; it begins anew", err)

    def test_the_end_of_the_daemon_is_an_event(self):
        with self.project.popen("events", "--kind", "daemonStopping", "--kind", "taskQueued") as command:
            # Once it tells of tasks it has subscribed.
            eventually(lambda: self.project.call("task.submit", params={"prompt": "true", "agent": "shell"}) and
                       select.select([command.stdout], [], [], 0.1)[0], what="the command has subscribed")
            self.assertEqual(self.project.run("daemon", "stop").code, 0)
            out, err = command.communicate(timeout=PATIENCE)
        self.assertEqual(json.loads(out.splitlines()[-1])["method"], "event.daemonStopping")
        self.assertEqual((command.returncode, err.count(b"\n")), (3, 1))
        self.assertIn(b"the daemon has stopped", err)


class Scripted(ProjectTestCase):
    """The command, with a daemon that sends what it is told to, in the order it is told to."""

    def talk(self, *words, early, answers, replay):
        path = os.path.join(self.project.root, "scripted")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            with self.project.popen("events", "--socket", path, "--timeout", "100s", *words) as command:
                client = listener.accept()[0]
                with client, client.makefile("rwb", buffering=0) as stream:
                    for seq in early:
                        stream.write(self.event(seq))
                    for answer in answers:
                        id = json.loads(stream.readline())["id"]
                        stream.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": answer}).encode() + b"\n")
                    for seq in replay:
                        stream.write(self.event(seq))
                    lines = [json.loads(command.stdout.readline())["params"]["seq"] for _ in range(self.wanted(*words))]
                command.kill()
        os.unlink(path)
        return lines

    @staticmethod
    def event(seq):
        kind = "taskFailed" if seq % 2 else "taskQueued"
        return json.dumps({"jsonrpc": "2.0", "method": f"event.{kind}", "params": {"seq": seq}}).encode() + b"\n"

    @staticmethod
    def wanted(*words):
        return 3 if "--kind" in words else 6

    def test_what_came_early_waits_for_its_turn(self):
        next_ = {"epoch": "e", "next": 7}
        for early, replay in (([5], [1, 2, 3, 4, 6]), ([3, 4, 5, 6], [1, 2]), ([], [1, 2, 3, 4, 5, 6]),
                              ([2, 4], [1, 3, 5, 6])):
            seqs = self.talk("--since", "1", early=early, answers=[next_], replay=replay)
            self.assertEqual(seqs, [1, 2, 3, 4, 5, 6])
            seqs = self.talk("--since", "1", "--kind", "taskFailed", early=early, answers=[next_, next_], replay=replay)
            self.assertEqual(seqs, [1, 3, 5])


    def test_after_an_overflow_it_subscribes_once_more(self):
        path = os.path.join(self.project.root, "scripted")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            with self.project.popen("events", "--socket", path, "--timeout", "100s", "--since", "1") as command:
                client = listener.accept()[0]
                client.settimeout(PATIENCE)
                with client, client.makefile("rwb", buffering=0) as stream:
                    def answer(sent):
                        asked = json.loads(stream.readline())
                        stream.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"epoch": "e", "next": 7}})
                                     .encode() + b"\n" + b"".join(self.event(seq) for seq in sent))
                        return asked["params"]
                    self.assertEqual(answer([1, 2, 3]), {"since": 1})
                    stream.write(b'{"jsonrpc":"2.0","method":"event.overflow","params":{"seq":4}}\n')
                    self.assertEqual(answer([4, 5, 6]), {"since": 4})
                    lines = [json.loads(command.stdout.readline()) for _ in range(7)]
                    client.settimeout(0.2)
                    self.assertRaises(TimeoutError, client.recv, 1)  # nothing more is asked
                command.kill()
        os.unlink(path)
        self.assertEqual([line["params"]["seq"] for line in lines], [1, 2, 3, 4, 4, 5, 6])


@store.only_sqlite("what a client does not read is the same; so many tasks would take minutes")
class NotReading(Events):
    def test_costs_the_subscription_and_not_the_replies(self):
        with self.project.connect() as deaf, self.project.connect() as other:
            deaf.call("ping")
            other.call("ping")
            last = self.make_events(34_000, LONG_NAME)
            deaf.send(request("ping", "reply"))
            seqs, replies = [], []
            while not seqs or seqs[-1] != "overflow":
                message = deaf.next_message()
                if "id" in message:
                    replies.append(message["id"])
                elif message["method"] == "event.overflow":
                    first_missing = message["params"]["seq"]
                    seqs.append("overflow")
                else:
                    seqs.append(message["params"]["seq"])
            seqs.pop()
            self.assertEqual(seqs, list(range(1, first_missing)))
            self.assertLess(first_missing, last)
            if not replies:
                replies.append(deaf.next_message()["id"])
            self.assertEqual(replies, ["reply"])
            self.make_events(1)
            deaf.send(request("ping", "nothing comes before"))
            self.assertEqual(deaf.next_message()["id"], "nothing comes before")
            answer = deaf.call("events.subscribe", params={"since": first_missing})["result"]
            self.assertTrue(answer["missed"])
            self.assertGreater(answer["oldest"], first_missing)
            again = [deaf.next_message()["params"]["seq"] for _ in range(answer["oldest"], answer["next"])]
            self.assertEqual(again, list(range(answer["oldest"], answer["next"])))


if __name__ == "__main__":
    suite.main()
