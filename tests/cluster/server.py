"""Real PostgreSQL servers for tests: started in temporary folders by an ordinary user, stopped, killed, replicated.

    with server.Server() as one:
        one.make_database("work")
        server.install(one, "work")          # the queue's schema
        one.sql("SELECT 1", database="work")

They are spoken to through `psql`. As root, servers run as the user `postgres` or `nobody`: PostgreSQL refuses to be root.
Everything is on Unix sockets, unless TLS is asked for: then also on loopback. A test calls `skip_unless_installed()` first.
"""

import glob
import os
import pathlib
import pwd
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 60.0
SKIPPED = 77  # what ctest is told
SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src/task/postgres/schema"
FIELD, RECORD, NULL = "\x1f", "\x1e", "\x02null\x02"


class SqlError(Exception):
    """What the server said, with its SQLSTATE."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


def binaries():
    """The folder of initdb and its like, of the newest version there is; None: not installed."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.path.exists(f"{path}/initdb")]
    if found:
        return max(found, key=lambda path: float(path.split("/")[-2]))
    initdb = shutil.which("initdb")
    return os.path.dirname(os.path.realpath(initdb)) if initdb and shutil.which("pg_ctl") else None


def skip_unless_installed():
    if binaries() and shutil.which("psql"):
        return
    print("SKIPPED: PostgreSQL is not installed (Debian: postgresql), so NOTHING of the cluster was tested here",
          file=sys.stderr, flush=True)
    sys.exit(SKIPPED)


def eventually(what, condition, patience=PATIENCE):
    """Waits for a condition, returns what it is."""
    end = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.02)


def _account():
    """Who the servers run as; None: who we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("root needs a user postgres or nobody")


def _run(words, **options):
    """A command as the servers' user; its output, or an AssertionError with it."""
    account = _account()
    if account:
        words = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                          timeout=4 * PATIENCE, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stdout.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def temporary_folder():
    """A short path that the servers' user owns."""
    folder = tempfile.mkdtemp(prefix="pg-")
    account = _account()
    if account:
        os.chown(folder, account.pw_uid, account.pw_gid)
    os.chmod(folder, 0o755)
    return folder


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """One server. A standby is one, too: `primary.standby()`."""

    def __init__(self, fsync=False, settings=(), tls=None):
        """`tls`: a Certificates, which also opens a port on loopback that refuses plain text."""
        self.folder = temporary_folder()
        self.data = os.path.join(self.folder, "data")
        self.tls = tls
        self.port = free_port() if tls else 5432
        self.settings = dict(settings)
        self.settings.setdefault("fsync", "on" if fsync else "off")
        self.environment = None  # of its processes; None: ours
        self.standbys = []

    def __enter__(self):
        self.create()
        self.start()
        return self

    def __exit__(self, *_):
        for standby in self.standbys:
            standby.__exit__()
        if self.pid():
            try:
                self.stop("immediate")  # not killed: it would leave its shared memory behind
            except AssertionError:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- its life --

    def create(self):
        _run([f"{binaries()}/initdb", "-D", self.data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C", "--no-sync"])
        self._configure(**{"shared_buffers": "64MB", "max_connections": "60", "max_wal_size": "2GB", "wal_level": "replica",
                           "log_line_prefix": "'%m %p %q%u@%d '", **self.settings})
        if self.tls:
            self.tls.give_to(self)

    def _configure(self, **settings):
        settings.update(unix_socket_directories=f"'{self.folder}'", port=str(self.port),
                        listen_addresses="'127.0.0.1'" if self.tls else "''")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def set(self, **settings):
        """ALTER SYSTEM and reload."""
        for name, value in settings.items():
            self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")

    def start(self):
        """Also after a kill, when processes of the last one are still going."""
        def try_it():
            try:
                _run([f"{binaries()}/pg_ctl", "-D", self.data, "-l", f"{self.folder}/log", "-w", "-t", "60", "start"], env=self.environment)
                return True
            except AssertionError as problem:
                self.problem = f"{problem}\n{self.log()[-2000:]}"
                return False
        try:
            eventually("the server starts", try_it)
        except AssertionError:
            raise AssertionError(self.problem) from None
        return self

    def stop(self, mode="fast"):
        _run([f"{binaries()}/pg_ctl", "-D", self.data, "-m", mode, "-w", "stop"])

    def pid(self):
        """Of the running server; None: it is not running."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                pid = int(file.readline())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    def kill(self):
        """SIGKILL, as a power cut would; then waits until it is gone."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        eventually("the server is gone", lambda: not os.path.exists(f"/proc/{pid}"))

    def log(self):
        try:
            with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    # -- a second one --

    def standby(self, synchronous=False):
        """A streaming standby that is in step, started."""
        other = Server()
        name = f"standby{len(self.standbys)}"
        _run([f"{binaries()}/pg_basebackup", "-D", other.data, "-R", "-c", "fast", "-h", self.folder, "-p", str(self.port),
              "-U", "tester"])
        other._configure(primary_conninfo=f"'host={self.folder} port={self.port} user=tester application_name={name}'", hot_standby="on")
        auto = os.path.join(other.data, "postgresql.auto.conf")
        with open(auto, encoding="utf-8") as file:  # what -R wrote there would win
            lines = [line for line in file if not line.startswith(("primary_conninfo", "synchronous_standby_names"))]
        with open(auto, "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.standbys.append(other)
        other.start()
        if synchronous:
            self.set(synchronous_standby_names=name)
        wanted = ("sync", "quorum") if synchronous else ("async", "sync", "quorum")
        eventually("the standby is in step", lambda: self.sql(
            f"SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming'") in [[[w]] for w in wanted])
        return other

    def promote(self):
        _run([f"{binaries()}/pg_ctl", "-D", self.data, "-w", "promote"])
        eventually("it takes writes", lambda: self.sql("SELECT NOT pg_is_in_recovery()") == [["t"]])

    # -- talking to it --

    def conninfo(self, database="postgres", user="tester"):
        return f"host={self.folder} port={self.port} dbname={database} user={user}"

    def url(self, database="postgres", user="tester"):
        """As a `store` setting has it."""
        host = self.folder.replace("/", "%2F")
        return f"postgresql://{user}@{host}:{self.port}/{database}"

    def tls_url(self, database="postgres", user="tester", host="localhost"):
        return f"postgresql://{user}@{host}:{self.port}/{database}"

    def make_database(self, name):
        self.sql(f"CREATE DATABASE {name}")
        return name

    def sql(self, text, database="postgres", user="tester"):
        """Rows as lists of texts, None for NULL. One psql each: a Session is quicker for many."""
        with Session(self.conninfo(database, user)) as session:
            return session.ask(text)

    def script(self, text, database="postgres", user="tester"):
        """Many statements in one transaction."""
        done = subprocess.run(["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", self.conninfo(database, user)],
                              input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE, check=False,
                              env={**os.environ, "PGOPTIONS": "-c client_min_messages=warning"})
        if done.returncode != 0:
            raise AssertionError(done.stdout.decode(errors="replace"))


class Session:
    """One connection, by a psql that stays. `send` and `answer` apart let several be under way at once."""

    def __init__(self, conninfo, options=""):
        self.process = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-F", FIELD, "-R", RECORD, "-P", f"null={NULL}", "-v", "VERBOSITY=verbose", conninfo],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", bufsize=1,
            env={**os.environ, "PGOPTIONS": f"-c client_min_messages=warning {options}"})
        self.lines = queue.Queue()
        self.sent = 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def send(self, text):
        self.sent += 1
        try:
            self.process.stdin.write(f"{text.rstrip().rstrip(';')}\n;\n\\echo \x03{self.sent}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answer(self, patience=PATIENCE):
        """Of what was sent last. Raises SqlError."""
        out, end = [], time.monotonic() + patience
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no answer in time") from None
            if line is None:
                raise SqlError("08006", "".join(out))
            if line.rstrip("\n").endswith(f"\x03{self.sent}"):
                out.append(line[:line.index("\x03")])
                break
            out.append(line)
        return self._rows("".join(out))

    @staticmethod
    def _rows(text):
        at = text.find("ERROR:  ")
        if at >= 0:
            code, _, message = text[at + 8:].partition(": ")
            raise SqlError(code, message.split("\nLOCATION:")[0].split("\nCONTEXT:")[0].strip())
        text = text.rstrip("\n")
        if not text:
            return []
        return [[None if field == NULL else field for field in row.split(FIELD)] for row in text.split(RECORD)]

    def ask(self, text, patience=PATIENCE):
        self.send(text)
        return self.answer(patience)

    def one(self, text):
        """The only value."""
        rows = self.ask(text)
        assert len(rows) == 1 and len(rows[0]) == 1, rows
        return rows[0][0]


def schema_text(schema="duet"):
    """All SQL files of the queue, in order, for this schema."""
    files = sorted(SCHEMA.glob("*.sql"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files).replace("@schema@", schema)


def install(server, database, schema="duet", project="site", user="tester"):
    server.script(schema_text(schema) + f"\nSELECT {schema}.found_v1('{project}') AS found \\gset\n", database, user)


class Certificates:
    """An authority and what it has signed, made by openssl in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = self._path("ca.crt")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                      "-subj", "/CN=test authority", "-keyout", self._path("ca.key"), "-out", self.authority)
        self.sign("server", "localhost")

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _openssl(self, *words):
        done = subprocess.run(["openssl", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout.decode()

    def sign(self, file, host, days=2):
        """A key and a certificate for HOST. Negative days: it has expired."""
        request, extension = self._path(f"{file}.csr"), self._path(f"{file}.ext")
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={host}",
                      "-keyout", self._path(f"{file}.key"), "-out", request)
        with open(extension, "w", encoding="utf-8") as out:
            out.write(f"subjectAltName=DNS:{host}\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.authority, "-CAkey", self._path("ca.key"), "-CAcreateserial",
                      "-days", str(days), "-extfile", extension, "-out", self._path(f"{file}.crt"))
        return self._path(f"{file}.crt"), self._path(f"{file}.key")

    def give_to(self, server, file="server"):
        """The server uses this certificate from its next start or reload on."""
        account = _account()
        for kind in ("crt", "key"):
            target = os.path.join(server.data, f"server.{kind}")
            shutil.copy(self._path(f"{file}.{kind}"), target)
            os.chmod(target, 0o600)
            if account:
                os.chown(target, account.pw_uid, account.pw_gid)
        conf = os.path.join(server.data, "pg_hba.conf")
        with open(conf, "w", encoding="utf-8") as out:
            out.write("local all all trust\nlocal replication all trust\nhostssl all all 127.0.0.1/32 trust\n")
        server._configure(ssl="on")


class Bouncer:
    """PgBouncer in transaction mode before a server, for its login roles of now. `Bouncer.installed()` first."""

    @staticmethod
    def installed():
        return shutil.which("pgbouncer") or (os.path.exists("/usr/sbin/pgbouncer") and "/usr/sbin/pgbouncer")

    def __init__(self, server):
        self.server = server
        self.folder = temporary_folder()
        self.port = 6432

    def __enter__(self):
        with open(os.path.join(self.folder, "users"), "w", encoding="utf-8") as out:
            out.writelines(f'"{row[0]}" ""\n' for row in self.server.sql("SELECT rolname FROM pg_roles WHERE rolcanlogin"))
        account = _account()
        words = [self.installed(), self._configure()]
        if account:
            words = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *words]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        eventually("pgbouncer listens", lambda: os.path.exists(f"{self.folder}/.s.PGSQL.{self.port}") or self.process.poll() is not None)
        assert self.process.poll() is None, open(os.path.join(self.folder, "log"), encoding="utf-8").read()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _configure(self):
        settings = os.path.join(self.folder, "pgbouncer.ini")
        with open(settings, "w", encoding="utf-8") as out:
            out.write(f"[databases]\n* = host={self.server.folder} port={self.server.port}\n[pgbouncer]\nlisten_addr =\n"
                      f"listen_port = {self.port}\nunix_socket_dir = {self.folder}\nauth_type = trust\nauth_file = {self.folder}/users\n"
                      "pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 20\nadmin_users = tester\n"
                      "ignore_startup_parameters = extra_float_digits,options\n")
        return settings

    def command(self, text):
        subprocess.run(["psql", "-XAtq", "-c", text, self.conninfo("pgbouncer")], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def lead_to(self, server, take_over):
        """From now on to another one, as for planned work: connections of clients stay, and what they ask waits."""
        self.command("PAUSE")
        take_over()
        self.server = server
        self._configure()
        self.command("RELOAD")
        self.command("RESUME")

    def conninfo(self, database="postgres", user="tester"):
        return f"host={self.folder} port={self.port} dbname={database} user={user}"

    def url(self, database="postgres", user="tester"):
        return f"postgresql://{user}@{self.folder.replace('/', '%2F')}:{self.port}/{database}"
