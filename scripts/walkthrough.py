#!/usr/bin/env python3
"""Holds docs/walkthrough.md to the code it walks through.

- Each name that the page mentions stands in the file it is said to be in: the last one named before it in the same
  paragraph, list item or row, or the header or source beside that one. `Class::function` is defined there.
- A walk is a section whose numbered steps begin with a file in bold and a function of it. It names at most ten files.
- No file is a step twice, and each step's function is called in a file of an earlier step: the walk never goes back up.

usage: walkthrough.py [PAGE]
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from project_files import ROOT  # noqa: E402

PAGE = "docs/walkthrough.md"
WALKS = ["stdio", "socket", "hover"]  # a word of the heading of each
MOST_FILES = 10

# The functions of these are called through the method table: by `handler`, not by their names.
HANDLERS = "src/app/methods/"

STEP = re.compile(r"^\d+\. \*\*`(src/[^`]+)`\*\*, `([\w:]+)`")
BLOCK_START = re.compile(r"^(\d+\. |- |\| |#)")
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")


def blocks(text):
    """(line, text) of each paragraph, list item, row and heading."""
    block, start = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if block and (not line.strip() or BLOCK_START.match(line)):
            yield start, " ".join(block)
            block = []
        if line.strip():
            start = start if block else number
            block.append(line.strip())


def both_files(path):
    """A source with its header, or a header with its source."""
    return [each for each in map((ROOT / path).with_suffix, (".h", ".cpp")) if each.is_file()]


def code_of(path):
    """Without comments and includes: what is only spoken of is not there."""
    text = "\n".join(each.read_text(encoding="utf-8") for each in both_files(path))
    return re.sub(r"//.*|^\s*#\s*include.*", "", text, flags=re.M)


def defines(path, name):
    owner, _, function = name.rpartition("::")
    code = code_of(path)
    if not owner:
        return re.search(rf"\b{name}\b", code) is not None
    owner = owner.rpartition("::")[2]
    in_class = re.search(rf"\b(?:class|struct)\b[^;{{()]*\b{owner}\b[^;{{]*\{{", code)
    return bool(re.search(rf"\b{owner}::{function}\s*\(", code) or (in_class and re.search(rf"\b{function}\s*\(", code)))


def calls(path, name):
    """Whether it is called there by its name, which a declaration is not."""
    code = re.sub(r"\b[a-z_]+::", "", code_of(path))  # namespaces
    return re.search(rf"(?:\.|->|=\s*|\breturn\s+|[({{;]\s*){name.rpartition('::')[2]}\(", code) is not None


def strange_names(line, block):
    """Names that are not where the block says they are."""
    spans = CODE.findall(block)
    paths = [span for span in spans if span.startswith("src/")]
    path = paths[0] if paths else None
    for span in spans:
        if span.startswith("src/"):
            path = span
        elif NAME.fullmatch(span) and path is None:
            yield line, f"`{span}` is said to be in no file"
        elif NAME.fullmatch(span) and both_files(path) and not defines(path, span):
            yield line, f"`{path}` has no {span}"


def faults_of_walk(steps):
    """`steps` are (line, text) of the numbered items of one section."""
    passed = []
    for line, step in steps:
        match = STEP.match(step)
        if not match:
            yield line, "a step begins with its number, its file in bold, and a function there"
            continue
        path, function = match.groups()
        called = "handler" if path.startswith(HANDLERS) else function
        if path in passed:
            yield line, f"the walk comes back to `{path}`"
        if passed and not any(calls(each, called) for each in passed):
            yield line, f"no earlier step calls {called}"
        passed.append(path)
    named = {span for _, step in steps for span in CODE.findall(step) if span.startswith("src/")}
    if len(named) > MOST_FILES:
        yield steps[0][0], f"{len(named)} files in one walk; {MOST_FILES} are the most"


def faults(page=ROOT / PAGE):
    heading, walks = "", {}
    for line, block in blocks(page.read_text(encoding="utf-8")):
        if block.startswith("## "):
            heading = block
        elif re.match(r"\d+\. ", block):
            walks.setdefault(heading, []).append((line, block))
        yield from strange_names(line, block)
    for steps in walks.values():
        yield from faults_of_walk(steps)
    for word in WALKS:
        if not any(word in heading for heading in walks):
            yield 1, f"there is no walk for {word}"


def main():
    found = list(faults(*map(Path, sys.argv[1:])))
    for line, fault in found:
        print(f"{PAGE}:{line}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
