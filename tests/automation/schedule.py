#!/usr/bin/env python3
"""A schedule in real time. It takes two minutes, since nothing comes more often than every minute; what there is to know
about schedules is tested on a clock that can be moved, in src/automation."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from rule_project import RuleTestCase, shell  # noqa: E402


class Schedule(RuleTestCase):
    def test_a_minute_comes_due_and_one_that_is_missed_is_listed(self):
        self.start(shell("minutes", "source = 'schedule', cron = '* * * * *'", 'printf %s "$DUET_TIME"'))
        due = self.status()["rules"][0]["nextAt"]
        eventually(lambda: due in map(self.result_of, self.recent("minutes", "fired")), 60 + PATIENCE, "the next minute")
        killed = int(time.time() // 60)
        self.project.kill(self.pid, signal.SIGKILL)
        time.sleep(max(0, 60 * (killed + 1) - time.time()) + 0.5)
        self.start()
        [missed] = self.await_held("missed")
        self.assertTrue(1 <= missed["count"] <= int(time.time() // 60) - killed, missed)


if __name__ == "__main__":
    suite.main()
