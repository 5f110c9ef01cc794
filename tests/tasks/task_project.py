"""A project whose daemon runs tasks."""

import datetime
import os

from daemon import PATIENCE
from project import ProjectTestCase

ENDED = ("completed", "failed", "cancelled")


def utc(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class TaskTestCase(ProjectTestCase):
    settings = 'default_agent = "shell"\n'

    def setUp(self):
        super().setUp()
        self.write_settings(self.settings)
        self.pid = self.project.start()
        self.addCleanup(self.project.run, "daemon", "stop", "--force")  # or its tasks would outlive it
        self.connect()

    def connect(self):
        self.connection = self.project.connect()
        self.addCleanup(self.connection.close)

    def write_settings(self, text):
        self.project.write_settings(text)

    def path(self, name):
        return os.path.join(self.project.root, name)

    def call(self, method, **params):
        return self.connection.call(method, params=params, patience=2 * PATIENCE)

    def submit(self, prompt, **params):
        answer = self.call("task.submit", prompt=prompt, **params)
        self.assertIn("result", answer, answer)
        self.assertEqual(sorted(answer["result"]), ["state", "taskId"])
        return answer["result"]["taskId"]

    def error(self, method, **params):
        answer = self.call(method, **params)
        self.assertIn("error", answer, answer)
        return answer["error"]

    def get(self, id):
        return self.call("task.get", taskId=id)["result"]

    def told_at(self, id):
        """When the daemon told of the task's end, by its log: whoever waited for it may have been asleep since."""
        return utc(self.assert_logged(rf'(?m)^(\S+) \w+ +task (?:completed|failed|cancelled) task="{id}"').group(1))

    def wait(self, id):
        record = self.call("task.wait", taskId=id, timeoutSeconds=PATIENCE)["result"]
        self.assertIn(record["state"], ENDED, record)
        return record
