"""What a reader of LSP frames must make of a byte stream: the framing rules, written once more for the tests.

Slow and simple on purpose: it looks at the whole stream at once, where the program sees it in portions. It knows
no Content-Type; streams given to it have none but the right one.
"""

import json
import re

MAX_BODY = 10 * 1024 * 1024
MAX_HEADER = 8192

_LINE = re.compile(rb"([A-Za-z0-9-]+):([^\r\n]*)")
_MID_LINE = re.compile(rb"Content-Type:|Content-Length:[ \t]*[0-9]+[ \t]*\Z", re.IGNORECASE)
_COULD_BECOME_A_LINE = re.compile(rb"[A-Za-z0-9-]*(?:(?<!^):[^\n]*)?\r?", re.DOTALL)


class Message:
    def __init__(self, body):
        self.body = body

    def __repr__(self):
        return f"Message({self.body[:60]!r})"


class Fault:
    """One error answer; REASONS are those the rules allow."""

    def __init__(self, code, *reasons):
        self.code, self.reasons = code, set(reasons)

    def __repr__(self):
        return f"Fault({self.code}, {'|'.join(sorted(self.reasons))})"


MALFORMED = "malformed-header"
MISMATCH = "content-length-mismatch"


def valid_json(body):
    def refuse(word):
        raise ValueError(word)
    try:
        json.loads(body.decode("utf-8"), parse_constant=refuse, parse_int=str, parse_float=str)
        return True
    except ValueError:
        return False


def length_in(line):
    """What a header line says of the length: a number, None if nothing, "bad" if no number."""
    name, value = _LINE.fullmatch(line).groups()
    if name.lower() != b"content-length":
        return None
    value = value.strip(b" \t")
    return int(value) if re.fullmatch(rb"[0-9]+", value) else "bad"


def announced_length(lines):
    """The one Content-Length of these header lines; None if there is none, a bad one or two that differ."""
    values = {length_in(line) for line in lines} - {None}
    return values.pop() if len(values) == 1 and "bad" not in values else None


def find_block(stream, low):
    """(start, body start, length) of the first header block at or after LOW, as one looks for it after a fault."""
    end = stream.find(b"\r\n\r\n", low)
    while end >= 0:
        found = _longest_run(stream, low, end)
        if found:
            return found[0], end + 4, found[1]
        end = stream.find(b"\r\n\r\n", end + 1)
    return None


def _longest_run(stream, low, end):
    """The longest run of well-formed lines up to END that announces a length: (start, length)."""
    best, below, line_end = None, set(), end
    while line_end > low:
        break_before = stream.rfind(b"\r\n", low, line_end)
        start = break_before + 2 if break_before >= 0 else low
        line = stream[start:line_end]
        for match in reversed(list(_MID_LINE.finditer(line))):
            cut = line[match.start():]
            lengths = below | ({length_in(cut)} if _LINE.fullmatch(cut) else {"bad"}) - {None}
            if len(lengths) == 1 and "bad" not in lengths:
                best = start + match.start(), *lengths
        if not _LINE.fullmatch(line):
            break
        below |= {length_in(line)} - {None}
        if len(below) > 1 or "bad" in below:
            break
        if below:
            best = start, *below
        line_end = start - 2
    return best


class Reader:
    def __init__(self, stream, ended):
        self.stream, self.ended = stream, ended
        self.events = []

    def read(self):
        step = self._expect_block(0)
        while step:
            step = step[0](*step[1:])
        return self.events

    def _expect_block(self, start):
        """In step with the sender: a header block begins at START."""
        position, lengths = start, set()
        while True:
            newline = self.stream.find(b"\n", position)
            too_long = (newline < 0 and len(self.stream) - start >= MAX_HEADER) or newline - start >= MAX_HEADER
            if too_long:
                return self._too_long(start, position)
            if newline < 0:
                if self.ended and start < len(self.stream):
                    self.events.append(Fault(-32700, MALFORMED, MISMATCH))
                return None
            line, position = self.stream[position:newline + 1], newline + 1
            if line == b"\r\n" and lengths:
                return self._body, position, *lengths
            good = line.endswith(b"\r\n") and _LINE.fullmatch(line[:-2])
            lengths |= {length_in(line[:-2])} - {None} if good else {"bad"}
            if "bad" in lengths or len(lengths) > 1:
                self.events.append(Fault(-32700, MALFORMED))
                return self._search, start

    def _too_long(self, start, line_start):
        if not _COULD_BECOME_A_LINE.fullmatch(self.stream[line_start:start + MAX_HEADER]):
            self.events.append(Fault(-32700, MALFORMED))
            return self._search, start
        self.events.append(Fault(-32600, "header-too-large"))
        end = self.stream.find(b"\r\n\r\n", start)
        if end < 0:
            return None
        lines = [line for line in self.stream[start:end].split(b"\r\n") if _LINE.fullmatch(line)]
        length = announced_length(lines)
        return (self._skip, end + 4, length) if length is not None else (self._search, end + 4)

    def _search(self, low):
        block = find_block(self.stream, low)
        return (self._body, block[1], block[2]) if block else None

    def _body(self, start, length):
        if length > MAX_BODY:
            self.events.append(Fault(-32600, "oversize"))
            return self._skip, start, length
        end = start + length
        block = find_block(self.stream, start)
        if block and block[1] <= end:
            self.events.append(Fault(-32700, MISMATCH))
            return self._body, block[1], block[2]
        if len(self.stream) < end:
            if self.ended:
                self.events.append(Fault(-32700, MISMATCH))
            return None
        body = self.stream[start:end]
        if valid_json(body):
            self.events.append(Message(body))
            return self._expect_block, end
        straddles = block and block[0] < end
        self.events.append(Fault(-32700, "invalid-json", *([MISMATCH] if straddles else [])))
        return self._search, start

    def _skip(self, start, length):
        return self._search, start


def read(stream, ended=True):
    """The events of STREAM in order: what is answered, and with what."""
    return Reader(stream, ended).read()
