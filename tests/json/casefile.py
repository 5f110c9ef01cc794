"""Reads the case files of this folder (their format stands at the top of cases.txt)."""

import re

_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|\((\d+) ([^)\\]*)\)|([nrt"\\]))')
_SHORT = {"n": b"\n", "r": b"\r", "t": b"\t", '"': b'"', "\\": b"\\"}


def unescape(text):
    """The bytes that TEXT stands for."""
    out, position = bytearray(), 0
    while position < len(text):
        if text[position] != "\\":
            out += text[position].encode("ascii")
            position += 1
            continue
        match = _ESCAPE.match(text, position)
        if not match:
            raise ValueError(f"unknown escape at {text[position:position + 12]!r}")
        byte, count, repeated, short = match.groups()
        if byte:
            out.append(int(byte, 16))
        elif count:
            out += repeated.encode("ascii") * int(count)
        else:
            out += _SHORT[short]
        position = match.end()
    return bytes(out)


def content_lines(path):
    """(line number, line) of every line that says something."""
    with open(path, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.strip() and not line.startswith("#"):
                yield number, line


def json_cases(path):
    """(name, valid, bytes) of every case; a rule yields its forty."""
    for number, line in content_lines(path):
        rule = line.startswith("@at ")
        fields = (line[4:] if rule else line).split(" ", 2)
        if len(fields) < 2 or fields[0] not in ("y", "n"):
            raise ValueError(f"{path}:{number}: neither a case nor a rule")
        valid, name = fields[0] == "y", fields[1]
        text = unescape(fields[2] if len(fields) == 3 else "")
        if not rule:
            yield name, valid, text
            continue
        for before in range(40):
            yield f"{name}@{before}", valid, b'"' + b"a" * before + text + b"a" * (40 - before) + b'"'


class Envelope:
    """One line of envelopes.txt: the message, and for each of its members (one, unless a batch) kind and id."""

    def __init__(self, where, door, text, batch, outcomes):
        self.where, self.door, self.text, self.batch, self.outcomes = where, door, text, batch, outcomes


def envelope_cases(path):
    for number, line in content_lines(path):
        message, arrow, expected = line.rpartition(" -> ")
        door, _, text = message.partition(" ")
        if not arrow or door not in ("stdio", "socket", "both"):
            raise ValueError(f"{path}:{number}: not `DOOR TEXT -> KIND ID`")
        expected = unescape(expected)
        batch = expected.startswith(b"batch ")
        members = expected[len(b"batch "):].split(b"; ") if batch else [expected]
        outcomes = []
        for member in members:
            kind, _, id = member.partition(b" ")
            outcomes.append((kind.decode("ascii"), id or None))
        yield Envelope(f"line {number}", door, unescape(text), batch, outcomes)
