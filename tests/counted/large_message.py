#!/usr/bin/env python3
"""A large message is looked at once, in however many pieces it arrives: counted in instructions.

A reader that begins again with every piece would need a multiple, and four times as much for twice the size.
Usage: large_message.py --bare-server PATH
"""

import unittest

import counting

BARE_SERVER = counting.take_option("bare-server")
SIZE = 9_000_000
PIECE = 64 * 1024
DOORS = {"socket": [BARE_SERVER, "unix", "@"], "websocket": [BARE_SERVER, "websocket", "@"],
         "stdio": [BARE_SERVER, "stdio"]}


class LargeMessage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nothing = {door: counting.instructions(command, lambda server: server.ask(b"ping", b"{}"))
                       for door, command in DOORS.items()}

    def cost(self, door, size, piece=None):
        cost = counting.instructions(DOORS[door], lambda server: server.echo(size, piece)) - self.nothing[door]
        print(f"{door}, {size:,} bytes in {f'pieces of {piece:,}' if piece else 'one go'}: "
              f"{cost:,} instructions, {cost / size:.3f} a byte")
        return cost

    def test_pieces_of_64_kb_cost_no_more_than_one_go(self):
        for door in DOORS:
            with self.subTest(door):
                self.assertLessEqual(self.cost(door, SIZE, PIECE), 1.3 * self.cost(door, SIZE))

    def test_small_pieces_cost_little_more_than_large_ones(self):
        for door in DOORS:
            with self.subTest(door):
                self.assertLessEqual(self.cost(door, SIZE, PIECE // 8), 1.5 * self.cost(door, SIZE, PIECE))

    def test_twice_the_size_costs_twice_as_much(self):
        for door in DOORS:
            with self.subTest(door):
                self.assertLessEqual(self.cost(door, SIZE, PIECE), 2.2 * self.cost(door, SIZE // 2, PIECE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
