#!/usr/bin/env python3
"""`duet-rpc mcp`: lines, eras, lists and the end, without a daemon."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mcp_client import (CAPABILITIES_KEY, LEGACY, MODERN, TASKS, VERSION_KEY, Door, McpTestCase, modern,  # noqa: E402
                        stdio_only)

import suite  # noqa: E402
from daemon import notification, request  # noqa: E402


class Eras(McpTestCase):
    def test_each_legacy_revision_is_agreed_on(self):
        for version in LEGACY:
            with self.subTest(version):
                door = self.door()
                result = door.initialize(version)
                self.assertEqual(result["protocolVersion"], version)
                self.assertEqual(result["serverInfo"]["name"], "duet-rpc")
                self.assertEqual("tasks" in result["capabilities"], version == "2025-11-25")
                self.assertLessEqual(len(result["instructions"].encode()), 1500)
                self.assertEqual(door.ask("ping")["result"], {})
                self.assertEqual(len(door.ask("tools/list")["result"]["tools"]), 10)

    def test_an_unknown_version_is_answered_with_the_newest_legacy_one(self):
        self.assertEqual(self.door().initialize("1999-01-01")["protocolVersion"], "2025-11-25")
        self.assertEqual(self.door().initialize(MODERN)["protocolVersion"], "2025-11-25")

    @stdio_only
    def test_initialize_comes_once(self):
        door = self.ready_door()
        self.assertEqual(door.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"], -32600)

    @stdio_only
    def test_before_initialize_only_a_ping_is_answered(self):
        door = self.door()
        self.assertEqual(door.ask("ping")["result"], {})
        for method in ("tools/list", "nonsense"):
            error = door.ask(method)["error"]
            self.assertEqual(error["code"], -32602)
            self.assertIn("initialize", error["message"])
            self.assertIn(VERSION_KEY, error["message"])

    def test_a_modern_request_stands_alone(self):
        door = self.door()
        result = door.ask("server/discover", modern())["result"]
        self.assertEqual(result["supportedVersions"], [MODERN, *LEGACY])
        self.assertEqual(result["capabilities"], {"tools": {}, "resources": {"subscribe": True}, "extensions": {TASKS: {}}})
        self.assertEqual(result["resultType"], "complete")
        self.assertEqual(result["ttlMs"], 3600000)
        self.assertEqual(result["cacheScope"], "private")
        self.assertEqual(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "duet-rpc")
        self.assertEqual(len(door.ask("tools/list", modern())["result"]["tools"]), 10)
        if door.has_session:
            self.assertEqual(door.ask("tools/list")["error"]["code"], -32602)

    def test_modern_requests_after_initialize_are_modern(self):
        door = self.ready_door()
        self.assertEqual(door.ask("tools/list", modern())["result"]["resultType"], "complete")
        self.assertNotIn("resultType", door.ask("tools/list")["result"])
        for method in ("initialize", "ping", "tasks/list", "tasks/result", "resources/subscribe", "logging/setLevel"):
            self.assertEqual(door.ask(method, modern())["error"]["code"], -32601, method)
        for method in ("server/discover", "tasks/list", "tasks/update", "prompts/list", "subscriptions/listen"):
            self.assertEqual(door.ask(method)["error"]["code"], -32601, method)

    def test_another_version_names_those_that_are_spoken(self):
        params = modern()
        params["_meta"][VERSION_KEY] = "2030-01-01"
        error = self.door().ask("tools/list", params)["error"]
        self.assertEqual(error["code"], -32022)
        self.assertEqual(error["data"], {"supported": [MODERN, *LEGACY], "requested": "2030-01-01"})

    def test_a_modern_request_needs_capabilities(self):
        params = modern()
        del params["_meta"][CAPABILITIES_KEY]
        self.assertEqual(self.door().ask("tools/list", params)["error"]["code"], -32602)

    def test_tasks_belong_to_one_legacy_revision(self):
        self.assertEqual(self.ready_door(version="2025-06-18").ask("tasks/get", {"taskId": "x"})["error"]["code"], -32601)
        self.assertEqual(self.ready_door().ask("tasks/get", {"taskId": "x"})["error"]["code"], -32602)
        self.assertEqual(self.ready_door("--read-only").ask("tasks/get", {"taskId": "x"})["error"]["code"], -32601)


class Lists(McpTestCase):
    def test_the_tools_are_the_same_bytes_each_time(self):
        door = self.ready_door()
        texts = set()
        for _ in range(3):
            door.send(request("tools/list", 1))
            texts.add(door.next_body())
        self.assertEqual(len(texts), 1)

    def test_the_page_has_the_table_of_the_program(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "mcp.md")
        with open(page, encoding="utf-8") as file:
            self.assertIn(self.project.run("print", "tools").out, file.read(), "make it with: duet-rpc print tools")

    @stdio_only
    def test_groups_and_read_only(self):
        def names(*words):
            return [tool["name"] for tool in self.ready_door(*words).ask("tools/list")["result"]["tools"]]
        self.assertEqual(names("--tools", "project"), ["project_status"])
        self.assertNotIn("task_run", names("--read-only"))
        self.assertEqual(len(names("--tools", "code,task")), 9)

    @stdio_only
    def test_an_unknown_group_is_bad_usage(self):
        self.assert_refused(self.project.run("mcp", "--tools", "cod"), 1, "cod.*code, task and project")

    def test_only_the_newest_legacy_list_tells_of_execution(self):
        for version in LEGACY:
            tools = self.ready_door(version=version).ask("tools/list")["result"]["tools"]
            with_execution = [tool["name"] for tool in tools if "execution" in tool]
            self.assertEqual(with_execution, ["task_run"] if version == "2025-11-25" else [])
        self.assertFalse(any("execution" in tool for tool in self.door().ask("tools/list", modern())["result"]["tools"]))

    def test_resources(self):
        door = self.ready_door()
        self.assertEqual([r["uri"] for r in door.ask("resources/list")["result"]["resources"]],
                         ["duet://status", "duet://tasks"])
        self.assertEqual(len(door.ask("resources/templates/list")["result"]["resourceTemplates"]), 2)
        self.assertEqual(door.ask("resources/read", {"uri": "duet://none"})["error"]["code"], -32002)
        self.assertEqual(door.ask("resources/read", modern({"uri": "duet://none"}))["error"]["code"], -32602)

    def test_a_list_has_one_page(self):
        for method in ("tools/list", "resources/list", "resources/templates/list"):
            self.assertEqual(self.ready_door().ask(method, {"cursor": "x"})["error"]["code"], -32602)


class Lines(McpTestCase):
    def test_ids_go_back_byte_for_byte(self):
        door = self.ready_door()
        for id in ("7", "-1", "12345678901234567890123", '"\\u0041"', '""'):
            door.send(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}')
            self.assertEqual(door.next_body().decode(), f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}')

    def test_other_ids_are_refused_without_one(self):
        door = self.ready_door()
        for id in ("null", "1.5", "{}", "[]", "true"):
            door.send(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}')
            answer = door.next_message()
            self.assertEqual(answer["error"]["code"], -32600, id)
            self.assertNotIn("id", answer)

    def test_broken_json_costs_one_line(self):
        door = self.ready_door()
        door.send("{nonsense")
        answer = door.next_message()
        self.assertEqual(answer["error"]["code"], -32700)
        self.assertNotIn("id", answer)
        self.assertEqual(door.ask("ping")["result"], {})

    @stdio_only
    def test_an_oversize_line_is_skipped(self):
        door = self.ready_door()
        door.send('{"x":"' + "y" * (11 << 20) + '"}')
        answer = door.next_message(30)
        self.assertEqual(answer["error"]["data"]["reason"], "oversize")
        self.assertNotIn("id", answer)
        self.assertEqual(door.ask("ping")["result"], {})

    def test_batches_are_of_one_revision(self):
        batch = f"[{request('ping', 1)},{notification('notifications/x')},{request('ping', 'b')}]"
        for version in LEGACY:
            door = self.ready_door(version=version)
            door.send(batch)
            answer = door.next_message()
            if version == "2025-03-26":
                self.assertEqual([one["id"] for one in answer], [1, "b"])
                door.send("[" + ",".join(request("ping", i) for i in range(101)) + "]")
                self.assertEqual(door.next_message()["error"]["code"], -32600)
            else:
                self.assertEqual(answer["error"]["message"], "Batch requests not supported")
                self.assertNotIn("id", answer)

    def test_the_answer_to_a_batch_is_a_line_that_clients_read(self):
        door = self.ready_door(version="2025-03-26")
        door.send("[" + ",".join(request("tools/list", id) for id in range(100)) + "]")
        answers = door.next_message()
        self.assertEqual([answer["id"] for answer in answers], list(range(100)))
        self.assertLess(len(json.dumps(answers)), 1 << 20)
        self.assertEqual(answers[-1]["error"]["data"]["reason"], "answers-too-large")

    def test_what_is_not_known_and_not_asked_for_is_ignored(self):
        door = self.ready_door()
        door.send(notification("notifications/unknown", params={"a": 1}))
        door.send(notification("notifications/cancelled", params={"requestId": 99}))
        door.send('{"jsonrpc":"2.0","id":5,"result":{}}')
        self.assertEqual(door.ask("ping")["result"], {})

    def test_calls_that_are_wrong_in_themselves(self):
        door = self.ready_door()
        for params in ({}, {"name": 7}, {"name": "task_gett"}, {"name": "task_get", "arguments": []}):
            self.assertEqual(door.ask("tools/call", params)["error"]["code"], -32602, params)
        self.assertIn("task_get", door.ask("tools/call", {"name": "task_gett"})["error"]["message"])
        error = door.ask("tools/call", {"name": "task_get", "arguments": {"task_id": "task-1"}, "task": {}})["error"]
        self.assertEqual(error["code"], -32601)


class Life(McpTestCase):
    def test_the_end_of_input_is_the_end(self):
        for version in (None, "2025-11-25"):
            door = self.door()
            if version:
                door.initialize(version)
            door.close_input()
            door.expect_exit(0)

    @unittest.skipUnless(shutil.which("strace"), "strace is not here")
    def test_clients_that_only_look_leave_no_trace(self):
        """No file is made, changed or locked, no socket, no process."""
        if suite.is_sanitized():
            self.skipTest("its search for leaks does not work under strace")
        trace = os.path.join(self.project.home, "trace")
        kinds = "trace=%file,socket,connect,bind,flock,fork,vfork,clone,clone3,execve,ftruncate,inotify_init1"
        door = self.door_under(["strace", "-f", "-qq", "-o", trace, "-e", kinds])
        door.initialize()
        for method in ("tools/list", "resources/list", "resources/templates/list", "ping"):
            door.ask(method)
        door.ask("server/discover", modern())
        door.ask("tools/list", modern())
        door.close_input()
        door.expect_exit(0, 30)
        with open(trace, encoding="utf-8", errors="replace") as file:
            calls = [line for line in file if not line.startswith("+++")]
        if not calls:
            self.skipTest("strace may not trace here")
        bad = [line for line in calls if any(word in line for word in (
            "O_CREAT", "O_WRONLY", "O_RDWR|O_", "mkdir", "unlink", "rename", "socket(", "connect(", "bind(", "flock(",
            "vfork(", "config.toml", ".aiwg", ".duet-rpc.toml"))]
        bad = [line for line in bad if "/dev/null" not in line and "/proc/self/fd/" not in line]  # its own stdout
        self.assertEqual(bad, [])
        self.assertEqual(sum("execve(" in line for line in calls), 1)
        self.assertEqual(os.listdir(self.project.root), [".git"])
        self.assertFalse(os.path.exists(os.path.join(self.project.home, ".local")))

    def door_under(self, words):
        child = Door([*words, self.project.program, "mcp"], env=self.project.environment(), cwd=self.project.root)
        self.addCleanup(child.__exit__)
        return child

    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            door = self.ready_door()
            door.signal(number)
            door.expect_exit(0)

    def test_without_a_project_the_lists_work(self):
        elsewhere = os.path.join(self.project.place.name, "elsewhere")
        os.makedirs(elsewhere)
        door = self.ready_door(cwd=elsewhere)
        self.assertEqual(len(door.ask("tools/list")["result"]["tools"]), 10)
        self.assertTrue(door.error("task_list").startswith("no-project: "))
        self.assertEqual(os.listdir(elsewhere), [])

    def test_the_home_folder_is_never_a_project(self):
        os.makedirs(os.path.join(self.project.home, ".git"))
        door = self.ready_door(cwd=self.project.home)
        self.assertTrue(door.error("task_list").startswith("no-project: "))

    def test_claude_names_the_project_if_the_folder_does_not(self):
        elsewhere = os.path.join(self.project.place.name, "elsewhere")
        os.makedirs(elsewhere)
        os.makedirs(os.path.join(self.project.root, "inner"))
        door = self.ready_door(cwd=elsewhere, env={"CLAUDE_PROJECT_DIR": os.path.join(self.project.root, "inner")})
        self.assertEqual(door.structured("project_status")["root"], self.project.root)

    def test_a_status_starts_nothing(self):
        door = self.ready_door()
        status = door.structured("project_status")
        self.assertEqual(status["daemon"], {"running": False, "problems": []})
        self.assertEqual(status["agents"], ["claude"], "which the settings tell")
        self.assertEqual((status["tasks"], status["automation"]), ({"counts": {}}, {}), "only a daemon knows")
        text = door.ask("resources/read", {"uri": "duet://status"})["result"]["contents"][0]["text"]
        self.assertFalse(json.loads(text)["daemon"]["running"])
        self.assertFalse(os.path.exists(os.path.join(self.project.root, ".aiwg")))

    def test_no_start_means_no_start(self):
        door = self.ready_door("--no-start")
        self.assertTrue(door.error("task_list").startswith("no-daemon: "))
        status = door.tool("project_status")
        self.assertIn("--no-start is set", status["structuredContent"]["daemon"]["problems"][0]["message"])
        self.assertNotIn("starts it", status["content"][0]["text"])
        self.assertFalse(os.path.exists(os.path.join(self.project.root, ".aiwg")))

    def test_stdout_that_is_closed_is_an_error(self):
        script = f'exec "{self.project.program}" mcp >&-'
        ended = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=self.project.environment(), cwd=self.project.root, timeout=30)
        self.assertEqual(ended.returncode, 1)


class PrintConfig(McpTestCase):
    def test_the_bare_command_if_path_leads_here(self):
        folder = os.path.dirname(os.path.realpath(self.project.program))
        result = self.project.run("mcp", "--print-config", "claude", env={"PATH": folder + ":" + os.environ["PATH"]})
        self.assertEqual(json.loads(result.out)["mcpServers"]["duet"]["command"], "duet-rpc")

    def test_an_unknown_client_is_bad_usage(self):
        self.assertEqual(self.project.run("mcp", "--print-config", "emacs").code, 1)


if __name__ == "__main__":
    suite.main()
