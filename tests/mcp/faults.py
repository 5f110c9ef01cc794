#!/usr/bin/env python3
"""`duet-rpc mcp` when daemons die, stop or hang, and when clients ask for too much or for what there is not."""

import json
import os
import signal
import subprocess
import sys
import tomllib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mcp_client import McpTestCase, modern  # noqa: E402

import suite  # noqa: E402
from daemon import eventually, request  # noqa: E402

RESISTING = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
FOREIGN = "task-1-" + "a" * 26


def size(structured):
    return len(json.dumps(structured, ensure_ascii=False, separators=(",", ":")).encode())


class FaultTestCase(McpTestCase):
    def stopped_daemon(self):
        """The daemon's pid; it does nothing until it is continued, or killed."""
        pid = self.project.reachable()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(self.carry_on, pid)
        return pid

    def carry_on(self, pid):
        if self.project.is_ours(pid):
            os.kill(pid, signal.SIGCONT)

    def done_task(self, door, prompt="echo hi"):
        return door.structured("task_run", {"prompt": prompt, "wait_seconds": 50})["task_id"]


class Daemons(FaultTestCase):
    def test_a_question_of_several_parts_is_repeated(self):
        door = self.shell_door()
        self.done_task(door)
        pid = self.stopped_daemon()
        id = door.post_tool("task_get", {"task_id": "task-1", "tail_bytes": 100})
        self.project.kill(pid)
        result = door.answer(id, 60)["result"]
        self.assertEqual(result.get("structuredContent", result).get("tail"), "hi\n", result)

    def test_so_are_all_that_are_under_way(self):
        door = self.shell_door()
        self.done_task(door)
        for id in [door.post_tool("task_get", {"task_id": "task-1", "tail_bytes": 50}) for _ in range(8)]:
            door.answer(id, 30)
        pid = self.stopped_daemon()
        ids = [door.post_tool("task_get", {"task_id": "task-1", "tail_bytes": n + 60}) for n in range(30)]
        self.project.kill(pid)
        for id in ids:
            result = door.answer(id, 60)["result"]
            self.assertIn("structuredContent", result, result)

    def test_one_that_is_being_stopped_is_not_replaced(self):
        door = self.shell_door()
        door.structured("task_run", {"prompt": RESISTING, "wait_seconds": 0})
        eventually(lambda: door.structured("task_get", {"task_id": "task-1"}).get("tail"), 30, "the task's start")
        with self.project.popen("daemon", "stop", stdout=subprocess.DEVNULL) as stop:
            eventually(lambda: "stopping" in self.project.log(), 30, "the stop")
            self.assertTrue(door.structured("project_status")["daemon"]["running"])  # on a connection of its own
            self.project.run("daemon", "stop", "--force")
            stop.wait(60)
        self.assertTrue(door.error("task_get", {"task_id": "task-1"}).startswith("daemon-stopped: "))
        problems = door.structured("project_status")["daemon"]["problems"]
        self.assertIn("a person has stopped the daemon", problems[0]["message"])
        self.assertIsNone(self.project.reachable())

    def test_calls_beyond_those_that_may_wait_are_busy(self):
        door = self.shell_door()
        self.done_task(door)
        pid = self.stopped_daemon()
        ids = range(1000, 1300)
        calls = [request("tools/call", id, params={"name": "task_get", "arguments": {"task_id": "task-1"}}) for id in ids]
        door._write(b"".join(door.framing.encode(call) for call in calls))
        busy = [door.answer(id)["result"] for id in ids[16 + 256:]]
        for result in busy:
            self.assertTrue(result["isError"])
            self.assertTrue(result["content"][0]["text"].startswith("busy: "), result)
        self.assertEqual(door.answers, {})
        self.carry_on(pid)
        for id in ids[:16 + 256]:
            result = door.answer(id, 60)["result"]
            self.assertIn("structuredContent", result, result)

    def test_progress_is_told_though_the_daemon_hangs(self):
        door = self.shell_door()
        door.structured("task_run", {"prompt": "sleep 1000", "wait_seconds": 0})
        id = door.post_tool("task_get", {"task_id": "task-1", "wait_seconds": 50}, _meta={"progressToken": 7})
        pid = self.stopped_daemon()
        told = [door.wait_for(lambda message: message["method"] == "notifications/progress", 30)["params"] for _ in range(2)]
        self.assertEqual([one["progressToken"] for one in told], [7, 7])
        self.assertLess(told[0]["progress"], told[1]["progress"])
        self.assertNotIn(json.dumps(id), door.answers)
        self.carry_on(pid)

    def test_the_first_progress_has_its_total_though_the_daemon_hangs(self):
        door = self.shell_door()
        self.done_task(door)
        pid = self.stopped_daemon()
        for token, (tool, arguments) in enumerate((("task_run", {"prompt": "true"}), ("task_get", {"task_id": "task-1"}))):
            door.post_tool(tool, {**arguments, "wait_seconds": 50}, _meta={"progressToken": token})
            told = door.wait_for(lambda message: message.get("params", {}).get("progressToken") == token, 30)["params"]
            self.assertEqual(told["total"], 50, tool)
        self.carry_on(pid)

    def test_a_wait_that_ends_with_the_input_has_no_answer(self):
        door = self.shell_door()
        door.structured("task_run", {"prompt": "sleep 1000", "wait_seconds": 0})
        eventually(lambda: door.structured("task_get", {"task_id": "task-1"})["state"] == "running", 30, "the start")
        door.post_tool("task_get", {"task_id": "task-1", "wait_seconds": 50})
        door.structured("task_list")
        door.close_input()
        self.assertEqual(door.wait_exit(), 0)
        self.assertEqual(door.unread(), b"")
        self.assertEqual(door.stderr_text(), "")


class Arguments(FaultTestCase):
    def test_a_wrong_handle_does_nothing(self):
        door = self.shell_door()
        door.structured("task_run", {"prompt": "sleep 1000", "wait_seconds": 0})
        self.assertTrue(door.error("task_cancel", {"task_id": FOREIGN}).startswith("not-found: "))
        self.assertIn(door.structured("task_get", {"task_id": "task-1"})["state"], ("queued", "running"))
        text = door.error("task_run", {"prompt": "true", "after": [FOREIGN]})
        self.assertTrue(text.startswith("not-found: "), text)
        self.assertEqual(door.structured("task_list")["counts"]["total"], 1)

    def test_no_task_is_lost_between_pages(self):
        door = self.shell_door()
        prompts = ["true", "true", ": " + "\U0001f600" * 200, ": '" + "\1" * 300 + "'", "true", "true", "true"]
        for prompt in prompts:
            door.structured("task_run", {"prompt": prompt, "wait_seconds": 0})
        for most in (1000, 1200, 3000):
            seen, cursor = [], None
            while True:
                arguments = {"max_bytes": most, "limit": 5, **({"cursor": cursor} if cursor else {})}
                result = door.tool("task_list", arguments)
                self.assertLessEqual(len(result["content"][0]["text"].encode()), most)
                self.assertLessEqual(size(result["structuredContent"]), most)
                seen += [task["task_id"] for task in result["structuredContent"]["tasks"]]
                cursor = result["structuredContent"].get("next")
                if cursor is None:
                    break
            self.assertEqual(seen, [f"task-{n}" for n in range(len(prompts), 0, -1)])
        for number in range(1, len(prompts) + 1):
            result = door.tool("task_get", {"task_id": f"task-{number}", "max_bytes": 1000, "wait_seconds": 50})
            self.assertLessEqual(max(len(result["content"][0]["text"].encode()), size(result["structuredContent"])), 1000)

    def test_errors_are_short_whatever_was_given(self):
        door = self.shell_door()
        long = "a" * 2_000_000
        for tool, arguments in (("code_symbols", {"file": long}), ("code_symbols", {"file": "/" + long}),
                                ("task_run", {"prompt": "x", "agent": long}), ("task_run", {"prompt": "x", "cwd": "/" + long}),
                                ("task_get", {"task_id": long}), ("task_list", {long: 1}), ("task_list", {"state": long}),
                                ("task_list", {"cursor": long}), ("task_output", {"task_id": "task-1", "cursor": long})):
            text = door.error(tool, {**arguments, "max_bytes": 1000})
            self.assertLessEqual(len(text.encode()), 1000, tool)
            self.assertEqual(text.count("\n"), 1, tool)

    def test_a_list_that_is_nested_is_refused_and_forgotten(self):
        door = self.shell_door()
        id = door.post_tool("code_diagnostics", {"files": "[" * 600 + "]" * 600}, _meta={"progressToken": "p"})
        result = door.answer(id)["result"]
        self.assertTrue(result["content"][0]["text"].startswith("bad-argument: "), result)
        door.post_tool("task_run", {"prompt": "sleep 2", "wait_seconds": 50}, _meta={"progressToken": "q"})
        first = door.wait_for(lambda message: message["method"] == "notifications/progress", 30)
        self.assertEqual(first["params"]["progressToken"], "q")

    def test_lines_that_are_found_are_whole(self):
        door = self.shell_door()
        self.done_task(door, "printf 'one hit\\ntwo hit\\nthree'")

        def found(**arguments):
            answer = door.structured("task_output", {"task_id": "task-1", "contains": "hit", **arguments})
            return answer["offset"], [(match["offset"], match["line"]) for match in answer["matches"]]
        self.assertEqual(found(), (0, [(0, "one hit"), (8, "two hit")]))
        self.assertEqual(found(tail_bytes=13), (8, [(8, "two hit")]))
        self.assertEqual(found(tail_bytes=12), (16, []))
        self.assertEqual(found(tail_bytes=21), (0, [(0, "one hit"), (8, "two hit")]))
        for contains in ({}, {"contains": "hit"}):
            arguments = {"task_id": "task-1", "cursor": "22", **contains}
            self.assertTrue(door.error("task_output", arguments).startswith("bad-argument: "))


class Listens(FaultTestCase):
    def test_only_what_there_is_is_honoured(self):
        door = self.shell_door()
        self.done_task(door)
        wish = {"taskIds": [FOREIGN], "resourceSubscriptions": ["duet://tasks/task-1", "duet://tasks/task-99999"]}
        id = 123456789012345678901234567890
        door.post("subscriptions/listen", modern({"notifications": wish}, tasks=True), id)
        first = door.wait_for(lambda message: True, 30)
        self.assertEqual(first["params"]["notifications"], {"resourceSubscriptions": ["duet://tasks/task-1"]})
        self.assertEqual(first["params"]["_meta"], {"io.modelcontextprotocol/subscriptionId": id})
        refused = door.ask("resources/subscribe", {"uri": "duet://tasks/task-99999"}, 30)
        self.assertEqual(refused["error"]["code"], -32002)

    def test_what_happens_right_after_it_is_told(self):
        door = self.shell_door()
        self.done_task(door)
        fresh = self.door("--agents", "shell")
        fresh.post("subscriptions/listen", modern({"notifications": {"resourceSubscriptions": ["duet://tasks"]}}))
        fresh.wait_for(lambda message: message["method"] == "notifications/subscriptions/acknowledged", 30)
        door.structured("task_run", {"prompt": "true", "wait_seconds": 0})
        fresh.wait_for(lambda message: message["method"] == "notifications/resources/updated", 30)

    def test_a_daemon_that_comes_is_told(self):
        door = self.ready_door()
        self.assertEqual(door.ask("resources/subscribe", {"uri": "duet://status"}, 30)["result"], {})
        self.assertIsNone(self.project.reachable())
        self.project.start()
        door.wait_for(lambda message: message["method"] == "notifications/resources/updated", 30)


class Configurations(FaultTestCase):
    def config(self, client, *words):
        return self.project.run("mcp", "--print-config", client, *words)

    def test_odd_folders(self):
        folder = os.path.join(self.project.root, "a \"b\" \x7f\n\u00e4")
        os.mkdir(folder)
        printed = tomllib.loads(self.config("codex", "--project", folder).out)
        self.assertEqual(printed["mcp_servers"]["duet"]["args"], ["mcp", "--project", folder])
        for client in ("claude", "cursor", "zed", "gemini"):
            printed = json.loads(self.config(client, "--project", folder).out)
            self.assertIn(folder, self.words_of(printed), client)

    def words_of(self, value):
        if isinstance(value, dict):
            return [word for member in value.values() for word in self.words_of(member)]
        return value if isinstance(value, list) else [value]

    def test_what_could_not_start_is_not_printed(self):
        self.assertNotEqual(self.config("claude", "--tools", "nope").code, 0)
        self.assertNotEqual(self.config("claude", "--project", b"x\xff").code, 0)


if __name__ == "__main__":
    suite.main()
