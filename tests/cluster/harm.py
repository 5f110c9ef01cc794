"""Those who do harm to the workers of a run of the checker, at random, until it is over.

Daemons, keepers and postgres are killed with SIGKILL, daemons are stopped for up to 60 s. Or it is the ways between daemons and
server that suffer: a proxy that stalls, cuts, drops and delays each direction by itself, or wires between namespaces that are cut.
"""

import os
import random
import signal
import threading

from daemon import Failure, eventually
from database_proxy import DELAY, DROP, STALL


class Harm:
    """What is done to the fleet of RUN, which counts it. `begin_again()` is for whoever finds a daemon dead."""

    def __init__(self, run, mode):
        self.run, self.over = run, run.over
        self.busy = set()  # workers that something is being done to
        self.lock = threading.Lock()
        kills = [self.kill_daemon, self.kill_daemon, self.kill_keeper, self.kill_keeper, self.stop_daemon, self.kill_postgres, self.restart]
        self.deeds = {"kills": kills,
                      "proxy": [self.cut, self.stall, self.drop, self.delay, self.refuse, self.kill_daemon],
                      "namespaces": [self.unplug, self.unplug, self.deafen, self.kill_daemon, self.kill_keeper, self.kill_postgres]}[mode]

    def go(self):
        chance = random.Random(f"{self.run.seed} harm")
        threads = []
        while not self.over.is_set():
            self.over.wait(chance.uniform(0.2, self.run.options.calm))
            deed, worker, number = chance.choice(self.deeds), chance.choice(self.run.fleet.workers), chance.random()
            name = "postgres" if deed == self.kill_postgres else worker.name
            with self.lock:
                if name in self.busy or (deed != self.kill_keeper and len(self.busy) >= 2):
                    continue
                self.busy.add(name)
            thread = threading.Thread(target=self.do, args=(deed, name, worker, number))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def do(self, deed, name, worker, number):
        try:
            deed(worker, number)
            if deed != self.kill_keeper:
                self.run.count(deed.__name__.replace("_", " "))
        except Exception as problem:
            self.run.fault(f"{deed.__name__} of {name}: {type(problem).__name__}: {problem}")
        finally:
            with self.lock:
                self.busy.discard(name)

    def start_again(self, worker):
        def attempt():
            try:
                return worker.start()
            except Failure as problem:
                self.problem = str(problem)
                return None
        try:
            eventually(attempt, 90, "the daemon starts again")
        except Failure as failure:
            raise Failure(f"{failure}: {self.problem}") from None

    def kill_daemon(self, worker, number):
        worker.kill_daemon()
        self.over.wait(number * number * 5)
        self.start_again(worker)

    def restart(self, worker, _):
        result = worker.run("daemon", "restart", patience=90)
        if result.code != 0:
            self.run.count("restarts that were refused")
            self.start_again(worker)

    def kill_keeper(self, worker, number):
        """One that has a task, or the one that makes them."""
        keepers = worker.keepers()
        if keepers:
            try:
                os.kill(keepers[int(number * len(keepers))], signal.SIGKILL)
                self.run.count("keepers killed")
            except ProcessLookupError:
                pass

    def stop_daemon(self, worker, number):
        pid = worker.lock_holder()
        if pid:
            os.kill(pid, signal.SIGSTOP)
            try:
                self.over.wait(1 + number * number * 59)
            finally:
                os.kill(pid, signal.SIGCONT)

    def kill_postgres(self, _, number):
        self.run.fleet.server.kill()
        self.over.wait(number * 8)
        self.run.fleet.server.start()

    # the ways between

    def for_a_while(self, number):
        self.over.wait(0.5 + number ** 3 * 45)

    def stall(self, worker, number):
        for way in self.some_ways(worker, number):
            way.mode = STALL
        self.for_a_while(number)
        worker.proxy.kind()

    def drop(self, worker, number):
        """What was lost will not come back: at the end the connections of now are over."""
        for way in self.some_ways(worker, number):
            way.mode = DROP
        self.for_a_while(number)
        worker.proxy.cut()
        worker.proxy.kind()

    def delay(self, worker, number):
        for way in self.some_ways(worker, number):
            way.seconds, way.mode = number * 4, DELAY
        self.for_a_while(number)
        worker.proxy.kind()

    def unplug(self, worker, number):
        """Nothing passes, and nobody is told."""
        worker.network.cut()
        self.for_a_while(number)
        worker.network.mend()

    def deafen(self, worker, number):
        """What the server sends is lost, what it is sent arrives."""
        worker.network.deafen()
        self.for_a_while(number)
        worker.network.mend()

    def refuse(self, worker, number):
        worker.proxy.refusing = True
        worker.proxy.cut()
        self.for_a_while(number)
        worker.proxy.kind()

    def cut(self, worker, _):
        worker.proxy.cut()

    @staticmethod
    def some_ways(worker, number):
        return ((worker.proxy.up,), (worker.proxy.down,), (worker.proxy.up, worker.proxy.down))[int(number * 3000) % 3]
