#!/usr/bin/env python3
"""Feeds damaged streams to the daemon: intact messages are answered once and in order, each damage costs one error.

    corrupt.py --program build/release/bin/duet-rpc --streams 2000 --seed 1
    corrupt.py --program … --seed 1 --only 17        one stream again, shown

A stream is a row of frames, some of them damaged, and a last one that is whole. What must come back is worked out by
reader_model.py. That the model itself keeps the promise (whole messages answered, one error a damage) is checked
by what the stream was built from.
"""

import argparse
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

from daemon import PATIENCE, Daemon, Failure  # noqa: E402
from reader_model import Fault, Message, find_block, read  # noqa: E402

TEXTS = [
    "", "plain", "Content-Length: 12", "Content-Length: 12\r\n\r\n{}", "\r\n\r\nContent-Length: 3\r\n\r\n",
    "content-length:5", "}{][\",:", "é世😀", "\\\\\"", "a\nb", "Content-Length", "\u0000\u001f",
]
JUNK_PIECES = [
    b"junk", b"\r\n", b"\n", b"\r", b"{", b"}", b'"', b"\x00", b"\xff", b" ", b":", b"Content-Length",
    b"Content-Length:", b"Content-Length: 12", b"Content-Length: 12\n\n", b"Content-Length: x\r\n\r\n",
    b"Content-Length 5\r\n\r\n",
    b"Content-Length: 7\r\n{}", b"X-Header: 1\r\n", b"Content-Length: 4\r\nbroken\r\n\r\n", b"HTTP/1.1 200 OK\r\n",
    b'{"jsonrpc":"2.0","id":0,"method":"version"}', b"\r\n\r\n",
]
ERROR_TEXT = {-32700: "Parse error", -32600: "Invalid Request"}


class Whole:
    """An undamaged frame."""

    def __init__(self, bytes, body):
        self.bytes, self.body = bytes, body


class Damaged:
    """What became of a frame (or of the gap between two); BODY is what it had been."""

    def __init__(self, bytes, body, how):
        self.bytes, self.body, self.how = bytes, body, how


def make_body(chance, name):
    params = {f"p{i}": chance.choice(TEXTS) for i in range(chance.randrange(4))}
    if chance.random() < 0.05:
        params["long"] = chance.choice(TEXTS) * chance.choice([30, 400, 3000])
    message = {"jsonrpc": "2.0", "id": name, "method": "version", "params": params}
    items = list(message.items())
    chance.shuffle(items)
    return json.dumps(dict(items), ensure_ascii=chance.random() < 0.5,
                      indent=chance.choice([None, None, None, 1])).encode("utf-8")


def make_frame(chance, body):
    length = b"%s%s%d\r\n" % (chance.choice([b"Content-Length", b"content-length", b"CONTENT-LENGTH"]),
                              chance.choice([b": ", b":", b":\t "]), len(body))
    if chance.random() < 0.6:
        length = b"Content-Length: %d\r\n" % len(body)
    other = chance.choice([b"", b"", b"", b"X-Trace: 1\r\n",
                           b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"])
    return (length + other if chance.random() < 0.5 else other + length) + b"\r\n" + body


def plain_frame(body, length=None):
    return b"Content-Length: %s\r\n\r\n%s" % (str(len(body) if length is None else length).encode(), body)


def some_junk(chance):
    return b"".join(chance.choice(JUNK_PIECES) for _ in range(chance.randrange(1, 6)))


def random_bytes(chance):
    alphabet = b"\x00\r\n\" {}[]:,\\0123456789abcCX-\x7f\x80\xff"
    return bytes(chance.choice(alphabet) for _ in range(chance.randrange(1, 9)))


def drop_bytes(chance, body):
    frame = plain_frame(body)
    start = chance.randrange(len(frame))
    return frame[:start] + frame[start + chance.choice([1, 1, 1, 2, 5, 30, len(frame)]):]


def insert_bytes(chance, body):
    frame = plain_frame(body)
    start = chance.randrange(len(frame) + 1)
    return frame[:start] + random_bytes(chance) + frame[start:]


def double_bytes(chance, body):
    frame = plain_frame(body)
    start = chance.randrange(len(frame))
    end = start + chance.choice([1, 1, 2, 8, 40, len(frame)])
    return frame[:end] + frame[start:]


def change_byte(chance, body):
    frame = bytearray(plain_frame(body))
    frame[chance.randrange(len(frame))] = chance.randrange(256)
    return bytes(frame)


def damage_header(chance, body):
    """One byte of the header dropped, doubled or changed: the header is where most goes wrong."""
    frame = plain_frame(body)
    at = chance.randrange(frame.index(b"\r\n\r\n") + 4)
    middle = chance.choice([b"", frame[at:at + 1] * 2, bytes([chance.choice(b"\r\n :-x9\x00")])])
    return frame[:at] + middle + frame[at + 1:]


def wrong_length(chance, body):
    wrong = chance.choice([0, 1, len(body) - 1, len(body) + 1, len(body) + chance.randrange(1, 60),
                           len(body) * 2 + 100, chance.randrange(len(body)), 10485760,
                           10485761, 99999999, 10 ** 30, "-5", "", "1e3", "0x20"])
    return plain_frame(body, wrong)


def junk_before(chance, body):
    return some_junk(chance) + plain_frame(body)


def junk_instead(chance, body):
    return some_junk(chance)


def line_ends_lost(chance, body):
    frame = plain_frame(body)
    return chance.choice([frame.replace(b"\r\n\r\n", b"\r\n", 1), frame.replace(b"\r\n\r\n", b"\n\n", 1),
                          frame.replace(b"\r\n\r\n", b"", 1), frame.replace(b"\r\n\r\n", b"\r\n\r\n\r\n", 1)])


def part_lost(chance, body):
    frame = plain_frame(body)
    return chance.choice([frame[:frame.index(b"{")], body, frame[:chance.randrange(1, len(frame))],
                          frame[chance.randrange(1, len(frame)):]])


def header_too_large(chance, body):
    pad = b"X-Pad: " + b"p" * chance.choice([10, 100, 9000]) + b"\r\n"
    pad *= 9000 // len(pad) + 1
    length = b"Content-Length: %d\r\n" % len(body)
    return chance.choice([length + pad, pad + length]) + b"\r\n" + body


def endless_junk(chance, body):
    return chance.choice([b"{", b"\xff", b" ", b"x y "]) * chance.randrange(8192, 20000)


SMALL = [drop_bytes, insert_bytes, double_bytes, change_byte, damage_header, damage_header, wrong_length, wrong_length,
         junk_before, junk_instead, line_ends_lost, part_lost]
ALL = SMALL + [header_too_large, endless_junk]


def messages(events):
    return [json.loads(event.body) for event in events if isinstance(event, Message)]


def faults(events):
    return [event for event in events if isinstance(event, Fault)]


def make_damage(chance, body, ways):
    """A damaged frame that is not, by accident, a different message the model would have to understand."""
    sentinel = {"id": "a sentinel"}
    while True:
        how = chance.choice(ways)
        damaged = how(chance, body)
        events = read(damaged + plain_frame(json.dumps(sentinel).encode()))
        known = all(message in (json.loads(body), sentinel) for message in messages(events))
        # A text over 8192 bytes that happens to begin like a header line may rightly take the next frame with it.
        eats = how is not header_too_large and any(event.reasons == {"header-too-large"} for event in faults(events))
        if damaged != plain_frame(body) and known and not eats:
            return Damaged(damaged, body, how.__name__)


def make_parts(chance, number, ended, crowded):
    parts = []
    for i in range(chance.randrange(1, 7)):
        body = make_body(chance, f"{number}.{i}")
        after_damage = parts and isinstance(parts[-1], Damaged)
        if chance.random() < 0.5 and (crowded or not after_damage):
            parts.append(make_damage(chance, body, SMALL if crowded else ALL))
        else:
            parts.append(Whole(make_frame(chance, body), body))
    body = make_body(chance, f"{number}.last")
    parts.append(Whole(make_frame(chance, body), body))
    if ended and chance.random() < 0.6:
        body = make_body(chance, f"{number}.cut")
        frame = plain_frame(body)
        parts.append(Damaged(frame[:chance.randrange(1, len(frame))], body, "cut by the end of input"))
    return parts


def make_stream(seed, number):
    """The parts of stream NUMBER, whether it ends with the input, and whether damages stand side by side."""
    chance = random.Random(f"{seed}/{number}")
    ended, crowded = chance.random() < 0.04, chance.random() < 0.2
    while True:
        parts = make_parts(chance, number, ended, crowded)
        known = [json.loads(part.body) for part in parts]
        # Two damages side by side can make a new message; that is for the envelope's tests.
        if all(message in known for message in messages(read(b"".join(part.bytes for part in parts), ended))):
            return parts, ended, crowded


def check_the_model(parts, events, crowded):
    """The promise itself, from what the stream was built of: see the top of this file."""
    whole = [json.loads(part.body) for part in parts if isinstance(part, Whole)]
    answered = messages(events)
    if [message for message in answered if message in whole] != whole:
        raise Failure("the model does not answer the whole messages once and in order")
    found = len(faults(events))
    damages = [part for part in parts if isinstance(part, Damaged)]
    if found > len(damages) and not any(find_block(part.bytes + b"\r\n", 1) for part in damages):
        raise Failure("the model finds more faults than there are damages")
    if not crowded:
        harmless = sum(json.loads(part.body) in answered or joins_the_next_header(part) for part in damages)
        if found < len(damages) - harmless:
            raise Failure("the model overlooks a damage")


def joins_the_next_header(part):
    """What is left of the frame makes header lines with what follows: there is nothing to find fault with."""
    followers = [b"Content-Length: 4\r\n\r\nnull", b"X-Trace: 1\r\nContent-Length: 4\r\n\r\nnull"]
    return any(len(read(part.bytes + follower)) == 1 for follower in followers)


def expected_answer(event):
    if isinstance(event, Message):
        return f"the answer to {json.loads(event.body)['id']}"
    return repr(event)


def fits(event, answer):
    if set(answer) not in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}) or answer["jsonrpc"] != "2.0":
        return False
    if isinstance(event, Message):
        return answer["id"] == json.loads(event.body)["id"] and set(answer.get("result", {})) == {"version"}
    error = answer.get("error", {})
    return (answer["id"] is None and set(error) == {"code", "message", "data"} and error["code"] == event.code
            and error["message"] == ERROR_TEXT[event.code] and set(error["data"]) == {"reason"}
            and error["data"]["reason"] in event.reasons)


def send_in_portions(chance, daemon, data):
    """In one piece, in pieces, or in pieces each of which the daemon has taken before the next is sent."""
    way = chance.random()
    if way < 0.5 or len(data) > 100000:
        daemon.send_bytes(data)
        return
    longest = chance.choice([1, 3, 20, 100]) if len(data) < 600 else 500
    while data:
        size = chance.randrange(1, longest + 1)
        daemon.send_bytes(data[:size])
        data = data[size:]
        if way > 0.8:
            wait_until_taken(daemon)


def wait_until_taken(daemon):
    deadline = time.monotonic() + PATIENCE
    while daemon.unsent_in_pipe():
        if time.monotonic() > deadline:
            raise Failure("the daemon does not read")
        os.sched_yield()


def compare(daemon, events):
    for event in events:
        body = daemon.next_body()
        if body is None:
            raise Failure(f"nothing came; expected {expected_answer(event)}")
        if not fits(event, json.loads(body.decode("utf-8"))):
            raise Failure(f"expected {expected_answer(event)}, got {body[:300]!r}")


def show(number, parts, events):
    print(f"stream {number}:")
    for part in parts:
        print(f"  {getattr(part, 'how', 'whole')}: {part.bytes[:400]!r}{' ...' if len(part.bytes) > 400 else ''}")
    print("expected:", *(f"\n  {expected_answer(event)}" for event in events))


class Feeder:
    """Plays streams; those that do not end the input share a daemon."""

    def __init__(self, program, seed):
        self.argv, self.seed, self.shared = [program, "rpc"], seed, None
        self.faults = self.answers = 0

    def play(self, number, shown=False):
        parts, ended, crowded = make_stream(self.seed, number)
        stream = b"".join(part.bytes for part in parts)
        events = read(stream, ended)
        if shown:
            show(number, parts, events)
        try:
            check_the_model(parts, events, crowded)
            chance = random.Random(f"{self.seed}/{number}/portions")
            if ended:
                self._play_to_the_end(chance, stream, events)
            else:
                self._play_shared(chance, stream, events)
        except Failure as failure:
            show(number, parts, events)
            raise Failure(f"seed {self.seed}, stream {number}: {failure}") from None
        self.faults += len(faults(events))
        self.answers += len(messages(events))

    def _play_to_the_end(self, chance, stream, events):
        with Daemon(self.argv) as daemon:
            send_in_portions(chance, daemon, stream)
            daemon.close_input()
            compare(daemon, events)
            daemon.expect_exit(0)

    def _play_shared(self, chance, stream, events):
        if not self.shared:
            self.shared = Daemon(self.argv)
        send_in_portions(chance, self.shared, stream)
        compare(self.shared, events)

    def finish(self):
        if self.shared:
            self.shared.close_input()
            self.shared.expect_exit(0)
            self.shared.__exit__(None, None, None)


def main():
    parser = argparse.ArgumentParser(description="Feeds damaged streams to `duet-rpc rpc`.")
    parser.add_argument("--program", required=True)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="play this stream alone and show it")
    options = parser.parse_args()
    feeder = Feeder(options.program, options.seed)
    try:
        for number in range(options.streams) if options.only is None else [options.only]:
            feeder.play(number, shown=options.only is not None)
        feeder.finish()
    except Failure as failure:
        print(f"FAIL {failure}")
        return 1
    print(f"{options.streams} streams, seed {options.seed}: "
          f"{feeder.answers} messages answered, {feeder.faults} faults told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
