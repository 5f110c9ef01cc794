#!/usr/bin/env python3
"""What the methods answer has the shape that `rpc.discover` promises: every method is called, and its real result is held
to its JSON Schema. Members that the schema does not know are a fault, too.

Usage: schemas.py --program PATH
"""

import os
import sys

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bridge"))

from bridge_project import BridgeTestCase, eventually, suite  # noqa: E402
import store  # noqa: E402

RULES = """
[[rules]]
id = 'plain'
trigger = { source = 'watch', type = 'file.create', pattern = '*.plain' }
action = { type = 'agent', agent = 'shell', prompt = 'true' }

[[rules]]
id = 'careful'
trigger = { source = 'watch', type = 'file.create', pattern = '*.careful' }
action = { type = 'agent', agent = 'shell', prompt = 'true' }
requires_approval = true

[[rules]]
id = 'daily'
trigger = { source = 'schedule', cron = '0 3 * * *' }
action = { type = 'notify', message = 'good morning' }
"""

RANGE = '{"start":{"line":0,"character":0},"end":{"line":0,"character":5}}'
SYMBOL = '"name":"alpha","kind":12,"detail":"d","range":%s,"selectionRange":%s' % (RANGE, RANGE)
ANSWERS = [
    "hover={\"contents\":{\"kind\":\"plaintext\",\"value\":\"x\"},\"range\":%s}" % RANGE,
    'references=[{"uri":"URI","range":%s},{"uri":"other:x","range":%s}]' % (RANGE, RANGE),
    'completion={"isIncomplete":true,"items":[{"label":"a","kind":3,"detail":"d","documentation":"e","insertText":"f"}]}',
    'documentSymbol=[{%s,"children":[{%s,"children":[{%s}]}]}]' % (SYMBOL, SYMBOL, SYMBOL),
]

SOURCE = "alpha BAD beta\nalpha gamma\n"


def closed(schema):
    """The schema, with nothing allowed in an object that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict):
        copy["properties"] = {name: closed(each) for name, each in schema["properties"].items()}
        copy["additionalProperties"] = False
    return copy


class Schemas(suite.TestCase):
    """Of one program: what is asked by `call` is checked."""

    def learn(self, document):
        self.schemas = {method["name"]: method["result"]["schema"] for method in document["methods"]}
        self.called = set()
        for method in document["methods"]:
            for part in [*method["params"], method["result"]]:
                jsonschema.Draft7Validator.check_schema(part["schema"])

    def check(self, method, result):
        self.called.add(method)
        jsonschema.validate(result, closed(self.schemas[method]), jsonschema.Draft7Validator)


class OfStdio(Schemas):
    def test_every_result_has_its_shape(self):
        with suite.rpc() as daemon:
            self.learn(daemon.call("rpc.discover", 0)["result"])
            for method in sorted(self.schemas, key=lambda name: name == "shutdown"):
                params = {"level": "warn"} if method == "setLogLevel" else {}
                with self.subTest(method):
                    self.check(method, daemon.call(method, 1, params=params)["result"])
        self.assertEqual(self.called, set(self.schemas))


class OfTheDaemon(Schemas, BridgeTestCase):
    def setUp(self):
        super().setUp()
        self.set_servers(fake=[word for answer in ANSWERS for word in ("--answer", answer)])
        with open(self.path(".duet-rpc.toml"), encoding="utf-8") as settings:
            servers = settings.read()
        self.project.write_settings("default_agent = 'shell'\n" + servers + RULES)
        self.file = self.write("source.fake", SOURCE)
        self.start()
        self.connection = self.project.connect()
        self.addCleanup(self.connection.close)
        self.learn(self.ask("rpc.discover"))

    def result(self, method, /, **params):
        """The result of a call, checked."""
        answer = self.connection.call(method, patience=60, params=params)
        self.assertIn("result", answer, f"{method}: {answer}")
        with self.subTest(method):
            self.check(method, answer["result"])
        return answer["result"]

    def test_every_result_has_its_shape(self):
        for method in ("ping", "daemon.status", "listMethods", "describeMethods", "version", "rpc.discover"):
            self.result(method)
        if store.SHARED:
            self.result("cluster.status")
        self.result("events.subscribe")
        self.result("events.subscribe", since=1000)
        self.ask_about_tasks()
        self.ask_about_rules()
        self.ask_about_servers()
        self.ask_about_tokens()
        self.result("http.open")
        self.result("daemon.status")
        self.result("daemon.metrics")
        self.result("daemon.stop", force=True)
        self.assertEqual(self.called, set(self.schemas))

    def ask_about_tasks(self):
        fine = self.result("task.submit", prompt="echo hello", agent="shell", key="k", retries=1)["taskId"]
        wrong = self.result("task.submit", prompt="exit 3", agent="shell")["taskId"]
        killed = self.result("task.submit", prompt="kill -9 $$", agent="shell")["taskId"]
        behind = self.result("task.submit", prompt="true", agent="shell", after=[wrong])["taskId"]
        for task in (fine, wrong, killed, behind):
            self.result("task.wait", taskId=task)
            self.result("task.get", taskId=task)
        slow = self.result("task.submit", prompt="sleep 60", agent="shell")["taskId"]
        self.result("task.get", taskId=slow)
        self.result("task.cancel", taskId=slow)
        given = self.result("task.submit", prompt="true", agent="shell", handle=True)
        self.result("task.get", handle=given["handle"])
        self.result("chat.send", message="hello")
        self.result("task.list")
        self.result("task.stats")
        self.result("task.output", taskId=fine)
        self.result("task.output", taskId=fine, encoding="base64")
        self.ask_about_the_queue(fine, wrong)

    def ask_about_the_queue(self, fine, wrong):
        self.result("queue.pause")
        self.result("queue.pause", group="default")
        first = self.result("task.submit", prompt="true", labels={"a": "b"}, delaySeconds=60)["taskId"]
        second = self.result("task.submit", prompt="true", after=[first])["taskId"]
        for task in (first, second, fine, wrong):
            self.result("task.explain", taskId=task)
        self.result("task.hold", taskId=first)
        self.result("task.release", taskId=first)
        self.result("task.edit", taskId=first, priority=3, delaySeconds=0)
        self.result("task.restart", taskId=fine)
        self.result("task.restart", taskId=wrong, inPlace=True)
        self.result("task.list", sort="priority", group="default", labels={"a": "b"})
        self.result("task.remove", taskIds=[fine, first, wrong])
        self.result("task.clean", state="completed")
        self.result("queue.status")
        self.result("agent.list")
        self.result("agent.release", name="shell")
        self.result("queue.resume", group="default")
        self.result("queue.resume")

    def ask_about_rules(self):
        self.write("a.plain", "")
        self.write("a.careful", "")
        recent = eventually(lambda: len(found := self.result("automation.status")["recent"]) == 2 and found,
                            what="two firings")
        held = next(firing["id"] for firing in recent if firing["outcome"] == "held")
        self.result("automation.approve", id=held)
        self.result("daemon.reload")
        self.result("automation.test", ruleId="careful", path="a.careful")
        self.result("automation.test", ruleId="daily", time="2026-06-01T03:00:00")
        self.result("automation.fire", ruleId="plain", path="b.plain")
        self.result("automation.deny", id=self.result("automation.fire", ruleId="careful")["id"])
        self.result("automation.history", ruleId="careful")
        self.result("automation.disable")
        self.result("automation.enable")
        self.result("automation.enable", ruleId="daily")
        self.result("automation.status")

    def ask_about_tokens(self):
        self.result("session.info")
        self.result("login.create")
        self.result("token.create", name="a")
        self.result("token.create", name="b", expiresSeconds=0)
        self.result("token.list")
        self.result("token.revoke", name="a")
        self.result("token.revoke")

    def ask_about_servers(self):
        self.result("lsp.list")
        self.result("lsp.start", server="fake")
        for method in ("lsp.hover", "lsp.definition", "lsp.references", "lsp.completion"):
            self.result(method, file=self.file, line=1, column=1)
        self.result("lsp.symbols", file=self.file)
        self.result("lsp.find", query="x", file=self.file)
        self.result("lsp.diagnostics", file=self.file)
        self.result("lsp.request", method="fake/echo", params={"a": 1}, server="fake")
        self.result("lsp.notify", method="fake/notice", params={"a": 1}, server="fake")
        self.result("lsp.list")
        self.result("daemon.status")
        self.result("lsp.stop", server="fake")


if __name__ == "__main__":
    suite.main()
