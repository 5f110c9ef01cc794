"""The queue's functions, called as a daemon calls them, but through psql: for tests of the SQL alone."""

import json
import uuid

import server

QUEUED, RUNNING, COMPLETED, FAILED, CANCELLED = range(5)  # as the world sees it
STOP, TREE_GONE, PUT_BACK = 1, 2, 4  # flags of an end
EXIT, SIGNAL, TIMEOUT, SPAWN, LOST, DEPENDENCY, MEMORY = range(7)


def quoted(value):
    """As an SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"'{value}'"  # of a type that the server finds, as with a daemon's parameters
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if isinstance(value, (list, tuple)):
        return "'{" + ",".join(_element(item) for item in value).replace("'", "''") + "}'"
    if isinstance(value, dict):
        return quoted(json.dumps(value))
    return "'" + str(value).replace("'", "''") + "'"


def _element(item):
    if item is None:
        return "NULL"
    if isinstance(item, bool):
        return "t" if item else "f"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, bytes):
        return '"\\\\x' + item.hex() + '"'
    return '"' + str(item).replace("\\", "\\\\").replace('"', '\\"') + '"'


def call_text(function, *arguments, schema="duet"):
    return f"SELECT * FROM {schema}.{function}({', '.join(quoted(item) for item in arguments)})"


class Row(dict):
    """A row of a function by column names."""

    __getattr__ = dict.__getitem__


CLAIM = ["id", "fence", "attempt", "agent", "grp", "on_lost", "priority", "retries", "spared", "body", "env", "cancelling", "lane",
         "needs", "submitter"]
SUBMIT = ["place", "id", "state", "fresh", "body", "refusal", "lane"]
EVENT = ["seq", "kind", "task", "params", "arrived_ms", "record"]
RECORD = ("id prompt agent grp priority state held created_ms not_before_ms retry_ms started_ms completed_ms pid exit_code signal result"
          " error_reason error_message attempts spared lost cpu_us max_memory output_bytes output_gone labels metadata worker on_lost needs"
          " silent late submitted_by fence waiting_for cancelling").split()
TEXTS = {"submitter", "agent", "grp", "body", "env", "refusal", "kind", "params", "record", "prompt", "signal", "result", "error_message", "labels",
         "metadata", "worker", "needs", "late", "submitted_by", "waiting_for", "what"}


def rows_of(names, rows):
    def value(name, text):
        if text is None or name in TEXTS:
            return text
        return {"t": True, "f": False}[text] if text in ("t", "f") else int(text)
    return [Row((name, value(name, text)) for name, text in zip(names, row)) for row in rows]


class Caller:
    """One connection to the queue."""

    def __init__(self, where, database, user="tester", schema="duet"):
        self.session = server.Session(where.conninfo(database, user))
        self.schema = schema

    def close(self):
        self.session.close()

    def ask(self, text):
        return self.session.ask(text)

    def one(self, text):
        return self.session.one(text)

    def call(self, function, *arguments):
        return self.session.ask(call_text(function, *arguments, schema=self.schema))

    def json(self, function, *arguments):
        return json.loads(self.call(function, *arguments)[0][0])

    def task(self, id):
        rows = rows_of(RECORD, self.call("read_task_v1", id))
        return rows[0] if rows else None

    def tasks(self, **query):
        return rows_of(RECORD, self.call("read_tasks_v1", query))

    def number(self, most=100000):
        return int(self.call("number_v1", most)[0][0])

    def events(self, after=0, most=100000):
        self.number()
        events = rows_of(EVENT, self.call("read_events_v1", after, most))
        for event in events:
            event["params"] = json.loads(event["params"])
        return events

    def kinds(self, task):
        return [event.kind for event in self.events() if event.task == task]


class Worker(Caller):
    """A daemon in the queue."""

    def __init__(self, where, database, name="one", labels=(), accepts=("claude",), agents=("claude",), slots=4, run=True, worker=None, old=(),
                 lease=90000, lost_after=600000, user="tester", schema="duet"):
        super().__init__(where, database, user, schema)
        self.name, self.incarnation = name, str(uuid.uuid4())
        self.attached = self.json("attach_v1", name, worker, list(old), self.incarnation, "machine", lease, lost_after, list(labels), list(accepts),
                                  list(agents), slots, run, "0.2", 1)
        self.id = self.attached["worker"]

    def do(self, function, *arguments):
        """A call as this worker."""
        return self.call(function, self.id, self.incarnation, *arguments)

    def do_json(self, function, *arguments):
        return json.loads(self.do(function, *arguments)[0][0])

    def submit_text(self, tasks):
        def column(name, default):
            return [task.get(name, default) for task in tasks]
        return call_text("submit_v1", self.id, self.incarnation, [task.get("id", str(uuid.uuid4())) for task in tasks], column("key", None),
                         column("agent", "claude"), column("group", "default"), column("needs", ""), column("own", False), column("priority", 0),
                         column("retries", 0), column("on_lost", 0), column("delay", None), column("not_before", None), column("prompt", '"p"'),
                         column("metadata", "{}"), column("labels", None), column("body", "{}"), column("env", None),
                         [",".join(str(id) for id in task.get("after", [])) for task in tasks], schema=self.schema)

    def submit_all(self, *tasks):
        return rows_of(SUBMIT, self.ask(self.submit_text(tasks)))

    def submit(self, **task):
        """The id of one task."""
        row = self.submit_all(task)[0]
        assert row.refusal is None, row
        return row.id

    def claim(self, most=1, turns=(), closed=(), limits=None, behind=None):
        return rows_of(CLAIM, self.do("claim_v1", most, list(turns), list(closed), limits, behind))

    def report(self, ends=(), starts=None, output=None, most=0, turns=(), closed=(), limits=None, behind=None, told=None):
        def column(name, default=None):
            return [end.get(name, default) for end in ends]
        rows = self.do("report_v1", json.dumps(starts) if starts is not None else None, column("task"), column("fence"), column("ok", True),
                       column("code", 0), column("signal"), column("reason"), column("message"), column("pid", 77), column("started_ago", 20),
                       column("ended_ago", 0), column("cpu", 1000), column("memory", 4096), column("bytes", 0), column("retry"), column("hold"),
                       column("text"), column("flags", TREE_GONE), column("result", b""), json.dumps(output) if output is not None else None, most,
                       list(turns), list(closed), limits, behind, told)
        return rows_of(["what", *CLAIM], rows)

    def start(self, *claims):
        return self.report(starts=[{"task": claim.id, "fence": claim.fence, "pid": 77, "ago": 0} for claim in claims])

    def end(self, claim, ok=True, **more):
        """The state that it went to, or `fenced`."""
        if not ok:
            more = {"code": 1, "reason": EXIT, "message": "exited with code 1", **more}
        row = [row for row in self.report([{"task": claim.id, "fence": claim.fence, "ok": ok, **more}]) if row.what != "ready"][0]
        return row.attempt if row.what == "end" else row.what

    def run_one(self, ok=True, **more):
        """Claims one, and ends it."""
        claim, = self.claim(1)
        self.end(claim, ok, **more)
        return claim

    def beat(self, waiting=None):
        return self.do_json("beat_v1", waiting, None, None, None, None, None, None)

    def beat_number(self):
        return int(self.one(f"SELECT beat FROM {self.schema}.worker WHERE id = {self.id}"))
