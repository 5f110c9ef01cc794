"""Daemons that share one queue, for tests: a server with the schema, workers, and what may be done to them.

    with fleet.Fleet() as all:
        one, two = all.worker("one"), all.worker("two")
        id = one.submit("echo hello")
        two.wait(id)

Each worker is a project of its own with its own daemon: to the queue it is another machine. A test calls
`server.skip_unless_installed()` first.
"""

import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import server  # noqa: E402
from daemon import PATIENCE, Failure, eventually  # noqa: E402
from project import Project  # noqa: E402

ENDED = ("completed", "failed", "cancelled")


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes():
    """The ids of all of them."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def start_time(pid):
    """In ticks since boot: with it a pid names one process for good. None: it is gone, or a zombie."""
    text = read_file(f"/proc/{pid}/stat").decode("latin-1")
    words = text[text.rfind(")") + 2:].split()
    return int(words[19]) if len(words) > 19 and words[0] not in "ZX" else None


class Worker(Project):
    """A project whose daemon works for the queue."""

    def __init__(self, fleet, name, url=None, cluster="", top="", lease="30s", lost_after="30s", slots=2, accept='["shell"]'):
        super().__init__(program=fleet.program)
        self.fleet, self.name = fleet, name
        self.text = (f'store = "{url or fleet.url()}"\ndefault_agent = "shell"\nmax_running = {slots}\n{top}\n[cluster]\nproject = "site"\n'
                     f'name = "{name}"\naccept = {accept}\nlease = "{lease}"\nlost_after = "{lost_after}"\n{cluster}\n')
        self.write_user_settings(self.text)

    # -- its life --

    def kill_daemon(self):
        pid = self.lock_holder()
        if pid:
            self.kill(pid)
        return pid

    def kill_whole(self):
        """The daemon and all its keepers at once."""
        self.kill_all(lambda: [pid for pid in [self.lock_holder(), *self.keepers()] if pid])

    def kill_family(self):
        """All that the daemon has ever started, as if the machine were gone."""
        self.kill_all(lambda: [pid for pid in [self.lock_holder(), *self.family()] if pid])

    def kill_all(self, found):
        while pids := found():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for pid in pids:
                self.wait_gone(pid)

    def keepers(self):
        """The processes of this program that stay with this project's tasks, and the one that makes them."""
        return [pid for pid in processes() if read_file(f"/proc/{pid}/cmdline") == b"duet-rpc\0--nursery\0" and self.owns(pid)]

    def owns(self, pid):
        """PID was started by this project's daemon, at whatever distance."""
        return b"HOME=" + os.fsencode(self.home) + b"\0" in read_file(f"/proc/{pid}/environ") + b"\0"

    def family(self):
        """All processes that the daemon has left or has: keepers, tasks and what these started."""
        return [pid for pid in processes() if start_time(pid) is not None and self.owns(pid)]

    def clean_up(self):
        try:
            self.kill_family()
        finally:
            super().clean_up()

    # -- talking to it --

    def ask(self, method, patience=2 * PATIENCE, **params):
        with self.connect(patience) as connection:
            return connection.call(method, params=params, patience=patience)

    def ok(self, method, **params):
        answer = self.ask(method, **params)
        if "result" not in answer:
            raise Failure(f"{self.name}: {method} {params}: {answer}")
        return answer["result"]

    def submit(self, prompt, **params):
        return self.ok("task.submit", prompt=prompt, **params)["taskId"]

    def get(self, id):
        return self.ok("task.get", taskId=id)

    def wait(self, id, patience=PATIENCE):
        record = self.ok("task.wait", taskId=id, timeoutSeconds=patience)
        if record["state"] not in ENDED:
            raise Failure(f"{self.name}: {id} has not ended within {patience} s: {record}")
        return record

    def runs(self, id, patience=PATIENCE):
        """Waits until the task runs; its record."""
        def look():
            record = self.get(id)
            return record if record["state"] == "running" else None
        return eventually(look, patience, f"{id} runs")

    def workers(self):
        """State by name, as this daemon tells it."""
        return {one["name"]: one["state"] for one in self.ok("cluster.status")["workers"]}

    def output(self, id):
        return self.run("task", "output", id).out

    def path(self, name):
        return os.path.join(self.root, name)


class Fleet:
    """A queue in a database of its own, and its workers. The server is the fleet's own unless it is given one."""

    made = threading.Lock()  # roles belong to the server: two queues are not made at once
    count = 0

    def __init__(self, program, shared=None, settings=()):
        self.program = os.path.abspath(program)
        self.server = shared or server.Server(settings=settings)
        self.is_own = not shared
        self.workers = []

    def __enter__(self):
        if self.is_own:
            self.server.__enter__()
        try:
            with Fleet.made:
                Fleet.count += 1
                self.database = self.server.make_database(f"work{Fleet.count}")
                self.make_queue()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            for worker in self.workers:
                worker.clean_up()
        finally:
            if self.is_own:
                self.server.__exit__()

    def make_queue(self):
        """By the program itself, whose schema is the one that its daemons need."""
        with Project(program=self.program) as project:
            project.write_user_settings(f'store = "{self.url()}"\n[cluster]\nproject = "site"\n')
            made = project.run("cluster", "init")
            if made.code != 0:
                raise Failure(f"cluster init: {made}")

    def url(self):
        return self.server.url(self.database)

    def worker(self, name, start=True, env=None, **options):
        one = Worker(self, name, **options)
        self.workers.append(one)
        if start:
            one.start(env=env)
        return one

    def sql(self, text):
        return self.server.sql(text, self.database)

    def logs(self, most=3000):
        """The ends of all logs, for a failure."""
        parts = []
        for worker in self.workers:
            text = read_file(os.path.join(worker.state, "daemon.log")).decode("utf-8", "replace")
            parts.append(f"--- {worker.name}\n{text[-most:]}")
        parts.append(f"--- server\n{self.server.log()[-most:]}")
        return "\n".join(parts)
