#!/usr/bin/env python3
"""Holds the verdicts of cases.txt against a second opinion, Python's json with strict UTF-8.

Python is more generous than RFC 8259 in one thing only (NaN and the infinities), which is switched off here.
"""

import json
import os
import sys

from casefile import content_lines, json_cases


def refuse(word):
    raise ValueError(word)


def python_accepts(data):
    try:
        json.loads(data.decode("utf-8"), parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.txt")
    sys.setrecursionlimit(3000)
    faults, names, texts, skipped = [], set(), {}, 0
    for name, valid, data in json_cases(path):
        if name in names:
            faults.append(f"{name}: the name is there twice")
        if data in texts and "@" not in name:
            faults.append(f"{name}: the same text as {texts[data]}")
        names.add(name)
        texts[data] = name
        if data.count(b"[") > 600:
            skipped += 1  # deeper than Python's parser goes
        elif python_accepts(data) != valid:
            faults.append(f"{name}: the file says {'valid' if valid else 'invalid'}, Python not: {data[:80]!r}")
    written = sum(not line.startswith("@") for _, line in content_lines(path))
    if written < 320:
        faults.append(f"only {written} cases")
    print(f"{written} cases, {len(names)} with those made by rules, {skipped} too deep for Python")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
