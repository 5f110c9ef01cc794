"""Who takes part: clients that submit and judge, listeners, rude clients, savers of files, and trouble itself."""

import os
import random
import select
import signal
import socket
import threading
import time
import uuid

from daemon import Failure, eventually, request
from jobs import ENDED, Talker, random_job

WEATHER = (OSError, Failure)  # of a connection whose daemon was killed
QUEUE_FULL, UNAVAILABLE, ENDED_ALREADY = -32002, -32003, -32001
OUTSTANDING = 30  # tasks a client has at once
PATIENCE = 120  # for a task to end: the machine is busy, and so is the queue


class Actor(threading.Thread):
    """Does one thing again and again until the soak is over; its first failure ends it."""

    def __init__(self, soak, name):
        super().__init__(name=name, daemon=True)
        self.soak, self.project = soak, soak.project
        self.chance = random.Random(f"{soak.seed} {name}")

    def run(self):
        try:
            while not self.soak.over.is_set():
                self.act()
            self.finish()
        except Exception as error:  # whatever it is, it is the result of the soak
            self.soak.fail(f"{self.name}: {type(error).__name__}: {error}")

    def finish(self):
        pass

    def pause(self, most):
        self.soak.over.wait(self.chance.uniform(0, most))


class Caller:
    """Asks the daemon that is there now, as often as it takes."""

    def __init__(self, project):
        self.project, self.connection = project, None

    def once(self, method, params, patience=20):
        """The answer, or None if the connection went before it came."""
        try:
            if self.connection is None:
                self.connection = self.project.connect(5)
            return self.connection.call(method, params=params, patience=patience)
        except WEATHER:
            self.close()
            return None

    def call(self, method, **params):
        return eventually(lambda: self.once(method, params), PATIENCE, f"an answer to {method}")

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Client(Actor):
    """Submits tasks, some of them again and again with a key, cancels, waits, reads, and judges what became of them."""

    def __init__(self, soak, name):
        super().__init__(soak, name)
        self.caller = Caller(self.project)
        self.outstanding = {}
        self.ended_well = []

    def act(self):
        if len(self.outstanding) < OUTSTANDING and self.chance.random() < 0.8:
            self.submit()
        elif self.outstanding:
            self.judge(self.chance.choice(list(self.outstanding)), 0.2)

    def submit(self):
        job = random_job(self.chance, self.soak.effects)
        if self.ended_well and self.chance.random() < 0.2:
            job.params["after"] = self.chance.sample(self.ended_well, min(2, len(self.ended_well)))
        if self.chance.random() < 0.5 and not job.cancel:
            answer = self.caller.once("task.submit", job.params)
            if answer is None:
                return  # nobody knows whether it was accepted; if so it runs once, see Soak.check_all
        else:
            job.params["key"] = str(uuid.UUID(int=self.chance.getrandbits(128)))
            answer = self.submitted_twice(job)
        if "error" in answer:
            if answer["error"]["code"] not in (QUEUE_FULL, UNAVAILABLE):
                raise Failure(f"a submit was refused: {answer}")
            return self.pause(0.5)
        id = answer["result"]["taskId"]
        self.outstanding[id] = job
        self.soak.count("accepted")
        if job.cancel:
            self.cancel(id)
        elif isinstance(job, Talker) and self.chance.random() < 0.5:
            self.soak.add(Follower(self.soak, id, job))

    def submitted_twice(self, job):
        answer = self.caller.call("task.submit", **job.params)
        if "result" in answer and self.chance.random() < 0.3:
            again = self.caller.call("task.submit", **job.params)
            if again.get("result", answer["result"])["taskId"] != answer["result"]["taskId"]:
                raise Failure(f"one key, two tasks: {answer} {again}")
        return answer

    def cancel(self, id):
        self.pause(0.3)
        answer = self.caller.call("task.cancel", taskId=id)
        if "error" in answer and answer["error"]["code"] not in (ENDED_ALREADY, UNAVAILABLE):
            raise Failure(f"a cancel was refused: {answer}")

    def judge(self, id, patience):
        answer = self.caller.once("task.wait", {"taskId": id, "timeoutSeconds": patience}, patience + 20)
        if answer is None or answer.get("error", {}).get("code") == UNAVAILABLE:
            return
        if "result" not in answer:
            raise Failure(f"{id} was accepted and is gone: {answer}")
        record = answer["result"]
        if record["state"] not in ENDED:
            return
        job = self.outstanding.pop(id)
        job.judge(record, self.soak.runs(id), self.soak.may_be_hit(record))
        if job.output is not None and not self.soak.may_be_hit(record):
            output = self.caller.call("task.output", taskId=id)["result"]
            if output["data"] != job.output:
                raise Failure(f"{id} wrote {job.output!r}, and {output} is kept")
        if record["state"] == "completed":
            self.ended_well = [*self.ended_well[-20:], id]
        self.soak.count("judged")

    def finish(self):
        deadline = time.monotonic() + PATIENCE
        while self.outstanding:
            if time.monotonic() > deadline:
                raise Failure(f"stuck: {list(self.outstanding)}")
            self.judge(next(iter(self.outstanding)), 5)
        self.caller.close()


class Follower(Actor):
    """`task output -f`, through everything that happens to the daemon."""

    def __init__(self, soak, id, job):
        super().__init__(soak, f"follower of {id}")
        self.id, self.job = id, job

    def run(self):
        out, code = b"", 123
        while not out and code == 123:  # there was no daemon to begin with
            with self.project.popen("task", "output", "-f", self.id) as process:
                try:
                    out, err = process.communicate(timeout=PATIENCE)
                except Exception as error:
                    process.kill()
                    return self.soak.fail(f"{self.name}: {error}")
            code = process.returncode
        if self.soak.may_be_hit(Caller(self.project).call("task.get", taskId=self.id)["result"]):
            return None
        if (out.decode(), code) != (self.job.output, 7):
            self.soak.fail(f"{self.name}: {out!r} {err!r} {code}, not {self.job.output!r}")
        return self.soak.count("followed")


class Listener(Actor):
    """Hears every event once and in order, through all daemons."""

    def __init__(self, soak, name):
        super().__init__(soak, name)
        self.next, self.epoch = None, None

    def act(self):
        try:
            with self.project.connect(5) as connection:
                params = {} if self.next is None else {"since": self.next}
                connection.send(request("events.subscribe", 1, params=params))
                answer, early = connection.answer(1)
                self.begin(answer["result"], early)
                until = time.monotonic() + self.chance.uniform(0.5, 20)
                while time.monotonic() < until and not self.soak.over.is_set():
                    if connection.data or select.select([connection.socket], [], [], 0.5)[0]:
                        self.hear(connection.next_message(5))
        except OSError:
            self.pause(0.2)
        except Failure as failure:
            if "connection ended" not in str(failure) and "has ended" not in str(failure):
                raise
            self.pause(0.2)

    def begin(self, subscribed, early):
        """EARLY came before the answer; the replay leaves it out."""
        if subscribed.get("missed"):
            self.next = subscribed["oldest"] if self.next is not None else None
        if self.epoch not in (None, subscribed["epoch"]):
            raise Failure(f"the epoch changed from {self.epoch} to {subscribed['epoch']}")
        self.epoch = subscribed["epoch"]
        self.early = {event["params"]["seq"] for event in early}
        if self.next is None:
            self.next = subscribed["next"]

    def hear(self, event):
        if event["method"] == "event.overflow":
            raise Failure(f"a listener that reads lost its subscription: {event}")
        if event["method"] == "event.taskOutput":
            return
        while self.next in self.early:
            self.next += 1
        seq = event["params"]["seq"]
        if seq != self.next:
            raise Failure(f"event {seq} came, {self.next} was expected")
        self.next = seq + 1
        self.soak.count("events")


class Rude(Actor):
    """Connects, and then reads nothing, sends rubbish, stops in the middle or goes away."""

    def act(self):
        try:
            with self.project.connect(5) as connection:
                connection.socket.settimeout(2)
                deed = self.chance.randrange(4)
                if deed == 0:
                    connection.send_bytes(os.urandom(self.chance.randrange(1, 5000)))
                elif deed == 1:
                    connection.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"task.list"}\n' * 2000)
                    self.pause(3)
                elif deed == 2:
                    connection.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"task.su')
                else:
                    connection.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"events.subscribe"}\n')
                    self.pause(3)
        except (OSError, socket.timeout):
            pass
        self.pause(1)


class Saver(Actor):
    """Saves files as editors do; a rule is set off by them."""

    def act(self):
        name = os.path.join(self.project.root, "inbox", f"file-{self.chance.randrange(20)}.txt")
        with open(name + "~", "w", encoding="ascii") as file:
            file.write(str(self.chance.random()))
        os.rename(name + "~", name)
        self.pause(4)


class Questioner(Actor):
    """Asks a language server through the daemon; any answer will do, but there has to be one."""

    def __init__(self, soak, name):
        super().__init__(soak, name)
        self.caller = Caller(self.project)

    def act(self):
        answer = self.caller.once("lsp.hover", {"file": "text.soak", "line": 1, "column": 1}, 60)
        if answer and "result" in answer:
            self.soak.count("hovers")
        self.pause(0.5)

    def finish(self):
        self.caller.close()


class Trouble(Actor):
    """Kills daemons and keepers, restarts, has settings read again. The only one who starts daemons."""

    def __init__(self, soak, name):
        super().__init__(soak, name)
        self.caller = Caller(self.project)

    def act(self):
        self.pause(4)
        deed = self.chance.randrange(10)
        if deed < 4:
            self.kill_daemon()
        elif deed < 6:
            self.restart()
        elif deed < 8:
            self.kill_keeper()
        elif deed < 9:
            os.kill(self.soak.pid, signal.SIGHUP)
        else:
            self.kill_nursery()

    def kill_daemon(self):
        self.project.kill(self.soak.pid)
        self.soak.count("daemons killed")
        if self.chance.random() < 0.3:
            self.pause(2)
        self.soak.pid = self.project.start()

    def restart(self):
        result = self.project.run("daemon", "restart", "--json", patience=120)
        if result.code != 0:
            raise Failure(f"restart: {result}")
        self.soak.pid = self.project.pid()
        self.project.pids.add(self.soak.pid)
        self.soak.count("restarts")

    def kill_keeper(self):
        running = self.caller.call("task.list", state="running")["result"]
        if not running:
            return
        task = self.chance.choice(running)
        try:
            keeper = parent_of(task["pid"])
            with open(f"/proc/{keeper}/comm", encoding="ascii") as file:
                if file.read().strip() != "duet-keeper":
                    return
            self.soak.keeper_kills.append(time.time())  # who may have another task by now
            os.kill(keeper, signal.SIGKILL)
        except (OSError, TypeError):
            return
        self.soak.count("keepers killed")

    def kill_nursery(self):
        for pid in children_of(self.soak.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    if file.read().strip() == "duet-nursery":
                        os.kill(pid, signal.SIGKILL)
                        self.soak.count("nurseries killed")
            except OSError:
                pass

    def finish(self):
        self.caller.close()


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def children_of(parent):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and parent_of(name) == parent:
                found.append(int(name))
        except OSError:
            pass
    return found
