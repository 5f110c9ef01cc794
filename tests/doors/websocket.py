#!/usr/bin/env python3
"""The WebSocket of the HTTP door: its handshake, its messages, how it ends, and clients that people use."""

import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from door_client import DoorTestCase, request  # noqa: E402

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Handshake(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.secret = self.token()

    def test_a_browser_sends_its_token_as_a_subprotocol(self):
        offered = f"duet-rpc.1, duet-rpc.token.{self.secret}"
        client = self.websocket(fields={"Sec-WebSocket-Protocol": offered})
        self.assertEqual(client.answer_to_upgrade.fields["sec-websocket-protocol"], "duet-rpc.1")
        self.assertTrue(client.call("ping")["result"]["pong"])

    def test_what_is_no_handshake(self):
        token = self.secret
        for fields, status in (({"Upgrade": None}, 426), ({"Connection": "keep-alive"}, 426),
                               ({"Sec-WebSocket-Version": "8"}, 426), ({"Sec-WebSocket-Key": "abc"}, 400),
                               ({"Sec-WebSocket-Protocol": "chat"}, 400),
                               ({"Sec-WebSocket-Protocol": f"duet-rpc.1, duet-rpc.token.{token}"}, 400)):
            with self.subTest(fields):
                refused = self.websocket(token, fields).answer_to_upgrade
                self.assertEqual(refused.status, status, refused)
                if status == 426:
                    self.assertEqual(refused.fields["sec-websocket-version"], "13")
        self.assertEqual(self.websocket(None).answer_to_upgrade.status, 401)
        self.assertEqual(self.websocket(token, {"Origin": "http://evil.example"}).answer_to_upgrade.status, 403)

    def test_extensions_are_not_negotiated(self):
        client = self.websocket(self.secret, {"Sec-WebSocket-Extensions": "permessage-deflate"})
        self.assertNotIn("sec-websocket-extensions", client.answer_to_upgrade.fields)


class Messages(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.client = self.websocket(self.token())

    def test_messages_in_fragments_with_pings_between(self):
        text = request("ping", "äöü").encode()
        self.client.send_frame(TEXT, text[:10], last=False)
        self.client.send_frame(PING, b"here")
        self.client.send_frame(0, b"", last=False)
        self.client.send_frame(0, text[10:])
        self.assertEqual(self.client.frame(), (PONG, b"here"))
        self.assertEqual(self.client.message()["id"], "äöü")

    def test_what_is_no_json_is_answered_and_what_is_too_large_skipped(self):
        self.client.send_text("")
        self.assertEqual(self.client.message()["error"]["code"], -32700)
        self.client.send_text("{")
        self.assertEqual(self.client.message()["error"]["data"]["reason"], "invalid-json")
        self.client.send_frame(TEXT, b"x" * (11 << 20))
        self.assertEqual(self.client.message()["error"]["data"]["reason"], "oversize")
        self.assertTrue(self.client.call("ping")["result"]["pong"])

    def test_nine_megabytes_come_back(self):
        id = "x" * 9_000_000
        self.assertEqual(self.client.call("ping", id)["id"], id)

    def test_events_come_from_the_beginning(self):
        self.project.call("task.submit", params={"prompt": "true", "agent": "shell"})
        self.assertEqual([self.client.message()["method"] for _ in range(3)],
                         ["event.taskQueued", "event.taskStarted", "event.taskCompleted"])
        result = self.client.call("events.subscribe", params={"since": 1})["result"]
        self.assertEqual(result["next"], 4)

    def test_how_faults_end_it(self):
        for send, code in ((lambda client: client.send_frame(BINARY, b"x"), 1003),
                           (lambda client: client.send_frame(TEXT, b"\xff"), 1007),
                           (lambda client: client.send_frame(TEXT, b"x", masked=False), 1002),
                           (lambda client: client.send_frame(3, b""), 1002),
                           (lambda client: client.send_frame(0, b""), 1002),
                           (lambda client: client.send_frame(PING, b"x" * 126), 1002),
                           (lambda client: client.send_frame(CLOSE, b"x"), 1002),
                           (lambda client: client.send_frame(CLOSE, b"\x03\xe8bye"), 1000)):
            with self.subTest(code=code):
                client = self.websocket(self.token(f"t{id(send)}"))
                client.call("ping")
                send(client)
                self.assertEqual(client.closed_with()[0], code)
                client.ends()

    def test_a_client_that_goes_leaves_nothing(self):
        count = lambda: self.project.call("daemon.status")["result"]["subsystems"]["ipc"]["byDoor"]["http"]  # noqa: E731
        self.assertEqual(count(), 1)
        self.client.socket.close()
        eventually(lambda: count() == 0, what="it is forgotten")


class RealClients(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.secret = self.token()
        self.ws_url = self.url.replace("http", "ws", 1) + "/ws"

    def test_python_websockets(self):
        script = """
import asyncio, json, sys, websockets
async def main(url, token):
    async with websockets.connect(url, extra_headers={"Authorization": "Bearer " + token}, max_size=None) as client:
        for id in ("a", "b" * 9_000_000):
            await client.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            assert json.loads(await client.recv())["id"] == id
        await (await client.ping())
asyncio.run(main(*sys.argv[1:]))
"""
        result = subprocess.run(["/usr/bin/python3", "-c", script, self.ws_url, self.secret], capture_output=True,
                                text=True, timeout=2 * PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_ws_on_node(self):
        modules = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "node_modules")
        script = """
const WebSocket = require("ws");
const [url, token] = process.argv.slice(1);
const client = new WebSocket(url, ["duet-rpc.1", "duet-rpc.token." + token]);
const ids = ["a", "b".repeat(9000000)];
client.on("open", () => client.send(JSON.stringify({ jsonrpc: "2.0", id: ids[0], method: "ping" })));
client.on("message", (data) => {
  if (JSON.parse(data).id !== ids.shift()) process.exit(1);
  if (ids.length === 0) return client.close(1000);
  client.send(JSON.stringify({ jsonrpc: "2.0", id: ids[0], method: "ping" }));
});
client.on("close", (code) => process.exit(code === 1000 && client.protocol === "duet-rpc.1" ? 0 : 2));
client.on("error", (error) => { console.error(error); process.exit(3); });
"""
        self.assertTrue(shutil.which("node"), "node is needed")
        result = subprocess.run(["node", "-e", script, self.ws_url, self.secret], capture_output=True, text=True,
                                timeout=2 * PATIENCE, env={**os.environ, "NODE_PATH": modules})
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_websocket_el_of_emacs(self):
        library = glob.glob("/usr/share/emacs/site-lisp/elpa-src/websocket-*/websocket.el")
        self.assertTrue(library and shutil.which("emacs"), "emacs and elpa-websocket are needed")
        script = """
(let* ((answers nil) (deadline (+ (float-time) 100))
       (ids (list "a" (make-string 100000 ?b)))
       (client (websocket-open (getenv "DUET_URL") :protocols '("duet-rpc.1")
                               :custom-header-alist (list (cons 'Authorization (concat "Bearer " (getenv "DUET_TOKEN"))))
                               :on-message (lambda (_ frame) (push (json-parse-string (websocket-frame-text frame)) answers)))))
  (dolist (id ids)
    (websocket-send-text client (json-serialize (list :jsonrpc "2.0" :id id :method "ping")))
    (while (not (equal (and answers (gethash "id" (car answers))) id))
      (when (> (float-time) deadline) (error "No answer"))
      (accept-process-output nil 0.01)))
  (websocket-close client)
  (princ "both came back"))
"""
        result = subprocess.run(["emacs", "-Q", "--batch", "-l", library[0], "--eval", script], capture_output=True, text=True,
                                timeout=2 * PATIENCE, env={**os.environ, "DUET_URL": self.ws_url, "DUET_TOKEN": self.secret})
        self.assertIn("both came back", result.stdout, result.stderr)


if __name__ == "__main__":
    suite.main()
