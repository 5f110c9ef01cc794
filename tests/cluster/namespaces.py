"""Networks of their own for daemons: each lives in a namespace with one wire to the server's, and the wire can be cut.

    if namespaces.allowed():
        with namespaces.Network(1) as network:
            worker = fleet.worker("one", url=network.url(server, "work"), program=network.program(program))
            network.cut()       # nothing passes, and nobody is told
            network.deafen()    # what the server sends is lost, what it is sent arrives
            network.mend()

It needs root. The server is in the namespace of the test, a Server that listens on its end of each wire: `listening()`.
"""

import os
import shutil
import subprocess
import tempfile

import server


def _do(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stdout.decode(errors='replace')}")


def allowed():
    """Whether this machine lets us make namespaces and wires."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    try:
        with Network(255):
            return True
    except (AssertionError, OSError):
        return False


def listening():
    """A server, not started, that takes daemons of networks without a password."""
    return _Listening()


class _Listening(server.Server):
    def __init__(self):
        super().__init__(settings={"max_connections": "60"})
        self.port = server.free_port()

    def create(self):
        super().create()
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write("listen_addresses = '*'\n")
        with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="utf-8") as file:
            file.write("host all all 10.213.0.0/16 trust\n")


class Network:
    """One namespace and its wire: the server's end has the address 10.213.NUMBER.1, the daemon's .2."""

    def __init__(self, number):
        self.name = f"duet{os.getpid()}x{number}"
        self.here, self.there = f"d{os.getpid()}h{number}", f"d{os.getpid()}t{number}"
        self.near, self.far = f"10.213.{number}.1", f"10.213.{number}.2"
        self.folder = None

    def __enter__(self):
        try:
            _do("ip", "netns", "add", self.name)
            _do("ip", "link", "add", self.here, "type", "veth", "peer", "name", self.there)
            _do("ip", "link", "set", self.there, "netns", self.name)
            _do("ip", "addr", "add", f"{self.near}/24", "dev", self.here)
            _do("ip", "link", "set", self.here, "up")
            for words in (("addr", "add", f"{self.far}/24", "dev", self.there), ("link", "set", self.there, "up"), ("link", "set", "lo", "up")):
                _do("ip", "-n", self.name, *words)
        except BaseException:
            self.__exit__()
            raise
        self.folder = tempfile.TemporaryDirectory(prefix="duet-network-")
        return self

    def __exit__(self, *_):
        for words in (("link", "del", self.here), ("netns", "del", self.name)):
            subprocess.run(["ip", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        if self.folder:
            self.folder.cleanup()

    def program(self, program):
        """A command that is PROGRAM within the namespace."""
        path = os.path.join(self.folder.name, "duet-rpc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec nsenter --net=/run/netns/{self.name} -- {program} "$@"\n')
        os.chmod(path, 0o755)
        return path

    def url(self, behind, database):
        return f"postgresql://tester@{self.near}:{behind.port}/{database}?sslmode=disable"

    def cut(self):
        _do("ip", "link", "set", self.here, "down")

    def deafen(self):
        _do("ip", "route", "replace", "blackhole", f"{self.far}/32")

    def mend(self):
        subprocess.run(["ip", "route", "del", "blackhole", f"{self.far}/32"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60, check=False)
        _do("ip", "link", "set", self.here, "up")
