#!/usr/bin/env python3
"""Fails on C++ in the library's guide that is not compiled and run: each block must stand, line by line, in a file that
scripts/check_library builds. Only the indentation of the whole block may differ. Fails, too, on an example that is longer
than the guide says, or that includes more of the library than <duet/duet.h>.

usage: guide_code.py GUIDE
"""

import re
import sys
import textwrap
from pathlib import Path

sys.dont_write_bytecode = True
from project_files import ROOT  # noqa: E402

PAGE = "docs/library.md"
SOURCES = ["examples/*.cpp", "tests/library/guide/*.cpp"]
MOST_LINES = 50  # of an example
BLOCK = re.compile(r"^```(?:cpp|c\+\+|cc|C\+\+)\n(.*?)^```$", re.M | re.S)


def stands_in(block, lines):
    """Whether the lines of a block stand in a file one after the other, all of them indented by the same."""
    for start in range(len(lines) - len(block) + 1):
        indent = " " * (len(lines[start]) - len(lines[start].lstrip()))
        if all(lines[start + i] == (indent + line if line else "") for i, line in enumerate(block)):
            return True
    return False


def blocks_of(guide):
    """Each block of the guide: its line there, and whether it is compiled."""
    sources = [path.read_text(encoding="utf-8").splitlines() for glob in SOURCES for path in sorted(ROOT.glob(glob))]
    text = guide.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        block = textwrap.dedent(match.group(1)).splitlines()
        yield text.count("\n", 0, match.start()) + 1, any(stands_in(block, lines) for lines in sources)


def faults(guide=ROOT / PAGE):
    for line, is_compiled in blocks_of(guide):
        if not is_compiled:
            yield line, f"this code is not compiled: it is in none of {', '.join(SOURCES)}"
    for example in sorted((ROOT / "examples").glob("*.cpp")):
        lines = example.read_text(encoding="utf-8").splitlines()
        if len(lines) > MOST_LINES:
            yield 0, f"{example.name} has {len(lines)} lines"
        if [line for line in lines if line.startswith("#include <duet/")] != ["#include <duet/duet.h>"]:
            yield 0, f"{example.name} includes something else than <duet/duet.h>"


def main():
    guide = Path(sys.argv[1])
    found = list(faults(guide))
    for line, fault in found:
        print(f"{guide.name}:{line}: {fault}")
    count = len(list(blocks_of(guide)))
    print(f"{count} blocks of code, {len(found)} faults")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
