"""The rows about rates: the queue's functions by queue_rate, the floor by it, too, and the peers by peers.mjs."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/cluster"))

import server  # noqa: E402

PEERS = {"graphile": "graphile-worker@0.18.0", "pgboss": "pg-boss@12.27.0"}
NODE = "node@22"  # what these versions ask for
SCHEMAS = {"graphile": "graphile_worker", "pgboss": "pgboss"}
TABLES = {"floor": "floor.task", "duet": "duet.task, duet.request, duet.result, duet.event",
          "graphile": "graphile_worker._private_jobs", "pgboss": "pgboss.job"}
# row: load, tasks, tasks of the peers, batch, clients
LOADS = {
    "submit-1": ("submit", 1500, 1500, 1, 1),
    "submit-100": ("submit", 30000, 20000, 100, 1),
    "drain-1-1": ("drain", 2000, 1000, 1, 1),
    "drain-1-2": ("drain", 3000, 1500, 1, 2),
    "drain-1-4": ("drain", 4000, 2000, 1, 4),
    "drain-100-1": ("drain", 30000, 20000, 100, 1),
    "drain-100-4": ("drain", 30000, 20000, 100, 4),
    "latency": ("latency", 300, 300, 1, 1),
}
SLOW = {f"slow-{name}": LOADS[name] for name in ("submit-1", "drain-1-4", "latency")}


def compile_program(build):
    """queue_rate, compiled if it is older than its source: the project itself is built without libpq's headers."""
    program, source = build / "queue_rate", HERE / "queue_rate.cpp"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        build.mkdir(exist_ok=True)
        include = subprocess.run(["pg_config", "--includedir"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        subprocess.run(["g++", "-std=c++20", "-O2", f"-I{include}", str(source), "-o", str(program), "-lpq"], check=True)
    return program


def install_peers(folder):
    """graphile-worker, pg-boss and a node that they work with, from npm."""
    folder.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--prefix", str(folder), "--no-package-lock", "--no-audit", "--no-fund"]
    subprocess.run([*npm, NODE], check=True, stdout=sys.stderr)
    path = f"{folder}/node_modules/.bin:{os.environ['PATH']}"
    subprocess.run([*npm, *PEERS.values()], check=True, stdout=sys.stderr, env={**os.environ, "PATH": path})


def has_peers(folder):
    return all((folder / "node_modules" / name.rsplit("@", 1)[0]).exists() for name in (*PEERS.values(), NODE))


class Rates:
    """A server's queues, all systems side by side."""

    def __init__(self, one, program, peers, part):
        """`peers`: the folder of their packages, or None. `part`: of the usual number of tasks."""
        self.one, self.program, self.peers, self.part = one, program, peers, part
        self.systems = ["floor", "duet", *(SCHEMAS if peers else [])]

    def prepare(self, systems=None):
        for system in systems or self.systems:
            if system == "floor":
                self.one.script((HERE / "floor.sql").read_text(encoding="utf-8"))
            elif system == "duet":
                self.one.script("DROP SCHEMA IF EXISTS duet CASCADE")
                server.install(self.one, "postgres")
                self.one.sql("SELECT duet.set_v1('queue_capacity', '100000000')")
            else:
                self.one.script(f"DROP SCHEMA IF EXISTS {SCHEMAS[system]} CASCADE")
                self.peer(system, "setup")
        self.one.sql("CHECKPOINT")

    def peer(self, system, load, *numbers):
        host = urllib.parse.quote(self.one.folder, safe="")
        url = f"postgresql://tester@/postgres?host={host}&port={self.one.port}"
        return self.line_of([f"{self.peers}/node_modules/.bin/node", str(HERE / "peers.mjs"), str(self.peers), url, system, load,
                             *map(str, numbers)])

    def duet(self, load, *words, queue="duet"):
        return self.line_of([str(self.program), "--conninfo", self.one.conninfo(), "--queue", queue, "--load", load, *map(str, words)])

    @staticmethod
    def line_of(words):
        out = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=900).stdout
        return json.loads(out.decode().splitlines()[-1])

    def run(self, row, system):
        """The rate, or the median of the latency in ms."""
        load, count, count_of_peers, batch, clients = {**LOADS, **SLOW}[row]
        self.one.sql(f"TRUNCATE {TABLES[system]}")
        if system in SCHEMAS:
            result = self.peer(system, load, self.some(count_of_peers, batch), batch, clients)
        else:
            extra = ["--number"] if system == "duet" and load == "drain" else []
            result = self.duet(load, "--count", self.some(count, batch), "--batch", batch, "--clients", clients, *extra, queue=system)
        return result["p50_ms" if load == "latency" else "rate"]

    def some(self, count, batch):
        return max(int(count * self.part) // batch * batch, 10 * batch)

    def slow_commits(self, on):
        """Each commit takes 2 ms more, as on a network disk or with a standby."""
        for name, value in (("commit_delay", "2000"), ("commit_siblings", "0")):
            self.one.sql(f"ALTER SYSTEM SET {name} = {value}" if on else f"ALTER SYSTEM RESET {name}")
        self.one.sql("SELECT pg_reload_conf()")

    # -- ratios of the queue to itself --

    def million(self):
        """The rates with a million tasks in the queue over those with a thousand: one by one, and 100 at a time."""
        seen = []
        for rows in (1000, max(int(1_000_000 * self.part), 2000)):
            self.prepare(["duet"])
            self.duet("drain", "--count", rows, "--seconds", 0, "--batch", 1)
            self.one.sql("VACUUM ANALYZE")
            self.one.sql("CHECKPOINT")
            seen.append([self.duet(*words)["rate"] for words in (
                ("submit", "--count", self.some(1500, 1)), ("drain", "--count", 0, "--seconds", 3),
                ("submit", "--batch", 100, "--count", self.some(20000, 100)), ("drain", "--batch", 100, "--clients", 4, "--count", 0, "--seconds", 2))])
        few, many = seen
        return {"million-submit-1": many[0] / few[0], "million-drain-1": many[1] / few[1],
                "million-submit-100": many[2] / few[2], "million-drain-100": many[3] / few[3]}

    def writers(self):
        """Eight writers and slow commits: with wake-ups and numbers over without."""
        self.slow_commits(True)
        self.prepare(["duet"])
        words = ("submit", "--count", self.some(6000, 8), "--clients", 8)
        without = self.duet(*words)["rate"]
        with_both = self.duet(*words, "--wake", "--number")["rate"]
        self.slow_commits(False)
        return {"writers": with_both / without}

    def horizon(self):
        """Claims and ends after 24,000 starts under an old snapshot over those without one."""
        seen = []
        for held in (False, True):
            self.prepare(["duet"])
            with server.Session(self.one.conninfo()) as holder:
                if held:
                    holder.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    holder.ask("SELECT count(*) FROM duet.task")
                words = ("drain", "--batch", 4, "--clients", 2, "--behind", "--count")
                self.duet(*words, self.some(24000, 4))
                seen.append(self.duet(*words, self.some(4000, 4))["rate"])
        return {"horizon": seen[1] / seen[0]}


def is_possible():
    return shutil.which("pg_config") and shutil.which("g++") and server.binaries()
