"""For scenarios that take a lease or longer: they run at the same time, each in a thread with a queue of its own."""

import threading
import traceback

import suite
from daemon import Failure, eventually
from fleet import Fleet, read_file


class Background:
    """A scenario, a function of a Fleet, begun. Its failure is the result; ON is a server that it shares with others."""

    def __init__(self, scenario, on):
        self.scenario, self.on, self.problem = scenario, on, None
        self.thread = threading.Thread(target=self.run, name=scenario.__name__)
        self.thread.start()

    def run(self):
        try:
            with Fleet(suite.program(), self.on) as fleet:
                try:
                    self.scenario(fleet)
                except BaseException:
                    self.problem = f"{traceback.format_exc()}\n{fleet.logs()}"
        except BaseException:
            self.problem = self.problem or traceback.format_exc()

    def result(self):
        self.thread.join()
        if self.problem:
            raise Failure(self.problem)


class Later:
    """A call in a thread of its own; its result, when it is there."""

    def __init__(self, act):
        self.value, self.problem = None, None
        self.thread = threading.Thread(target=self.run, args=(act,))
        self.thread.start()

    def run(self, act):
        try:
            self.value = act()
        except BaseException:
            self.problem = traceback.format_exc()

    def result(self):
        self.thread.join()
        if self.problem:
            raise Failure(self.problem)
        return self.value


def happens(condition, patience):
    try:
        return eventually(condition, patience)
    except Failure:
        return None


def check(right, *what):
    if not right:
        raise Failure(" ".join(str(word) for word in what))


def lines(path):
    return read_file(path).decode().splitlines()


def appends(path):
    """A command that writes down its beginning, and its end if it gets there: when let_go() says so."""
    return (f"echo begin $DUET_TASK_WORKER $DUET_TASK_FENCE $(date +%s.%N) $$ >> {path}; until [ -e {path}.go ]; do sleep 0.1; done; "
            f"echo end $DUET_TASK_WORKER $DUET_TASK_FENCE $(date +%s.%N) $$ >> {path}")


def let_go(path):
    with open(path + ".go", "w", encoding="ascii"):
        pass
