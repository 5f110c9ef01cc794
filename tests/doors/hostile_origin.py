#!/usr/bin/env python3
"""A page of somebody else in a real Chromium, on another port and under another name, tries every way into the HTTP door.

It even has a token that counts, so that nothing but the checks of host and origin stands in its way.
"""

import contextlib
import http.server
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from door_client import DoorTestCase, request  # noqa: E402

PATIENCE = 240  # a browser's start on a busy machine, and all ways one after another

# Each way ends in a line `NAME: what was seen`; `IN` is the word for whatever a page must not get.
PAGE = """<!doctype html><meta charset="utf-8"><title>hostile</title><script>
const door = "@DOOR@", token = "@TOKEN@", call = '@CALL@';
const seen = [];
const note = (name, what) => seen.push(name + ": " + what);
const within = (ms, work) => Promise.race([work, new Promise((done) => setTimeout(() => done("nothing came"), ms))]);
const auth = { Authorization: "Bearer " + token };

async function read(name, options, path = "/rpc") {
  try {
    const answer = await fetch(door + path, options);
    note(name, answer.type === "opaque" ? "opaque" : "IN " + answer.status + " " + (await answer.text()).slice(0, 60));
  } catch (fault) {
    note(name, "refused");
  }
}

const element = (name, tag, attributes) => within(100000, new Promise((done) => {
  const made = Object.assign(document.createElement(tag), attributes);
  made.onload = () => done("loaded");
  made.onerror = () => done("refused");
  document.body.append(made);
})).then((what) => note(name, tag === "iframe" ? inside(document.body.lastElementChild) : what === "loaded" ? "IN" : what));

function inside(frame) {
  try {
    return frame.contentDocument && frame.contentDocument.body.textContent ? "IN " + frame.contentDocument.body.textContent : "refused";
  } catch (fault) {
    return "refused";
  }
}

const socket = (name, protocols) => within(100000, new Promise((done) => {
  const made = new WebSocket(door.replace("http", "ws") + "/ws", protocols);
  made.onopen = () => done("IN");
  made.onerror = () => done("refused");
})).then((what) => note(name, what));

const stream = (name) => within(100000, new Promise((done) => {
  const made = new EventSource(door + "/events?since=1");
  made.onopen = () => done("IN");
  made.onerror = () => done("refused");
})).then((what) => note(name, what));

function submit_form(name) {
  const frame = Object.assign(document.createElement("iframe"), { name: "target" });
  const form = Object.assign(document.createElement("form"),
                             { action: door + "/rpc", method: "post", enctype: "text/plain", target: "target" });
  const field = Object.assign(document.createElement("input"), { name: call.slice(0, -1) + ',"x":"', value: '"}' });
  form.append(field);
  document.body.append(frame, form);
  const loaded = new Promise((done) => (frame.onload = done));
  form.submit();
  return within(100000, loaded).then(() => note(name, inside(frame)));
}

function open_window(name) {
  const opened = window.open(door + "/", "_blank");
  return new Promise((done) => setTimeout(() => {
    let what = "refused";
    try {
      if (opened && opened.document.body.textContent) what = "IN " + opened.document.body.textContent.slice(0, 40);
    } catch (fault) {}
    note(name, what);
    done();
  }, 1000));
}

(async () => {
  const body = { method: "POST", body: call };
  const json = { "Content-Type": "application/json" };
  await read("fetch", { ...body, headers: { ...json, ...auth } });
  await read("fetch plain", { ...body, headers: { "Content-Type": "text/plain" } });
  await read("fetch no-cors", { ...body, mode: "no-cors" });
  await read("fetch with credentials", { ...body, headers: json, credentials: "include" });
  await read("fetch page", {}, "/");
  await read("fetch events", { headers: auth }, "/events");
  await read("fetch login", { method: "POST", body: '{"code":"AAAAAAAAAAAAAAAAAAAAAA"}', headers: json }, "/login");
  await read("fetch query", { ...body, mode: "no-cors" }, "/rpc?token=" + token);
  note("beacon", navigator.sendBeacon(door + "/rpc", new Blob([call], { type: "text/plain" })) ? "sent" : "refused");
  await element("img", "img", { src: door + "/" });
  await element("script", "script", { src: door + "/" });
  await element("stylesheet", "link", { rel: "stylesheet", href: door + "/" });
  await element("iframe", "iframe", { src: door + "/" });
  await socket("websocket", ["duet-rpc.1", "duet-rpc.token." + token]);
  await socket("websocket without protocols", []);
  await stream("event source");
  await submit_form("form");
  await open_window("window");
  await fetch("/seen", { method: "POST", body: seen.join("\\n") });
})();
</script>"""

WAYS = ("fetch", "fetch plain", "fetch no-cors", "fetch with credentials", "fetch page", "fetch events", "fetch login",
        "fetch query", "beacon", "img", "script", "stylesheet", "iframe", "websocket", "websocket without protocols",
        "event source", "form", "window")


class Pages(http.server.BaseHTTPRequestHandler):
    """Serves one page, and takes what it has seen."""

    text = ""
    seen = None

    def do_GET(self):
        self.answer(200, self.text.encode())

    def do_POST(self):
        self.seen.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.answer(200, b"thanks")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(text):
    """The port at which a page is served, and the queue of what it has seen."""
    handler = type("Handler", (Pages,), {"text": text, "seen": queue.Queue()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], handler.seen
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def chromium(*words):
    """A browser of our own, in a process group that ends with it."""
    with tempfile.TemporaryDirectory(prefix="duet-chromium-", ignore_cleanup_errors=True) as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-popup-blocking",
                   "--host-resolver-rules=MAP *.example 127.0.0.1", f"--user-data-dir={profile}", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              start_new_session=True) as browser:
            try:
                yield browser
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(browser.pid, signal.SIGKILL)


@suite.unittest.skipUnless(shutil.which("chromium"), "chromium is needed")
class HostileOrigin(DoorTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.secret = self.token()
        self.port = int(self.url.rsplit(":", 1)[1])
        self.mark = os.path.join(self.project.root, "mark")
        self.call = request("task.submit", 1, params={"agent": "shell", "prompt": f"touch {self.mark}"})

    def shown(self, address):
        """A page as Chromium has it when it is loaded."""
        with chromium("--dump-dom", address) as browser:
            return browser.communicate(timeout=PATIENCE)[0]

    def tried(self, host, door):
        """What the page has seen of each way."""
        text = PAGE.replace("@DOOR@", door).replace("@TOKEN@", self.secret).replace("@CALL@", self.call.strip())
        with served(text) as (port, seen), chromium("--remote-debugging-port=0", f"http://{host}:{port}/"):
            return dict(line.split(": ", 1) for line in seen.get(timeout=PATIENCE).split("\n"))

    def assert_nothing_got_in(self, seen):
        self.assertEqual(set(seen), set(WAYS))
        for way, what in seen.items():
            self.assertIn(what, ("refused", "opaque", "sent"), way)
        self.assertEqual(self.project.call("task.stats")["result"]["total"], 0)
        self.assertFalse(os.path.exists(self.mark))

    def test_the_token_counts(self):
        """Without which the rest would show nothing."""
        self.assertIn("taskId", self.rpc(self.secret, self.call).json()["result"])

    def test_another_port(self):
        self.assert_nothing_got_in(self.tried("127.0.0.1", self.url))

    def test_another_name_for_this_machine(self):
        self.assert_nothing_got_in(self.tried("hostile.example", f"http://hostile.example:{self.port}"))
        self.assert_nothing_got_in(self.tried("hostile.example", self.url))

    def test_a_name_that_leads_to_the_door_itself(self):
        self.assertIn("host", self.shown(f"http://hostile.example:{self.port}/"))
        self.assertIn("duet-rpc", self.shown(f"http://localhost:{self.port}/"))


if __name__ == "__main__":
    suite.main()
