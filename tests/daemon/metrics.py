#!/usr/bin/env python3
"""`daemon.metrics` and `GET /metrics`: what they count, and how long they remember it.

Usage: metrics.py --program PATH
"""

import json
import os
import re
import subprocess
import sys
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "runner"), os.path.join(HERE, "..", "doors")]

import suite  # noqa: E402
from daemon import request  # noqa: E402
from door_client import DoorTestCase  # noqa: E402

WHOLE = {"submitted", "completed", "failed", "cancelled", "queued", "running", "clients", "requests", "memory"}
TIMES = {"waitP50", "waitP95", "runP50", "runP95", "requestP50", "requestP99", "lagP99"}
SAMPLE = re.compile(r'(duet_[a-z_]+)(?:\{([a-z]+)="([a-z0-9]+)"\})? (NaN|[0-9.]+(?:[eE][+-]?[0-9]+)?)')

READER = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families as families
print(json.dumps({family.name: {"type": family.type, "labels": [sample.labels for sample in family.samples]}
                  for family in families(sys.stdin.read())}))
"""


def time_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def total(numbers):
    return sum(number or 0 for number in numbers)


def samples(text):
    """The values by name and labels; a strict reader of the format."""
    found, described = {}, {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# "):
            _, what, name, words = line.split(" ", 3)
            described.setdefault(name, {})[what] = words
            continue
        name, label, value, number = SAMPLE.fullmatch(line).groups()
        assert set(described[name]) == {"HELP", "TYPE"}, name
        assert described[name]["TYPE"] == ("counter" if name.endswith("_total") else "gauge"), name
        key = f"{name}{{{label}={value}}}" if label else name
        assert key not in found, key
        found[key] = float(number)
    assert text.endswith("\n")
    return found


class Metrics(DoorTestCase):
    def metrics(self, **params):
        answer = self.project.call("daemon.metrics", params=params)
        self.assertIn("result", answer)
        return answer["result"]

    def run_tasks(self, *prompts):
        """Runs them to their ends, one after the other."""
        for prompt in prompts:
            submit = {"prompt": prompt, "agent": "shell"}
            id = self.project.call("task.submit", params=submit)["result"]["taskId"]
            self.project.call("task.wait", params={"taskId": id})

    def test_every_series_has_as_many_numbers_as_were_asked_for(self):
        self.project.start()
        for seconds, points in ((3600, 120), (60, 2), (60, 720), (86400, 720)):
            told = self.metrics(seconds=seconds, points=points)
            self.assertEqual(set(told), {"from", "to", "step", "series"})
            self.assertAlmostEqual(time_of(told["to"]) - time_of(told["from"]), seconds, places=2)
            self.assertAlmostEqual(told["step"], seconds / points)
            self.assertEqual(set(told["series"]), WHOLE | TIMES)
            for name, numbers in told["series"].items():
                self.assertEqual(len(numbers), points, name)
                kinds = (int,) if name in WHOLE else (int, float)
                self.assertTrue(all(number is None or isinstance(number, kinds) for number in numbers), name)
        default = self.metrics()
        self.assertEqual((len(default["series"]["queued"]), default["step"]), (120, 30))

    def test_tasks_are_counted_and_timed(self):
        self.project.start()
        self.run_tasks("sleep 0.5", "sleep 0.5", "exit 3")
        cancelled = self.project.call("task.submit", params={"prompt": "sleep 1000", "agent": "shell"})["result"]["taskId"]
        self.assertTrue(self.project.call("task.cancel", params={"taskId": cancelled})["result"]["cancelled"])
        self.project.call("task.wait", params={"taskId": cancelled})
        series = self.metrics(seconds=3600, points=2)["series"]
        self.assertEqual([total(series[name]) for name in ("submitted", "completed", "failed", "cancelled")], [4, 2, 1, 1])
        self.assertEqual(series["submitted"][0], None)  # there was no daemon half an hour ago
        self.assertGreaterEqual(series["running"][1], 1)
        self.assertGreaterEqual(series["runP95"][1], 0.4)
        self.assertGreaterEqual(series["waitP95"][1], 0)

    def test_requests_are_counted_and_timed(self):
        self.project.start()
        with self.project.connect() as client:
            for _ in range(50):
                client.call("ping")
            told = client.call("daemon.metrics", params={"seconds": 60, "points": 2})["result"]["series"]
        self.assertGreaterEqual(total(told["requests"]), 50)
        self.assertGreaterEqual(told["clients"][1], 1)
        self.assertGreater(told["memory"][1], 1 << 20)
        self.assertGreater(told["requestP99"][1], 0)
        self.assertGreaterEqual(told["requestP99"][1], told["requestP50"][1])
        self.assertGreater(told["lagP99"][1], 0)

    def test_the_next_daemon_remembers(self):
        self.project.start()
        self.run_tasks("true")
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.project.start()
        self.assertEqual(total(self.metrics()["series"]["completed"]), 1)
        self.assertEqual(total(self.metrics(seconds=86400)["series"]["completed"]), 1)

    def test_a_damaged_file_is_a_warning_and_nothing_more(self):
        self.project.start()
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        path = os.path.join(self.project.state, "metrics")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            file.write(b"\xff\xff\xff\x7f")
        self.project.start()
        self.assert_logged("metrics makes no sense")
        self.assertEqual(self.project.call("daemon.status")["result"]["health"], "healthy")
        self.metrics()

    def test_wrong_bounds_are_refused(self):
        self.project.start()
        for params in ({"seconds": 59}, {"seconds": 86401}, {"points": 1}, {"points": 721}, {"seconds": "60"}):
            self.assertEqual(self.project.call("daemon.metrics", params=params)["error"]["code"], -32602, params)

    def test_who_observes_may_ask(self):
        self.open_door()
        token = self.token(role="observe")
        answer = self.rpc(token, request("daemon.metrics", 1)).json()
        self.assertIn("series", answer["result"])


class Prometheus(DoorTestCase):
    def scrape(self, token):
        answer = self.ask("GET", "/metrics", {"Authorization": f"Bearer {token}"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.fields["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(answer.fields["cache-control"], "no-store")
        return answer.body.decode()

    def test_it_counts_what_the_daemon_does(self):
        self.open_door()
        token = self.token(role="observe")
        first = samples(self.scrape(token))
        submit = {"prompt": "exit 1", "agent": "shell"}
        id = self.project.call("task.submit", params=submit)["result"]["taskId"]
        self.project.call("task.wait", params={"taskId": id})
        second = samples(self.scrape(token))
        self.assertEqual(set(first), set(second))
        self.assertEqual(first["duet_tasks_submitted_total"], 0)
        self.assertEqual(second["duet_tasks_submitted_total"], 1)
        self.assertEqual(second["duet_tasks_ended_total{state=failed}"], 1)
        self.assertEqual(second["duet_tasks_queued"], 0)
        self.assertGreaterEqual(second["duet_requests_total"], first["duet_requests_total"] + 2)
        self.assertGreater(second["duet_memory_bytes"], 1 << 20)

    def test_a_token_is_needed(self):
        self.open_door()
        self.assert_refusal(self.ask("GET", "/metrics"), 401, "token")
        self.assert_refusal(self.ask("POST", "/metrics", body="{}"), 405, "method")

    def test_other_programs_understand_it(self):
        self.open_door()
        text = self.scrape(self.token())
        # Debian's own interpreter has Debian's packages, whichever one runs this.
        result = subprocess.run(["/usr/bin/python3", "-c", READER], input=text, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        families = json.loads(result.stdout)
        self.assertEqual((families["duet_requests"]["type"], families["duet_clients"]["type"]), ("counter", "gauge"))
        self.assertEqual({labels["state"] for labels in families["duet_tasks_ended"]["labels"]},
                         {"completed", "failed", "cancelled"})
        self.assertEqual({family["type"] for family in families.values()}, {"counter", "gauge"})


if __name__ == "__main__":
    suite.main()
