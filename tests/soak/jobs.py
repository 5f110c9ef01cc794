"""Kinds of tasks, each with what must have become of it when it has ended."""

import os

from daemon import Failure

ENDED = ("completed", "failed", "cancelled")
RUN = 'echo ran >> "$SOAK_EFFECTS/$DUET_TASK_ID"; '


def expect(condition, text, record):
    if not condition:
        raise Failure(f"{text}: { {name: value for name, value in record.items() if name != 'prompt'} }")


class Job:
    """A task that is to be submitted, and the judge of its record."""

    def __init__(self, script, state="completed", reason=None, runs=(1,), **params):
        self.params = {"prompt": RUN + script, "agent": "shell", **params}
        self.state, self.reason, self.runs_allowed = state, reason, runs
        self.output = None
        self.cancel = False

    def judge(self, record, runs, hit):
        """HIT: its keeper may have been killed by us."""
        reason = (record["error"] or {}).get("reason")
        expect(runs <= record["attempts"], f"ran {runs} times in {record['attempts']} attempts", record)
        expect(hit or reason != "lost", "lost, though nobody killed its keeper", record)
        if hit and (reason == "lost" or record["attempts"] > 1):
            return
        if self.cancel and record["state"] == "cancelled":
            expect(runs <= 1, f"ran {runs} times", record)
            return
        expect((record["state"], reason) == (self.state, self.reason), f"not {self.state}, {self.reason}", record)
        expect(runs in self.runs_allowed, f"ran {runs} times, not {self.runs_allowed}", record)


class Talker(Job):
    """Writes numbered lines, slowly, to both streams."""

    def __init__(self, count, pause):
        super().__init__(f"i=0; while [ $i -lt {count} ]; do echo line $i; i=$((i+1)); sleep {pause}; done; exit 7",
                         "failed", "exit")
        self.output = "".join(f"line {number}\n" for number in range(count))


ESCAPES = ["setsid sleep 300 &", "(setsid sh -c '(sleep 300 &) &' &)", "nohup sleep 300 >/dev/null 2>&1 &",
           "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &",
           "i=0; while [ $i -lt 40 ]; do sleep 300 & i=$((i+1)); done"]


def random_job(chance, effects):
    """EFFECTS is a folder of marks that tasks may leave for themselves."""
    kind = chance.randrange(100)
    priority = chance.randrange(-5, 6)
    if kind < 40:
        return Job("true", priority=priority)
    if kind < 50:
        return Job(f"exit {chance.randrange(1, 100)}", "failed", "exit", priority=priority)
    if kind < 58:
        mark = os.path.join(effects, f"mark-{chance.getrandbits(64):x}")
        return Job(f"test -e {mark} || {{ touch {mark}; exit 3; }}", runs=(2,), retries=2, priority=priority)
    if kind < 66:
        return Talker(chance.randrange(5, 40), 0.05)
    if kind < 74:
        job = Job("sleep 300", "failed", "timeout", timeoutSeconds=60)
        job.cancel = True
        return job
    if kind < 82:
        # On a loaded machine a tenth of a second may be over before the shell has done anything.
        return Job("sleep 300", "failed", "timeout", runs=(0, 1), timeoutSeconds=chance.choice([0.1, 0.5, 1]))
    if kind < 88:
        return Job(f"{chance.choice(ESCAPES)}\n sleep 0.1", priority=priority)
    if kind < 92:
        return Job("kill -SEGV $$", "failed", "signal")
    if kind < 96:
        return Job(f": {'x' * chance.randrange(100_000)}")
    return Job(f"sleep {chance.uniform(0, 2):.2f}", priority=priority)
