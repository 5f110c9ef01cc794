#!/usr/bin/env python3
"""The files that belong to the project: tracked ones and new ones that are not ignored.

As a program: prints the names that match any of the given patterns, one per line.
"""

import fnmatch
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = {".git", "build", "node_modules", "__pycache__", ".cache"}


def project_files(*patterns):
    """Paths relative to ROOT, sorted; a pattern is matched against the file's name."""
    names = _from_git()
    if names is None:
        names = _from_disk()
    return [
        name
        for name in sorted(set(names))
        if (ROOT / name).is_file() and (not patterns or any(fnmatch.fnmatch(name.name, p) for p in patterns))
    ]


def _from_git():
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        out = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [Path(name) for name in out.decode().split("\0") if name]


def _from_disk():
    names = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return [name for name in names if not NOT_OURS & set(name.parts)]


if __name__ == "__main__":
    for found in project_files(*sys.argv[1:]):
        print(found)
