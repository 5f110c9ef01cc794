"""A project whose daemon has rules."""

import os
import time

from daemon import eventually
from project import ProjectTestCase

QUIET = 1.5  # seconds in which something that should not happen would have happened: seven times the settle time


def shell(id, trigger, prompt, more=""):
    return (f"[[rules]]\nid = '{id}'\ntrigger = {{ {trigger} }}\n"
            f"action = {{ type = 'agent', agent = 'shell', prompt = '''{prompt}''' }}\n{more}\n")


class RuleTestCase(ProjectTestCase):
    def path(self, name):
        return os.path.join(self.project.root, name)

    def write(self, name, text="text"):
        """At once: a file that is made and written is two changes if there is time between the two."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        beside = os.path.join(self.project.place.name, "beside")
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o600)
        os.rename(beside, self.path(name))

    def settings(self, *texts):
        self.write(".duet-rpc.toml", self.project.store.settings("\n".join(texts)))

    def start(self, *texts, **options):
        if texts:
            self.settings(*texts)
        self.pid = self.project.start(**options)
        self.addCleanup(self.project.run, "daemon", "stop", "--force")

    def call(self, method, **params):
        return self.project.call(method, params=params)

    def status(self):
        return self.call("automation.status")["result"]

    def recent(self, rule=None, outcome=None):
        """Newest first."""
        return [entry for entry in self.status()["recent"]
                if rule in (None, entry["ruleId"]) and outcome in (None, entry["outcome"])]

    def await_firings(self, count, rule=None, outcome="fired"):
        return eventually(lambda: len(found := self.recent(rule, outcome)) >= count and found,
                          what=f"{count} firings of {rule}")

    def await_held(self, reason, rule=None):
        return eventually(lambda: [entry for entry in self.recent(rule, "held") if entry["reason"].startswith(reason)],
                          what=f"a firing held by {reason}")

    def result_of(self, entry):
        answer = self.call("task.wait", taskId=entry["taskId"], timeoutSeconds=50)["result"]
        self.assertEqual(answer["state"], "completed", answer)
        return answer["result"]

    def stays(self, count, rule=None, outcome="fired"):
        time.sleep(QUIET)
        self.assertEqual(len(self.recent(rule, outcome)), count, self.status()["recent"])
