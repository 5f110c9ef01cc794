#!/usr/bin/env python3
"""Every test that docs/acceptance.md names exists."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    with open(os.path.join(ROOT, "docs", "acceptance.md"), encoding="utf-8") as file:
        named = re.findall(r"`((?:tests|src)/[^`:]+)(?:::([^`]+))?`", file.read())
    faults = [] if len(named) > 50 else ["the table is gone"]
    for path, test in named:
        full = os.path.join(ROOT, path)
        if not os.path.isfile(full):
            faults.append(f"{path} does not exist")
        elif test:
            with open(full, encoding="utf-8") as file:
                if test not in file.read():
                    faults.append(f"{path} has no {test}")
    print(f"{len(named)} tests named", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
