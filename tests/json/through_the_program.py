#!/usr/bin/env python3
"""Sends every case of cases.txt and envelopes.txt through `duet-rpc rpc`, each as a frame of its own.

Before each stands a request whose id names the case, so that silence is seen as well as an answer.
"""

import argparse
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))

from casefile import envelope_cases, json_cases  # noqa: E402
from daemon import Daemon, Failure, request  # noqa: E402

PORTION = 50


def answers_by_case(program, cases):
    """For each (name, text) the bodies that came back for it."""
    with Daemon([program, "rpc", "--log-level", "error"]) as daemon:
        for start in range(0, len(cases), PORTION):
            portion = cases[start:start + PORTION]
            for name, text in portion:
                daemon.send(request("version", f"before {name}"))
                daemon.send(text)
            daemon.send(request("version", "last"))
            bodies = []
            while not bodies or marker_of(bodies[-1]) != "last":
                body = daemon.next_body()
                if body is None:
                    raise Failure(f"no answer near {portion[0][0]}: {bodies[-1:]}")
                bodies.append(body)
            yield from split_at_markers(portion, bodies)
        daemon.close_input()
        daemon.expect_exit(0)


def marker_of(body):
    message = json.loads(body.decode("utf-8"))
    return message["id"] if isinstance(message["id"], str) and "result" in message else None


def split_at_markers(portion, bodies):
    markers = {f"before {name}" for name, _ in portion} | {"last"}
    positions = [i for i, body in enumerate(bodies) if marker_of(body) in markers]
    if [marker_of(bodies[i]) for i in positions] != [f"before {name}" for name, _ in portion] + ["last"]:
        raise Failure(f"requests answered out of order near {portion[0][0]}")
    for (name, _), start, end in zip(portion, positions, positions[1:]):
        yield name, bodies[start + 1:end]


def code_of(body):
    return json.loads(body.decode("utf-8")).get("error", {}).get("code")


def json_faults(program):
    # Not those with a header block in them: it ends the body, which is the framing's business.
    cases = [case for case in json_cases(os.path.join(HERE, "cases.txt")) if not re.search(rb": \d+\r\n\r\n", case[2])]
    valid = {name: verdict for name, verdict, _ in cases}
    for name, bodies in answers_by_case(program, [(name, text) for name, _, text in cases]):
        if len(bodies) != 1:
            yield f"{name}: {len(bodies)} answers {bodies[:2]}"
        elif (code_of(bodies[0]) == -32700) == valid[name]:
            yield f"{name}: {'valid' if valid[name] else 'invalid'} JSON, answered {bodies[0][:200]}"
    print(f"{len(cases)} JSON texts")


def envelope_faults(program):
    cases = {case.where: case for case in envelope_cases(os.path.join(HERE, "envelopes.txt")) if case.door != "socket"}
    for where, bodies in answers_by_case(program, [(where, case.text) for where, case in cases.items()]):
        (kind, id), = cases[where].outcomes
        if kind in ("notification", "response"):
            fault = f"{len(bodies)} answers to a {kind}" if bodies else None
        elif len(bodies) != 1:
            fault = f"{len(bodies)} answers"
        else:
            fault = envelope_fault(kind, id, bodies[0])
        if fault:
            yield f"envelopes.txt {where}: {fault}"
    print(f"{len(cases)} envelopes")


def envelope_fault(kind, id, body):
    answer = json.loads(body.decode("utf-8"))
    # The id's own text: as the daemon may order members as it likes, it is enough that the text stands in the answer.
    if b'"id":' + id not in body.replace(b'"id": ', b'"id":'):
        return f"the id {id[:80]} is not in {body[:200]}"
    if kind == "request":
        return None if answer.get("error", {}).get("code") == -32601 else f"no request: {body[:200]}"
    code = -32700 if kind == "invalid-json" else -32600
    error = answer.get("error", {})
    if error.get("code") != code or error.get("data", {}).get("reason") != kind:
        return f"expected {kind}, got {body[:200]}"
    has_detail = "detail" in error["data"]
    return None if has_detail == (kind == "malformed-envelope") else f"`detail` in {body[:200]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    try:
        faults = list(json_faults(program)) + list(envelope_faults(program))
    except Failure as failure:
        faults = [str(failure)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
