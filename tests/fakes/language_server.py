#!/usr/bin/env python3
"""A language server for tests: it knows what it was told, says so, and does wrong what it is asked to do wrong.

It keeps documents, counts the word BAD in them as an error, and hovers with `VERSION|LINE TEXT|CHARACTER`. Methods of its
own, `fake/…`, misbehave on request. With --tape FILE every message it gets is written there, a JSON text a line.
"""

import argparse
import json
import os
import signal
import random
import subprocess
import sys
import threading
import time

CRASH_CODE = 7


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tape", help="write down every message")
    parser.add_argument("--pids", help="write the pids of this process and its children to this file")
    parser.add_argument("--name", default="fake")
    parser.add_argument("--encoding", choices=["utf-8", "utf-16", "utf-32"])
    parser.add_argument("--clangd-encoding", help="answer as old clangd does, beside the capabilities")
    parser.add_argument("--sync", type=int, default=2)
    parser.add_argument("--crash-at", help="start, or the method at which to end with code 7")
    parser.add_argument("--crash-once", help="with --crash-at: only if this file is not there yet; it is made")
    parser.add_argument("--initialize-delay", type=float, default=0)
    parser.add_argument("--banner", help="text on stdout before anything else")
    parser.add_argument("--noise", help="a line on stdout before each answer")
    parser.add_argument("--stderr", type=int, default=0, help="bytes to write to stderr before anything else")
    parser.add_argument("--complain", help="a text on stderr before anything else")
    parser.add_argument("--grandchild", action="store_true", help="leave a child in a session of its own")
    parser.add_argument("--ignore", action="append", default=[], help="a method, or TERM, that has no effect")
    parser.add_argument("--twice", action="store_true", help="answer every request twice")
    parser.add_argument("--unversioned", action="store_true", help="publish diagnostics without a version")
    parser.add_argument("--publish-delay", type=float, default=0)
    parser.add_argument("--stale-first", action="store_true", help="publish those of the old text again after a change")
    parser.add_argument("--never-publish", action="store_true")
    parser.add_argument("--moods", type=int, help="publish late, unversioned, twice or never, by chance from this seed")
    parser.add_argument("--capability", action="append", default=[], help="one more that it offers")
    parser.add_argument("--pull", action="store_true", help="offer textDocument/diagnostic instead of publishing")
    parser.add_argument("--answer", action="append", default=[], help="METHOD=JSON: a result for a question")
    parser.add_argument("--slow", action="append", default=[], help="METHOD=SECONDS: a question that takes so long")
    parser.add_argument("--memory", type=int, default=0, help="MiB to use")
    return parser.parse_args()


class Server:
    def __init__(self, options):
        self.options = options
        self.documents = {}
        self.held = []
        self.asking = {}
        self.last_id = 0
        self.input = sys.stdin.buffer
        self.writing = threading.Lock()
        self.chance = random.Random(options.moods)

    # ---- bytes ----

    def write(self, data):
        with self.writing:
            while data:
                data = data[os.write(1, data):]

    def frame(self, body, delta=0):
        return b"Content-Length: %d\r\n\r\n%s" % (len(body) + delta, body)

    def send(self, message, delta=0):
        if self.options.noise:
            self.write(self.options.noise.encode() + b"\n")
        self.write(self.frame(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode(), delta))

    def read(self):
        length = None
        while True:
            line = self.input.readline()
            if not line:
                return None
            if line == b"\r\n":
                break
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        return self.input.read(length)

    # ---- conversation ----

    def run(self):
        self.prepare()
        while True:
            body = self.read()
            if body is None:
                return 0
            message = json.loads(body)
            if self.options.tape:
                with open(self.options.tape, "ab") as tape:
                    tape.write(body.replace(b"\n", b" ") + b"\n")
            method = message.get("method")
            if method is not None and method == self.options.crash_at:
                self.crash()
            if method in self.options.ignore:
                continue
            if method is None:
                self.take_answer(message)
            elif method == "exit":
                return 0
            elif "id" in message:
                self.take_request(message, body)
            else:
                self.take_notification(message)

    def prepare(self):
        options = self.options
        if "TERM" in options.ignore:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pids = [os.getpid()]
        if options.grandchild:
            script = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
            child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
            child.stdout.readline()
            pids.append(child.pid)
        if options.pids:
            with open(options.pids, "a", encoding="ascii") as file:
                file.write(" ".join(map(str, pids)) + "\n")
        if options.complain:
            os.write(2, options.complain.encode() + b"\n")
        left = options.stderr
        while left > 0:
            left -= os.write(2, b"x" * min(left, 65535) + b"\n")
        if options.memory:
            self.memory = b"m" * (options.memory << 20)
        if options.banner:
            self.write(options.banner.encode() + b"\n")
        if options.crash_at == "start":
            self.crash()

    def crash(self):
        once = self.options.crash_once
        if once:
            if os.path.exists(once):
                return
            open(once, "w", encoding="ascii").close()
        os._exit(CRASH_CODE)

    def answer(self, request, result):
        for _ in range(2 if self.options.twice else 1):
            self.send({"id": request["id"], "result": result})

    def take_answer(self, message):
        request = self.asking.pop(message["id"], None)
        if request:
            self.answer(request, {k: v for k, v in message.items() if k in ("result", "error")})

    def take_request(self, request, body):
        method, params = request["method"], request.get("params") or {}
        own = getattr(self, "fake_" + method[5:], None) if method.startswith("fake/") else None
        if own:
            own(request, params, body)
        elif method == "initialize":
            self.initialize(request)
        elif method == "shutdown":
            self.answer(request, None)
        elif method.startswith("textDocument/"):
            self.take_question(request, params)
        elif method == "workspace/symbol":
            self.answer(request, json.loads(self.answers().get("symbol", "null")))
        else:
            self.send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})

    def initialize(self, request):
        options = self.options
        time.sleep(options.initialize_delay)
        capabilities = {"textDocumentSync": {"openClose": True, "change": options.sync, "save": True},
                        "hoverProvider": True, "definitionProvider": True}
        capabilities.update((name, True) for name in options.capability)
        if options.encoding:
            capabilities["positionEncoding"] = options.encoding
        if options.pull:
            capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
        result = {"capabilities": capabilities, "serverInfo": {"name": options.name, "version": "1.0"}}
        if options.clangd_encoding:
            result["offsetEncoding"] = options.clangd_encoding
        self.answer(request, result)

    def take_question(self, request, params):
        uri = params["textDocument"]["uri"]
        if uri not in self.documents:
            self.send({"id": request["id"], "error": {"code": -32602, "message": "not open"}})
            return
        version, text = self.documents[uri]
        method = request["method"].split("/")[1]
        time.sleep(float(dict(slow.split("=") for slow in self.options.slow).get(method, 0)))
        answers = self.answers()
        if method in answers:
            self.answer(request, json.loads(answers[method].replace("URI", uri)))
        elif method == "diagnostic":
            self.answer(request, {"kind": "full", "items": self.findings(text)})
        elif method == "definition":
            self.answer(request, {"uri": uri, "range": self.range_of(text, "TARGET")})
        elif method == "hover":
            position = params["position"]
            line = text.split("\n")[position["line"]]
            self.answer(request, {"contents": f"{version}|{line}|{position['character']}"})
        else:
            self.answer(request, None)

    def answers(self):
        return dict(answer.split("=", 1) for answer in self.options.answer)

    def take_notification(self, message):
        method, params = message["method"], message.get("params") or {}
        document = params.get("textDocument", {})
        uri = document.get("uri")
        if method == "textDocument/didOpen":
            self.documents[uri] = (document["version"], document["text"])
            self.publish(uri)
        elif method == "textDocument/didChange":
            old = self.documents[uri]
            self.documents[uri] = (document["version"], params["contentChanges"][-1]["text"])
            if self.options.moods is not None:
                self.publish_by_mood(uri, old)
                return
            if self.options.stale_first:
                self.publish(uri, old)
            self.publish(uri)
        elif method == "textDocument/didClose":
            del self.documents[uri]

    # ---- diagnostics ----

    def units(self, text):
        encoding = self.options.encoding or self.options.clangd_encoding or "utf-16"
        if encoding == "utf-8":
            return len(text.encode())
        return len(text) if encoding == "utf-32" else len(text.encode("utf-16-le")) // 2

    def range_of(self, text, word, line=None):
        for number, content in enumerate(text.split("\n")):
            if word in content and line in (None, number):
                begin = self.units(content[:content.index(word)])
                return {"start": {"line": number, "character": begin},
                        "end": {"line": number, "character": begin + self.units(word)}}
        return {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}

    def findings(self, text):
        return [{"range": self.range_of(text, "BAD", number), "severity": 1, "source": "fake", "message": content.strip()}
                for number, content in enumerate(text.split("\n")) if "BAD" in content]

    def publish(self, uri, document=None):
        if self.options.pull or self.options.never_publish:
            return
        version, text = document or self.documents[uri]
        time.sleep(self.options.publish_delay)
        params = {"uri": uri, "diagnostics": self.findings(text)}
        if not self.options.unversioned:
            params["version"] = version
        self.send({"method": "textDocument/publishDiagnostics", "params": params})

    def publish_by_mood(self, uri, old):
        """What is published, when, how often and with which version is left to chance; the text is always true."""
        new = self.documents[uri]
        mood = self.chance.choice(("now", "late", "twice", "unversioned", "late and unversioned", "never"))
        texts = {"twice": (old, new), "never": ()}.get(mood, (new,))
        delay = self.chance.uniform(0, 0.3) if mood.startswith("late") else 0
        for version, text in texts:
            params = {"uri": uri, "diagnostics": self.findings(text)}
            if "unversioned" not in mood:
                params["version"] = version
            message = {"method": "textDocument/publishDiagnostics", "params": params}
            threading.Timer(delay, self.send, (message,)).start()

    # ---- methods that misbehave ----

    def fake_progress(self, request, params, body):
        """Tells of work, having asked for a token first if it begins."""
        if params["value"].get("kind") == "begin":
            self.send({"id": f"create-{params['token']}", "method": "window/workDoneProgress/create",
                       "params": {"token": params["token"]}})
        self.send({"method": "$/progress", "params": params})
        self.answer(request, None)

    def fake_echo(self, request, params, body):
        """The params as they were spelt."""
        begin = body.index(b'"params":') + len(b'"params":')
        raw = body[begin:body.rindex(b"}")]
        self.write(self.frame(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request["id"], raw)))

    def fake_body(self, request, params, body):
        """A message of the caller's, with the request's id for ID."""
        self.write(self.frame(params["text"].replace("ID", str(request["id"])).encode()))

    def fake_never(self, request, params, body):
        pass

    def fake_hold(self, request, params, body):
        self.held.append(request)

    def fake_release(self, request, params, body):
        """Answers to what is held, the last first."""
        while self.held:
            held = self.held.pop()
            self.answer(held, held.get("params"))
        self.answer(request, None)

    def fake_trickle(self, request, params, body):
        answer = self.frame(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": "y" * params["size"]}).encode())
        for byte in range(len(answer)):
            os.write(1, answer[byte:byte + 1])

    def fake_large(self, request, params, body):
        self.answer(request, "y" * params["size"])

    def fake_wrong_length(self, request, params, body):
        self.send({"id": request["id"], "result": {"text": "ä" * 20}}, params["delta"])
        if params.get("then"):
            self.send({"method": "window/logMessage", "params": {"type": 4, "message": "still here"}})

    def fake_crash(self, request, params, body):
        os._exit(CRASH_CODE)

    def fake_close(self, request, params, body):
        """Closes stdout and stays."""
        os.close(1)
        time.sleep(600)

    def fake_print(self, request, params, body):
        self.write(params["text"].encode())
        self.answer(request, None)

    def fake_ask(self, request, params, body):
        """Asks the client and answers with what it said."""
        self.last_id += 1
        self.asking[f"ask-{self.last_id}"] = request
        self.send({"id": f"ask-{self.last_id}", "method": params["method"], "params": params.get("params")})

    def fake_refuse(self, request, params, body):
        self.send({"id": request["id"], "error": {"code": -32099, "message": "no", "data": {"why": 1.50}}})


if __name__ == "__main__":
    sys.exit(Server(parse_arguments()).run())
