#!/usr/bin/env python3
"""`POST /mcp` of the daemon's HTTP door: the cases of wire.py, tasks.py and code.py by HTTP, and what is HTTP's own."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import code as code_cases  # noqa: E402
import tasks  # noqa: E402
import wire  # noqa: E402
from http_carrier import HttpCarrier, McpHttpTestCase  # noqa: E402
from mcp_client import LEGACY, MODERN, modern  # noqa: E402

import suite  # noqa: E402
from daemon import eventually, notification, request  # noqa: E402


class Eras(HttpCarrier, wire.Eras):
    pass


class Lists(HttpCarrier, wire.Lists):
    pass


class Lines(HttpCarrier, wire.Lines):
    pass


class Tools(HttpCarrier, tasks.Tools):
    pass


class SideBySide(HttpCarrier, tasks.SideBySide):
    def test_a_closed_connection_is_given_up_long_before_its_call_would_end(self):
        self.make_gate()
        door = self.shell_door()
        id = door.post_tool("task_run", {"prompt": "read x < gate", "wait_seconds": 50}, _meta={"progressToken": 1})
        door.wait_for(lambda told: told["method"] == "notifications/progress", 30)

        def has_only_ours():
            by_door = self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["byDoor"]
            return by_door["http"] <= len(door.posts) + len(door.idle)
        self.assertTrue(has_only_ours())
        door.cancel(id)
        eventually(has_only_ours, 20, "the end of its connection")


class McpTasks(HttpCarrier, tasks.McpTasks):
    pass


class Subscriptions(HttpCarrier, tasks.Subscriptions):
    pass


class Resources(HttpCarrier, tasks.Resources):
    pass


class Admission(McpHttpTestCase):
    PING = request("ping")

    def test_every_request_needs_a_token(self):
        for wrong in (None, "Bearer duet_x", "Basic x"):
            response = self.ask(self.PING, Authorization=wrong)
            self.assertEqual((response.status, response.fields["www-authenticate"]), (401, "Bearer"))
        self.assertEqual(self.ask(self.PING).status, 200)
        self.assertEqual(self.project.run("token", "revoke", "test-own").code, 0)
        self.assertEqual(self.ask(self.PING).status, 401)

    def test_hosts_and_origins_are_checked(self):
        self.assertEqual(self.ask(self.PING, Host="evil.example").status, 403)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            self.assertEqual(self.ask(self.PING, Origin=origin).status, 403, origin)
        self.assertEqual(self.ask(self.PING, Origin=self.url).status, 200)

    def test_only_post_is_served(self):
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            response = self.ask(None, method)
            self.assertEqual((response.status, response.fields["allow"]), (405, "POST"), method)

    def test_bodies_are_json_and_bounded(self):
        self.assertEqual(self.ask(self.PING, Content_Type="text/plain").status, 415)
        self.assertEqual(self.ask(self.PING, Content_Length=str(11 << 20)).status, 413)
        self.assertEqual(self.ask(self.PING, Accept="text/html").status, 406)

    def test_roles(self):
        def names(role):
            return [tool["name"] for tool in self.ask(request("tools/list"), token=role).json()["result"]["tools"]]
        seen = ["task_get", "task_list", "task_output", "project_status"]
        self.assertEqual(sorted(names("observe")), sorted(seen))
        self.assertEqual(sorted(names("operate")), sorted([*seen, "task_cancel"]))
        self.assertEqual(len(names("own")), 10)
        run = request("tools/call", params={"name": "task_run", "arguments": {"prompt": "true"}})
        for role in ("observe", "operate"):
            self.assertEqual(self.code(self.ask(run, token=role), 400), -32602)
        self.assertFalse(self.ask(run, Accept="application/json").json()["result"].get("isError"))
        task = self.project.call("task.get", params={"taskId": "task-1"})["result"]
        self.assertEqual(task["metadata"]["by"], "http:test-own")
        get = request("tools/call", params={"name": "task_get", "arguments": {"task_id": "task-1", "wait_seconds": 10}})
        for role in ("observe", "operate"):
            self.assertEqual(self.ask(get, token=role).json()["result"]["structuredContent"]["state"], "completed")
        cancel = request("tools/call", params={"name": "task_cancel", "arguments": {"task_id": "task-1"}})
        self.assertEqual(self.ask(cancel, token="operate").json()["result"]["structuredContent"]["cancelled"], False)
        self.assertNotIn("tasks", self.ask(request("initialize", params={"protocolVersion": "2025-11-25"}),
                                           token="operate").json()["result"]["capabilities"])


class Heads(McpHttpTestCase):
    LIST = request("tools/list", params=modern())
    CALL = request("tools/call", params=modern({"name": "task_list", "arguments": {}}))

    def test_they_repeat_the_body(self):
        for body in (self.LIST, self.CALL):
            self.assertEqual(self.ask(body).status, 200)
        for fields in ({"Mcp_Method": None}, {"Mcp_Method": "tools/call"}, {"Mcp_Method": "TOOLS/LIST"},
                       {"MCP_Protocol_Version": None}, {"MCP_Protocol_Version": "2025-11-25"},
                       {"MCP_Protocol_Version": "2030-01-01"}):
            response = self.ask(self.LIST, **fields)
            self.assertEqual(self.code(response, 400), -32020, fields)
            self.assertEqual(response.json()["id"], 1)
        for name in (None, "task_get", "=?base64?dGFza19nZXQ=?=", "=?base64?*?="):
            self.assertEqual(self.code(self.ask(self.CALL, Mcp_Name=name), 400), -32020, name)
        self.assertEqual(self.ask(self.CALL, Mcp_Name="  =?base64?dGFza19saXN0?=  ").status, 200)
        self.assertEqual(self.code(self.ask(request("tools/list"), Mcp_Method="ping"), 400), -32020)

    def test_those_of_notifications_must_be_right(self):
        cancelled = notification("notifications/cancelled", params={"requestId": 1})
        of_its_own = notification("notifications/cancelled", params=modern({"requestId": 1}))
        for body, code, fields in ((cancelled, -32020, {"Mcp_Method": "tools/call"}), (cancelled, -32022, {"MCP_Protocol_Version": "1999-01-01"}),
                                   (of_its_own, -32020, {"MCP_Protocol_Version": "2025-11-25"})):
            response = self.ask(body, **fields)
            self.assertEqual(self.code(response, 400), code, fields)
            self.assertNotIn("id", response.json())
        for body in (cancelled, of_its_own):
            self.assertEqual(self.ask(body, MCP_Protocol_Version=MODERN, Mcp_Method="notifications/cancelled").status, 202)

    def test_a_version_that_is_not_spoken(self):
        params = modern()
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2030-01-01"
        self.assertEqual(self.code(self.ask(request("tools/list", params=params)), 400), -32022)
        for version in ("2030-01-01", "2000-01-01", "nonsense"):
            answer = self.ask(request("tools/list"), MCP_Protocol_Version=version)
            self.assertEqual(self.code(answer, 400), -32022, version)
            self.assertEqual(answer.json()["error"]["data"]["supported"], [MODERN, *LEGACY])

    def test_a_head_that_promises_a_modern_request(self):
        self.assertEqual(self.code(self.ask(request("tools/list", params={}), MCP_Protocol_Version=MODERN), 400), -32602)

    def test_errors_have_a_status(self):
        door = self.http_door()
        for status, code, method, params in (
                (404, -32601, "prompts/list", modern()), (404, -32601, "initialize", modern()), (404, -32601, "ping", modern()),
                (404, -32601, "nonsense", {}), (400, -32602, "tools/call", {"name": "nothing"}),
                (400, -32602, "tools/list", {"cursor": "x"}), (400, -32602, "resources/read", modern({"uri": "duet://none"})),
                (400, -32021, "tasks/get", modern({"taskId": "x"})),
                (400, -32021, "subscriptions/listen", modern({"notifications": {"taskIds": ["x"]}})),
                (404, -32601, "resources/subscribe", {"uri": "duet://status"})):
            with self.subTest(method=method, params=params):
                found, answer = door.status_of(method, params)
                self.assertEqual((found, answer["error"]["code"]), (status, code))

    def test_an_id_goes_back_however_long_it_is(self):
        id = "i" * 1_000_000
        for method, status in (("ping", 200), ("nonsense", 404), ("tools/call", 400)):
            response = self.ask(request(method, id))
            self.assertEqual(response.status, status, method)
            self.assertEqual(response.json()["id"], id)

    def test_what_needs_no_answer_is_accepted(self):
        for body in (notification("notifications/initialized"), notification("nonsense"),
                     notification("notifications/cancelled", params={"requestId": 7}), '{"jsonrpc":"2.0","id":5,"result":{}}'):
            response = self.ask(body)
            self.assertEqual((response.status, response.body, response.fields["content-length"]), (202, b"", "0"), body)
            self.assertNotIn("mcp-session-id", response.fields)
        for body in ("{nonsense", "", "7"):
            response = self.ask(body)
            self.assertEqual(response.status, 400, response)
            self.assertNotIn("id", response.json())

    def test_a_legacy_initialize_begins_no_session(self):
        response = self.ask(request("initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}}))
        self.assertNotIn("mcp-session-id", response.fields)
        self.assertEqual(response.json()["result"]["capabilities"]["resources"], {})
        again = self.ask(request("initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}}))
        self.assertEqual(again.status, 200)
        self.assertEqual(self.ask(request("tools/list"), Mcp_Session_Id="made-up", Last_Event_ID="7").status, 200)


class Streams(McpHttpTestCase):
    def setUp(self):
        super().setUp()
        self.make_gate()
        self.opened = self.http_door()

    def created(self):
        """The handle of a task that waits at the gate."""
        params = modern({"name": "task_run", "arguments": {"prompt": "read x < gate"}}, tasks=True)
        return self.opened.ask("tools/call", params, 60)["result"]["taskId"]

    def listen(self, door, **wish):
        """A listen that was acknowledged."""
        post = door.send(request("subscriptions/listen", "l", params=modern({"notifications": wish}, tasks=True)))
        door.wait_for(lambda message: message["method"] == "notifications/subscriptions/acknowledged", 30)
        return post

    def ended(self, door):
        return door.wait_for(lambda told: told["method"] == "notifications/tasks" and told["params"]["status"] == "completed", 60)

    def test_a_listen_is_a_stream(self):
        handle = self.created()
        post = self.listen(self.opened, taskIds=[handle], resourceSubscriptions=["duet://tasks"])
        self.assertEqual(post.fields["content-type"], "text/event-stream")
        self.assertEqual(post.fields["x-accel-buffering"], "no")
        self.assertNotIn("content-length", post.fields)
        self.open_gate()
        told = self.ended(self.opened)
        self.assertEqual(told["params"]["taskId"], handle)
        self.assertEqual(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l")

    def test_each_stream_is_told_what_it_asked_for(self):
        handle = self.created()
        other = self.http_door()
        self.listen(self.opened, taskIds=[handle])
        self.listen(other, resourceSubscriptions=[f"duet://tasks/{handle}"])
        self.open_gate()
        self.ended(self.opened)
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        other.hear_all(30)
        self.assertEqual({told["method"] for told in other.notifications}, {"notifications/resources/updated"})

    def test_a_closed_stream_ends_its_listen(self):
        for _ in range(16):
            self.opened.post("subscriptions/listen", modern({"notifications": {}}))
            self.opened.wait_for(lambda message: message["method"] == "notifications/subscriptions/acknowledged")
        self.assertEqual(self.opened.ask("subscriptions/listen", modern({"notifications": {}}))["error"]["code"], -32602)
        self.opened.close()
        door = self.http_door()

        def has_room():
            post = door.send(request("subscriptions/listen", "again", params=modern({"notifications": {}})))
            door.next_message()
            return post.status == 200
        eventually(has_room, 60, "room for a listen")

    def test_a_revoked_token_ends_its_streams(self):
        post = self.listen(self.opened, resourceSubscriptions=["duet://status"])
        self.assertEqual(self.project.run("token", "revoke", "test-own").code, 0)
        post.connection.ends(30)

    def test_the_daemons_end_is_told(self):
        self.listen(self.opened, resourceSubscriptions=["duet://status"])
        waiting = self.created()
        get = {"name": "task_get", "arguments": {"task_id": waiting, "wait_seconds": 50}}
        self.opened.post("tools/call", modern(get), "silent")
        self.opened.post("tools/call", modern(get, progressToken="p"), "streaming")
        self.opened.wait_for(lambda told: told["method"] == "notifications/progress", 30)
        self.assertEqual(self.project.run("daemon", "stop", "--leave-tasks").code, 0)
        self.opened.hear_all(30)
        result = self.opened.answers.pop('"l"')["result"]
        self.assertEqual(result["resultType"], "complete")
        self.assertEqual(result["_meta"]["io.modelcontextprotocol/subscriptionId"], "l")
        self.assertEqual(self.opened.answers, {}, "waits are dropped without an answer")
        self.assertNotIn('"silent"', self.opened.statuses)
        self.open_gate()  # else the task that was left alone would stay behind

    def test_work_outlives_the_daemon(self):
        handle = self.created()
        self.project.kill(self.project.reachable())
        self.opened.close()
        self.project.start("--http")
        door = self.http_door()
        self.assertEqual(door.ask("tasks/get", modern({"taskId": handle}, tasks=True), 30)["result"]["status"], "working")
        self.open_gate()
        self.listen(door, taskIds=[handle])
        eventually(lambda: door.ask("tasks/get", modern({"taskId": handle}, tasks=True))["result"]["status"] == "completed", 60)

    def test_who_takes_no_stream_cannot_listen(self):
        body = request("subscriptions/listen", params=modern({"notifications": {}}))
        self.assertEqual(self.code(self.ask(body, Accept="application/json"), 400), -32602)


class Code(HttpCarrier, code_cases.Code):
    pass


if __name__ == "__main__":
    suite.main()
