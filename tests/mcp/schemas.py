#!/usr/bin/env python3
"""`duet-rpc mcp`: the listed tools within their bounds and the subset of JSON Schema that every client understands; what
--print-config prints, read by each client's own rules; the page about it."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jsonschema  # noqa: E402
from mcp_client import LEGACY, McpTestCase, modern  # noqa: E402

import suite  # noqa: E402

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "mcp.md")

TYPES = {"string", "integer", "boolean", "object", "array", "number"}
WORDS = {"type", "description", "properties", "required", "items", "enum", "minimum", "maximum"}
RESULTS = {
    "code_symbols": "symbols next server fresh complete reason",
    "code_definition": "at hover definitions next server fresh complete reason",
    "code_references": "at count references next server fresh complete reason",
    "code_diagnostics": "files errors warnings next server fresh complete reason",
    "task_run": "task_id state agent prompt created_at started_at ended_at exit_code signal error attempts waiting "
                "output_bytes tail next",
    "task_list": "tasks counts next",
    "task_output": "task_id state offset output next done dropped_bytes matches",
    "task_cancel": "task_id state cancelled",
    "project_status": "daemon trusted agents default_agent language_servers tasks automation events next_event",
}
RESULTS["task_get"] = RESULTS["task_run"]
ARGUMENTS = {
    "code_symbols": "file query depth cursor",
    "code_definition": "file symbol line column context_lines cursor",
    "code_references": "file symbol line column cursor",
    "code_diagnostics": "files severity wait_seconds cursor",
    "task_run": "prompt agent cwd key priority after time_limit_seconds wait_seconds",
    "task_get": "task_id wait_seconds tail_bytes",
    "task_list": "state limit cursor",
    "task_output": "task_id cursor tail_bytes contains",
    "task_cancel": "task_id",
    "project_status": "since",
}
REQUIRED = {"code_diagnostics": ["files"], "task_run": ["prompt"], "task_get": ["task_id"], "task_output": ["task_id"],
            "task_cancel": ["task_id"]}


def size(value):
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


class Tools(McpTestCase):
    def setUp(self):
        super().setUp()
        self.tools = self.ready_door().ask("tools/list")["result"]["tools"]

    def check(self, schema, where):
        self.assertLessEqual(set(schema), WORDS, where)
        self.assertIn(schema["type"], TYPES, where)
        self.assertEqual(schema["type"] == "object", "properties" in schema, where)
        self.assertEqual(schema["type"] == "array", "items" in schema, where)
        self.assertLessEqual(set(schema.get("required", [])), set(schema.get("properties", {})), where)
        for name, inner in schema.get("properties", {}).items():
            self.check(inner, f"{where}.{name}")
        if "items" in schema:
            self.check(schema["items"], f"{where}[]")

    def test_schemas_are_in_the_subset(self):
        for tool in self.tools:
            for part in ("inputSchema", "outputSchema"):
                jsonschema.Draft202012Validator.check_schema(tool[part])
                self.assertEqual(tool[part]["type"], "object")
                self.check(tool[part], f"{tool['name']} {part}")

    def test_members_are_those_of_the_contract(self):
        self.assertEqual([tool["name"] for tool in self.tools], list(ARGUMENTS))
        for tool in self.tools:
            name = tool["name"]
            self.assertEqual(set(tool["inputSchema"]["properties"]), {*ARGUMENTS[name].split(), "max_bytes"}, name)
            self.assertEqual(tool["inputSchema"].get("required", []), REQUIRED.get(name, []), name)
            self.assertLessEqual({*RESULTS[name].split(), "root"}, set(tool["outputSchema"]["properties"]), name)
            self.assertIn("root", tool["outputSchema"]["required"], name)

    def test_sizes(self):
        seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in self.tools]
        self.assertLessEqual(size(seen), 12 * 1024)
        for version in LEGACY:
            self.assertLessEqual(size(self.ready_door(version=version).ask("tools/list")["result"]["tools"]), 24 * 1024)
        result = self.door().ask("server/discover", modern())["result"]
        self.assertLessEqual(len(result["instructions"].encode()), 1500)
        for tool in self.tools:
            self.assertRegex(tool["name"], r"^[a-z_]{3,24}$")
            self.assertLessEqual(len(tool["description"].encode()), 700, tool["name"])
            self.assertRegex(tool["description"].lower(), r"\b(not|never|no|nothing|leaves out)\b", tool["name"])

    def test_hints(self):
        for tool in self.tools:
            hints = tool["annotations"]
            changes = tool["name"] in ("task_run", "task_cancel")
            self.assertEqual(set(hints), {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
            self.assertEqual((hints["readOnlyHint"], hints["destructiveHint"]), (not changes, changes), tool["name"])
            self.assertEqual(hints["openWorldHint"], tool["name"] == "task_run", tool["name"])


def one_of_each(pairs):
    """JSON with one member of each name: a second one is what a client would drop in silence."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"twice: {names}")
    return dict(pairs)


class Client:
    """How a client reads its file: where the servers are, which members one may have, which variables it fills in."""

    def __init__(self, key, members, needs_type=False, variables=r"\$\{[^}]*\}"):
        self.key, self.members, self.needs_type, self.variables = key, set(members.split()), needs_type, variables

    def read(self, text):
        return json.loads(text, object_pairs_hook=one_of_each)

    def server(self, text, folder):
        """The command line that the client would run with FOLDER open."""
        config = self.read(text)
        if list(config) != [self.key] or list(config[self.key]) != ["duet"]:
            raise ValueError(config)
        server = config[self.key]["duet"]
        if not {"command"} <= set(server) <= self.members or (self.needs_type and server.get("type") != "stdio"):
            raise ValueError(server)
        words = [server["command"], *server.get("args", [])]
        if not all(isinstance(word, str) and word for word in words):
            raise ValueError(words)
        return [re.sub(self.variables, lambda found: self.value(found.group(), folder), word) for word in words]

    def value(self, name, folder):
        if name != "${workspaceFolder}":
            raise ValueError(f"{name} is not known here")
        return folder


class Codex(Client):
    def read(self, text):
        return tomllib.loads(text)


CLIENTS = {
    "claude": Client("mcpServers", "type command args env"),
    "codex": Codex("mcp_servers", "command args env cwd startup_timeout_sec tool_timeout_sec enabled", variables=r"(?!)"),
    "vscode": Client("servers", "type command args env envFile dev", needs_type=True),
    "cursor": Client("mcpServers", "type command args env envFile"),
    "zed": Client("context_servers", "source enabled command args env", variables=r"(?!)"),
    "gemini": Client("mcpServers", "command args env cwd timeout trust description includeTools excludeTools",
                     variables=r"\$(\w+|\{[^}]*\})"),
}


class Configurations(McpTestCase):
    def command_line(self, client, *words):
        if client == "codex" and tomllib is None:
            self.skipTest("this Python has no tomllib")
        result = self.project.run("mcp", "--print-config", client, *words)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.err, r"^This belongs in .*\n$")
        return CLIENTS[client].server(result.out, "/srv/open folder")

    def test_each_is_read_by_its_client(self):
        own = os.path.realpath(self.project.program)
        for client in CLIENTS:
            with self.subTest(client):
                folder = ["--project", "/srv/open folder"] if client == "vscode" else []
                self.assertEqual(self.command_line(client), [own, "mcp", *folder])

    def test_options_are_repeated(self):
        odd = os.path.join(self.project.root, 'a "b" \\ é \x7f\n#')
        for client in CLIENTS:
            with self.subTest(client):
                words = self.command_line(client, "--project", odd, "--agents", "claude,shell", "--read-only")
                folder = "/srv/open folder" if client == "vscode" else odd
                self.assertEqual(words[words.index("--project") + 1], folder)
                self.assertEqual(words[words.index("--agents") + 1], "claude,shell")
                self.assertIn("--read-only", words)

    def test_what_is_printed_starts_a_server(self):
        for client in CLIENTS:
            with self.subTest(client):
                words = self.command_line(client, "--project", self.project.root)
                self.project.program = words[0]
                door = self.door(*words[2:])
                self.assertEqual(door.initialize()["serverInfo"]["name"], "duet-rpc")

    def test_the_page_shows_each(self):
        with open(PAGE, encoding="utf-8") as file:
            shown = re.findall(r"`duet-rpc mcp --print-config (\w+)`.*?\n```(json|toml)\n(.*?)```", file.read(), re.DOTALL)
        self.assertEqual([client for client, _, _ in shown], list(CLIENTS))
        folder = os.path.dirname(os.path.realpath(self.project.program))
        for client, _, text in shown:
            result = self.project.run("mcp", "--print-config", client, env={"PATH": folder + ":" + os.environ["PATH"]})
            self.assertEqual(text, result.out, client)


if __name__ == "__main__":
    suite.main()
