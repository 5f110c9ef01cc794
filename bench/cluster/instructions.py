#!/usr/bin/env python3
"""Counts the instructions that a call of the queue's hot functions costs the server: what a noisy machine cannot blur.

    instructions.py [--only=CALL,…] [TREE...]     # source trees side by side, such as worktrees of two commits; this one if none is given

Each call is made by a server in single-user mode under valgrind's callgrind, in a copy of a prepared database; what 20 calls
cost is taken off what 120 cost. The way from a client to the server, and waits for the disk, are not in it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/cluster"))

import server  # noqa: E402

FEW, MANY, READY = 20, 120, 3000
WORKER = "11111111-1111-4111-8111-111111111111"
TEXT = 200 * "x"


def submit(ids, many):
    def same(value, kind="text"):
        return f"array_fill({value}::{kind}, ARRAY[{many}])"
    text = same(f"'{TEXT}'")
    arguments = [ids, "NULL", same("'claude'"), same("'default'"), same("''"), same("false", "boolean"), same("0", "bigint"), *4 * ["NULL"],
                 text, same("'{}'"), "NULL", text, "NULL", "NULL"]
    return f"SELECT count(*) FROM duet.submit_v1(1, '{WORKER}', {', '.join(arguments)})"


def report(ends, most):
    return f"SELECT count(*) FROM duet.report_v1(1, '{WORKER}', NULL, {ends}, NULL, {most}, '{{}}', '{{}}', NULL, NULL)"


def wake(many):
    return f"SELECT duet.wake_v1(1, '{WORKER}', '{{1}}', '{{{many}}}')"


WAIT = f"(integer) AS SELECT duet.wait_v1(1, '{WORKER}', true)"
NO_ENDS = ", ".join(["NULL"] * 18)
ONE_END = "$1, $2, '{t}', '{0}', NULL, NULL, NULL, '{7}', '{5}', '{1}', '{1000}', '{4096}', '{0}', NULL, NULL, NULL, '{2}', ARRAY['x'::bytea]"


class Counter:
    def __init__(self, tree):
        self.one = server.Server(settings={"shared_buffers": "64MB"})
        self.one.__enter__()
        server.SCHEMA = pathlib.Path(tree).resolve() / "src/task/postgres/schema"
        server.install(self.one, "postgres")
        self.one.sql("SELECT duet.set_v1('queue_capacity', '1000000')")
        self.one.sql(f"SELECT duet.attach_v1('one', NULL, '{{}}', '{WORKER}', 'm', 90000, 600000, '{{}}', '{{claude}}', '{{claude}}', 1000, true, 'bench', 1)")
        self.one.sql(submit(f"ARRAY(SELECT gen_random_uuid() FROM generate_series(1, {READY}))", READY))
        self.one.sql(f"SELECT duet.beat_v1(1, '{WORKER}', false, 1000, '{{}}', '{{claude}}', '{{claude}}', 90000, 600000)")  # it knows its lane
        self.one.sql(report(NO_ENDS, MANY))
        self.runs = self.one.sql("SELECT id, fence FROM duet.task WHERE state = 2 ORDER BY id")

    def count(self, prepared, calls):
        copy = self.one.data + "-copy"
        subprocess.run(["cp", "-a", self.one.data, copy], check=True)
        account = server._account()
        words = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"] if account else []
        words += ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{server.binaries()}/postgres", "--single", "-j", "-F", "-D", copy,
                  "postgres"]
        text = ";\n\n".join([f"PREPARE it{prepared}", *calls]) + ";\n\n"
        done = subprocess.run(words, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", check=False)
        shutil.rmtree(copy)
        said = done.stdout.decode(errors="replace")
        found = re.search(r"Collected : (\d+)", said)
        if not found or "ERROR" in said:
            raise SystemExit(said[-3000:])
        return int(found.group(1))

    def per_call(self, prepared, call):
        calls = [call(i) for i in range(MANY)]
        return (self.count(prepared, calls) - self.count(prepared, calls[:FEW])) // (MANY - FEW)

    def all(self, wanted):
        self.one.stop()
        each = {"nothing": lambda: self.per_call("(text) AS SELECT $1", lambda i: f"EXECUTE it('{{{uuid.uuid4()}}}')"),
                "submit": lambda: self.per_call("(uuid[]) AS " + submit("$1", 1), lambda i: f"EXECUTE it('{{{uuid.uuid4()}}}')"),
                "wait and wake": lambda: self.per_call(WAIT + f";\n\nPREPARE wake(integer) AS {wake(1)}", lambda i: "EXECUTE it(1);\n\nEXECUTE wake(1)"),
                "wake for nobody": lambda: self.per_call("(integer) AS " + wake(1), lambda i: "EXECUTE it(1)"),
                "claim": lambda: self.per_call("(integer) AS " + report(NO_ENDS, "$1"), lambda i: "EXECUTE it(1)"),
                "end and claim": lambda: self.per_call("(bigint[], bigint[]) AS " + report(ONE_END, 1),
                                               lambda i: f"EXECUTE it('{{{self.runs[i][0]}}}', '{{{self.runs[i][1]}}}')")}
        return {name: count() for name, count in each.items() if not wanted or name in wanted}


def main():
    server.skip_unless_installed()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed (Debian: valgrind)")
    arguments = sys.argv[1:]
    wanted = arguments[:1] and arguments[0].startswith("--only=") and arguments.pop(0).removeprefix("--only=").split(",")
    for tree in arguments or [str(HERE.parents[1])]:
        counter = Counter(tree)
        try:
            print(os.path.basename(os.path.abspath(tree)), ", ".join(f"{name} {many:,}" for name, many in counter.all(wanted).items()), flush=True)
        finally:
            counter.one.__exit__()


if __name__ == "__main__":
    main()
