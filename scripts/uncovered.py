#!/usr/bin/env python3
"""Lists the lines that no test reaches, each with the reason that docs/coverage.md gives; fails on one without.

usage: uncovered.py GCOVR_JSON
"""

import json
import re
import sys

sys.dont_write_bytecode = True
from project_files import ROOT  # noqa: E402

PAGE = "docs/coverage.md"
ROW = re.compile(r"^\| `(src/[^`]+)` \| `` ?(.+?) ?`` \| (.+?) \|$", re.M)


def reasons():
    """(file, text of the line) -> why no test reaches it."""
    return {(file, text): why for file, text, why in ROW.findall((ROOT / PAGE).read_text(encoding="utf-8"))}


def stale_rows():
    """Rows about a line that is not in its file any more."""
    for file, text in reasons():
        path = ROOT / file
        if not path.is_file() or text not in [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]:
            yield f"{file} has no line `{text}`"


def unreached(report):
    for file in report["files"]:
        source = (ROOT / file["file"]).read_text(encoding="utf-8").splitlines()
        for line in file["lines"]:
            if line["count"] == 0 and not line.get("gcovr/noncode"):
                yield file["file"], line["line_number"], source[line["line_number"] - 1].strip()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    known, missing = reasons(), 0
    for name, number, text in unreached(report):
        why = known.get((name, text))
        print(f"{name}:{number}: {text}\n    {why or 'NO REASON in ' + PAGE}")
        missing += why is None
    for row in stale_rows():
        print(f"{PAGE}: {row}")
        missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
