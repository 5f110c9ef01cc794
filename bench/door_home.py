"""A project whose daemon has its doors open, for the benchmarks of them: a token, certificates, ports of its own."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def free_port():
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Certificates:
    """A CA, a server and a client, made by openssl."""

    def __init__(self, folder, key="ec:prime256v1"):
        self.folder = folder
        self.key = key
        self.make("ca", ["-x509", "-addext", "basicConstraints=critical,CA:TRUE"])
        self.make("server", self.signed("serverAuth", "subjectAltName=DNS:localhost,IP:127.0.0.1"))
        self.make("client", self.signed("clientAuth", "subjectAltName=URI:urn:duet-rpc:role:own"))
        with open(self.path("identity.pem"), "w", encoding="ascii") as identity:
            for name in ("client.key", "client.pem", "ca.pem"):
                identity.write(Path(self.path(name)).read_text(encoding="ascii"))
        for name in ("server.key", "client.key", "identity.pem"):
            os.chmod(self.path(name), 0o600)

    def path(self, name):
        return os.path.join(self.folder, name)

    def signed(self, usage, names):
        return ["-x509", "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"),
                "-addext", f"extendedKeyUsage={usage}", "-addext", names, "-addext", "basicConstraints=CA:FALSE"]

    def make(self, name, extra):
        kind, value = self.key.split(":")
        new = ["-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{value}"] if kind == "ec" else ["-newkey", self.key]
        subprocess.run(["openssl", "req", *new, "-nodes", "-days", "30", "-subj", f"/CN={name}", "-keyout",
                        self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"), *extra], check=True,
                       capture_output=True)


class Home:
    """A project whose daemon has a token, and certificates for it."""

    def __init__(self, program, tls=False, key="ec:prime256v1"):
        self.program = program
        self.folder = tempfile.TemporaryDirectory(prefix="duet-bench-")
        self.root = self.folder.name
        self.port, self.tls_port = free_port(), free_port()
        self.socket = os.path.join(self.root, "s")
        os.mkdir(os.path.join(self.root, ".git"))
        settings = f'[http]\nlisten = "127.0.0.1:{self.port}"\nmax_connections = 20000\n'
        if tls:
            os.mkdir(os.path.join(self.root, "tls"))
            self.certificates = Certificates(os.path.join(self.root, "tls"), key)
            settings += f'[tls]\nlisten = "127.0.0.1:{self.tls_port}"\nmax_connections = 20000\n'
            settings += "".join(f'{name} = "{self.certificates.path(file)}"\n' for name, file in
                                (("certificate", "server.pem"), ("key", "server.key"), ("clients_ca", "ca.pem")))
        Path(self.root, "config.toml").write_text(settings, encoding="utf-8")
        self.environment = {**os.environ, "HOME": self.root, "XDG_STATE_HOME": self.root,
                            "DUET_RPC_CONFIG": os.path.join(self.root, "config.toml")}
        self.token = self.make_token()

    def run(self, *words):
        return self.run_anywhere(*words, "--project", self.root)

    def run_anywhere(self, *words):
        done = subprocess.run([self.program, *words], env=self.environment, cwd=self.root,
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def make_token(self):
        self.run("daemon", "start")
        token = self.run("token", "new", "bench")
        self.run("daemon", "stop")
        return token

    def command(self):
        return [self.program, "daemon", "start", "--foreground", "--project", self.root, "--socket", self.socket,
                "--log-level", "error"]

    @contextlib.contextmanager
    def running(self, before=()):
        """BEFORE is what the daemon is started by, such as chrt."""
        with subprocess.Popen([*before, *self.command()], env=self.environment, cwd=self.root, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 30
            while True:
                with socket.socket(socket.AF_UNIX) as client:
                    if client.connect_ex(self.socket) == 0:
                        break
                if time.monotonic() > deadline:
                    sys.exit("the daemon does not listen")
                time.sleep(0.01)
            try:
                yield process
            finally:
                process.kill()
