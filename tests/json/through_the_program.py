#!/usr/bin/env python3
"""Sends every case of cases.txt and envelopes.txt through a running server, each as a message of its own.

    through_the_program.py --program duet-rpc           over stdio
    through_the_program.py --socket-server bare_server  over a Unix socket

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
from daemon import Daemon, Failure, SocketServer, request  # noqa: E402

PORTION = 50


def answers_by_case(peer, marker_method, cases):
    """For each (name, text) the bodies that came back for it."""
    for start in range(0, len(cases), PORTION):
        portion = cases[start:start + PORTION]
        for name, text in portion:
            peer.send(request(marker_method, f"before {name}"))
            peer.send(text)
        peer.send(request(marker_method, "last"))
        bodies = []
        while not bodies or marker_of(bodies[-1]) != "last":
            body = peer.next_body()
            if body is None:
                raise Failure(f"no answer near {portion[0][0]}: {bodies[-1:]}")
            bodies.append(body)
        yield from split_at_markers(portion, bodies)


def marker_of(body):
    message = json.loads(body.decode("utf-8"))
    is_result = isinstance(message, dict) and "result" in message and isinstance(message["id"], str)
    return message["id"] if is_result else None


def split_at_markers(portion, bodies):
    expected = [f"before {name}" for name, _ in portion] + ["last"]
    positions = [i for i, body in enumerate(bodies) if marker_of(body) in set(expected)]
    if [marker_of(bodies[i]) for i in positions] != expected:
        raise Failure(f"requests answered out of order near {portion[0][0]}")
    for (name, _), start, end in zip(portion, positions, positions[1:]):
        yield name, bodies[start + 1:end]


def json_faults(peer, marker_method):
    # Not those with a header block in them: it ends the body, which is the framing's business.
    cases = [case for case in json_cases(os.path.join(HERE, "cases.txt")) if not re.search(rb": \d+\r\n\r\n", case[2])]
    valid = {name: verdict for name, verdict, _ in cases}
    for name, bodies in answers_by_case(peer, marker_method, [(name, text) for name, _, text in cases]):
        if len(bodies) != 1:
            yield f"{name}: {len(bodies)} answers {bodies[:2]}"
        elif (json.loads(bodies[0].decode("utf-8")).get("error", {}).get("code") == -32700) == valid[name]:
            yield f"{name}: {'valid' if valid[name] else 'invalid'} JSON, answered {bodies[0][:200]}"
    print(f"{len(cases)} JSON texts")


def envelope_faults(peer, marker_method, door):
    path = os.path.join(HERE, "envelopes.txt")
    cases = {case.where: case for case in envelope_cases(path) if case.door in (door, "both")}
    texts = [(where, case.text) for where, case in cases.items()]
    for where, bodies in answers_by_case(peer, marker_method, texts):
        fault = case_fault(cases[where], bodies)
        if fault:
            yield f"envelopes.txt {where}: {fault}"
    print(f"{len(cases)} envelopes on {door}")


def case_fault(case, bodies):
    answered = [outcome for outcome in case.outcomes if outcome[0] not in ("notification", "response")]
    if len(bodies) != (1 if answered else 0):
        return f"{len(bodies)} answers {bodies[:1]}"
    if not answered:
        return None
    answers = json.loads(bodies[0].decode("utf-8"))
    if isinstance(answers, list) != case.batch:
        return f"a batch or not a batch? {bodies[0][:200]}"
    if not case.batch:
        answers = [answers]
    if len(answers) != len(answered):
        return f"{len(answers)} answers in the batch"
    faults = (envelope_fault(*outcome, answer, bodies[0]) for outcome, answer in zip(answered, answers))
    return next((fault for fault in faults if fault), None)


def envelope_fault(kind, id, answer, body):
    # The id's own text: as the server may order members as it likes, it is enough that the text stands in the answer.
    if b'"id":' + id not in body.replace(b'"id": ', b'"id":') or answer["id"] != json.loads(id):
        return f"the id {id[:80]} is not in {body[:200]}"
    error = answer.get("error", {})
    if kind == "request":
        return None if error.get("code") == -32601 else f"no request: {body[:200]}"
    code = -32700 if kind == "invalid-json" else -32600
    if error.get("code") != code or error.get("data", {}).get("reason") != kind:
        return f"expected {kind}, got {body[:200]}"
    has_detail = "detail" in error["data"]
    return None if has_detail == (kind == "malformed-envelope") else f"`detail` in {body[:200]}"


def over_stdio(program):
    with Daemon([program, "rpc", "--log-level", "error"]) as daemon:
        faults = [*json_faults(daemon, "version"), *envelope_faults(daemon, "version", "stdio")]
        daemon.close_input()
        daemon.expect_exit(0)
        return faults


def over_a_socket(program):
    with SocketServer([program, "unix"]) as server:
        return list(envelope_faults(server.connect(), "ping", "socket"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("--socket-server")
    options = parser.parse_args()
    faults = over_stdio(options.program) if options.program else []
    faults += over_a_socket(options.socket_server) if options.socket_server else []
    for fault in faults:
        print(fault)
    return 1 if faults or not (options.program or options.socket_server) else 0


if __name__ == "__main__":
    sys.exit(main())
