#!/usr/bin/env python3
"""Prints what a request costs any server that answers {} to `ping`: system calls and instructions.

Usage: count.py SERVER [ARGUMENT…]    an argument @ is where the socket's path goes; without one it is on stdio
"""

import sys

import counting


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    for count in (counting.system_calls, counting.instructions):
        print(f"{count.__name__}: {counting.per_request(count, command, b'ping', b'{}'):,.3f}")


if __name__ == "__main__":
    main()
