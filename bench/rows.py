"""What the benchmarks share: rows that compare two programs, in turns, and how they are printed."""

import dataclasses
import shutil
import statistics
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Row:
    name: str  # for --rows
    text: str
    subject: str
    reference: str
    options: tuple  # of load
    metric: str  # of load
    target: str = ""  # "<= 1.15"
    aim: str = ""
    optional: bool = False  # only when asked for by name


def may_be_realtime():
    return shutil.which("chrt") and subprocess.run(["chrt", "-r", "20", "true"], stderr=subprocess.DEVNULL,
                                                   check=False).returncode == 0


def paired_rounds(rows, rounds, load):
    """For each row the values of its subject and of its reference, a pair for every round. load(name, options) runs one."""
    values = {row: [] for row in rows}
    scenarios = {}
    for row in rows:
        scenarios.setdefault(row.options, []).append(row)
    for number in range(rounds):
        for options, members in scenarios.items():
            names = list(dict.fromkeys(name for row in members for name in (row.reference, row.subject)))
            if number % 2:
                names.reverse()
            progress(f"round {number + 1} of {rounds}: {' '.join(options)}")
            results = {name: load(name, options) for name in names}
            for row in members:
                values[row].append((results[row.subject][row.metric], results[row.reference][row.metric]))
    progress("")
    return values


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def keeps(value, target):
    relation, bound = target.split()
    bound = float(bound)
    return {"<=": value <= bound, ">=": value >= bound, "<": value < bound}[relation]


def print_line(text, who, measured, target, aim="", verdict="", detail=""):
    print(f"{text:<35}{who:<29}{measured:>9}  {target:<9}{aim:<6}{verdict:<8}{detail}".rstrip())


def judged(text, who, value, shown, target, aim="", detail=""):
    verdict = "" if not target else "ok" if keeps(value, target) else "MISSED"
    print_line(text, who, shown, target, aim, verdict, detail)


def print_speed(values):
    print_line("speed", "ratio of", "measured", "target", "aim", "", "half of the rounds; medians of both sides")
    for row, pairs in values.items():
        ratios = sorted(subject / reference for subject, reference in pairs)
        quarter = len(ratios) // 4
        sides = [statistics.median(side) for side in zip(*pairs)]
        middle = statistics.median(ratios)
        judged(row.text, f"{row.subject} / {row.reference}", middle, f"{middle:.3f}", row.target, row.aim,
               f"{ratios[quarter]:.2f}–{ratios[-1 - quarter]:.2f}; {sides[0]:,.4g} / {sides[1]:,.4g} {row.metric}")
