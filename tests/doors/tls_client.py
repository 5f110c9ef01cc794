"""Certificates by the openssl command, and clients of the TLS door by Python's ssl. They share no code with the program."""

import json
import os
import socket
import ssl
import subprocess
import time

from daemon import PATIENCE, Failure, request
from door_client import HttpConnection, WebSocket
from project import ProjectTestCase

CONFIG = """[ca]
default_ca = own
[own]
database = {place}/index
new_certs_dir = {place}
serial = {place}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = optional
organizationName = optional
[req]
distinguished_name = name
[name]
"""


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=10 * PATIENCE)  # a large key takes its time
    if done.returncode != 0:
        raise Failure(f"openssl {' '.join(words)}: {done.stderr}")
    return done.stdout


def date(seconds):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


class Identity:
    """Files of a certificate and its key."""

    def __init__(self, certificate, key):
        self.certificate, self.key = certificate, key

    def fingerprint(self):
        text = openssl("x509", "-in", self.certificate, "-noout", "-fingerprint", "-sha256")
        return text.split("=", 1)[1].strip()


class Authority(Identity):
    def __init__(self, place, name="authority", parent=None, **life):
        self.place = os.path.join(place, name)
        os.makedirs(self.place)
        with open(os.path.join(self.place, "index"), "w", encoding="ascii"):
            pass
        self.config = os.path.join(self.place, "config")
        with open(self.config, "w", encoding="ascii") as file:
            file.write(CONFIG.format(place=self.place))
        made = (parent or self).issue(name, usage="", extra="basicConstraints=critical,CA:TRUE\n", signed_by=parent,
                                       **{"days": 3650, **life})
        super().__init__(made.certificate, made.key)

    def issue(self, name, usage="clientAuth", names="", role=None, start=-3600, days=365, key=("ec", "P-256"), extra="",
              signed_by=..., end=None):
        place = os.path.join(self.place, f"{len(os.listdir(self.place))}")
        key_file, wish, made = place + ".key", place + ".csr", place + ".crt"
        kind = ["-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{key[1]}"] if key[0] == "ec" else ["-newkey", f"rsa:{key[1]}"]
        subject = f"/CN={name}" if name else "/O=nobody"
        openssl("req", "-new", *kind, "-nodes", "-keyout", key_file, "-out", wish, "-subj", subject, "-config", self.config)
        all_names = ",".join(filter(None, [names, role and f"URI:urn:duet-rpc:role:{role}"]))
        with open(place + ".ext", "w", encoding="ascii") as file:
            file.write((extra or "basicConstraints=CA:FALSE\n") + (f"extendedKeyUsage={usage}\n" if usage else "")
                       + (f"subjectAltName={all_names}\n" if all_names else ""))
        end = days * 86400 if end is None else end
        signing = ["-selfsign", "-keyfile", key_file] if signed_by is None else ["-keyfile", self.key, "-cert", self.certificate]
        openssl("ca", "-batch", "-notext", "-config", self.config, *signing, "-rand_serial", "-in", wish, "-out", made,
                "-extfile", place + ".ext", "-startdate", date(start), "-enddate", date(end))
        return Identity(made, key_file)


class TlsConnection(HttpConnection):
    """A TLS connection: lines or HTTP inside it."""

    def __init__(self, address, identity, authority, protocol=None, name="localhost", more_certificates=()):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if identity:
            context.load_cert_chain(chain_of(identity, more_certificates), identity.key)
        if protocol:
            context.set_alpn_protocols([protocol] if isinstance(protocol, str) else protocol)
        host, port = address.rsplit(":", 1)
        self.host = f"{name}:{port}"
        self.data = bytearray()
        self.plain = socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE)
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket = context.wrap_socket(self.plain, server_hostname=name, suppress_ragged_eofs=False)
        except BaseException:
            self.plain.close()
            raise

    def more(self, patience=PATIENCE):
        self.socket.settimeout(patience)
        try:
            piece = self.socket.recv(1 << 16)
        except TimeoutError:
            raise Failure(f"nothing within {patience} s, after {bytes(self.data[-200:])!r}") from None
        self.data += piece
        return bool(piece)

    def next_message(self, patience=PATIENCE):
        return json.loads(self.read_until(b"\n", patience))

    def call(self, method, id=1, **members):
        self.send(request(method, id, **members).encode() + b"\n")
        while True:
            answer = self.next_message()
            if "method" not in answer:
                return answer


class HalfClosing:
    """Lines inside TLS, and the end of one direction, which Python's sockets cannot say by themselves."""

    def __init__(self, address, identity, authority):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority.certificate)
        context.load_cert_chain(identity.certificate, identity.key)
        host, port = address.rsplit(":", 1)
        self.plain = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.come, self.go = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.come, self.go, server_hostname="localhost")
        self.do(self.tls.do_handshake)

    def do(self, step):
        while True:
            try:
                result = step()
                self.plain.sendall(self.go.read())
                return result
            except ssl.SSLWantReadError:
                self.plain.sendall(self.go.read())
                self.come.write(self.plain.recv(1 << 16))

    def send(self, data):
        self.do(lambda: self.tls.write(data))

    def end_output(self):
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # for the other end's, which comes later
        self.plain.sendall(self.go.read())

    def all_lines(self):
        """What comes up to the other end's close_notify."""
        seen = b""
        while True:
            try:
                piece = self.do(lambda: self.tls.read(1 << 16))
            except ssl.SSLZeroReturnError:
                piece = b""
            if not piece:
                return [json.loads(line) for line in seen.splitlines()]
            seen += piece


class SecureWebSocket(TlsConnection, WebSocket):
    """`wss`: a WebSocket inside TLS."""

    def __init__(self, *words, fields=None, **options):
        TlsConnection.__init__(self, *words, protocol="http/1.1", **options)
        self.shake_hands(None, fields)

    call = WebSocket.call


def chain_of(identity, more):
    if not more:
        return identity.certificate
    path = identity.certificate + ".chain"
    with open(path, "w", encoding="ascii") as out:
        for one in (identity, *more):
            with open(one.certificate, encoding="ascii") as file:
                out.write(file.read())
    return path


class TlsTestCase(ProjectTestCase):
    """A project whose TLS door has certificates of its own."""

    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.project.place.name, "certificates")
        os.makedirs(self.place)
        self.authority = Authority(self.place)
        self.files = os.path.join(self.project.home, ".config", "duet-rpc", "tls")
        os.makedirs(self.files, mode=0o700)
        self.server = self.authority.issue("server", usage="serverAuth", names="DNS:localhost,DNS:*.door.test,IP:127.0.0.1,IP:::1")
        self.put("server.pem", self.server.certificate)
        self.put("server.key", self.server.key)
        self.put("ca.pem", self.authority.certificate)

    def assert_ended(self, lines, patience=PATIENCE):
        """It ends; an event that was on its way may come before."""
        for line in lines.ends(patience).splitlines():
            self.assertIn(b'"method":"event.', line)

    def put(self, name, *files, mode=0o600):
        path = os.path.join(self.files, name)
        text = ""
        for file in files:
            with open(file, encoding="ascii") as source:
                text += source.read()
        with open(path + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)

    def revoke(self, *identities):
        path = os.path.join(self.files, "revoked")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write("# no longer good\n" + "".join(each.fingerprint() + "\n" for each in identities))
        os.replace(path + ".new", path)  # nobody reads half of it

    def open_door(self, *words, settings='[tls]\nlisten = "127.0.0.1:0"\n'):
        self.project.write_user_settings(settings)
        self.project.remember_port("tls")
        self.project.start(*words)
        self.address = self.tls()["address"]

    def status(self):
        return self.project.call("daemon.status")["result"]

    def tls(self):
        return self.status()["subsystems"]["tls"]

    def problems(self):
        return {each["subsystem"]: each["message"] for each in self.status()["problems"]}

    def connect(self, identity, protocol=None, **options):
        connection = TlsConnection(self.address, identity, self.authority, protocol, **options)
        self.addCleanup(connection.socket.close)
        return connection

    def refusal(self, identity, **options):
        """The alert that a client gets, as Python calls it; TLS 1.3 tells it at the first read only."""
        try:
            with self.connect(identity, **options) as connection:
                connection.more()
        except ssl.SSLError as error:
            return error.reason
        raise Failure("it was let in")


__all__ = ["Authority", "HalfClosing", "Identity", "SecureWebSocket", "TlsConnection", "TlsTestCase", "openssl"]
