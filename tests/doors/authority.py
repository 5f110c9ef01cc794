"""A certificate authority for tests, by the openssl command line: it shares no code with the program."""

import datetime
import os
import subprocess

CONFIGURATION = """
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
commonName = optional
"""


def openssl(*words, input=None):
    result = subprocess.run(["openssl", *words], input=input, capture_output=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"openssl {' '.join(words)}: {result.stderr.decode(errors='replace')}")
    return result.stdout.decode()


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write_secret(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(text)


def moment(days):
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return time.strftime("%Y%m%d%H%M%SZ")


class Authority:
    """Its files are in FOLDER."""

    def __init__(self, folder, name="Test CA"):
        os.makedirs(folder)
        self.folder = folder
        self.certificate = os.path.join(folder, "ca.pem")
        self.made = 0
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-keyout", os.path.join(folder, "ca.key"), "-out", self.certificate, "-subj", f"/CN={name}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        write_secret(os.path.join(folder, "index"), "")
        write_secret(os.path.join(folder, "settings"), CONFIGURATION.format(folder=folder))

    def issue(self, name, purpose, names="", begins=-1, ends=30):
        """The texts of a key and its certificate. NAMES are alternative ones, as openssl writes them; days from now."""
        self.made += 1
        start = os.path.join(self.folder, f"made-{self.made}")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", start + ".key",
                "-out", start + ".csr", "-subj", f"/CN={name}")
        extensions = f"basicConstraints=critical,CA:FALSE\nextendedKeyUsage={purpose}\n"
        write_secret(start + ".ext", extensions + (f"subjectAltName={names}\n" if names else ""))
        openssl("ca", "-batch", "-config", os.path.join(self.folder, "settings"), "-in", start + ".csr", "-out",
                start + ".pem", "-notext", "-startdate", moment(begins), "-enddate", moment(ends), "-extfile", start + ".ext")
        return read(start + ".key"), read(start + ".pem")

    def server(self, names="DNS:localhost,IP:127.0.0.1,IP:::1", **dates):
        return self.issue("server", "serverAuth", names, **dates)

    def identity(self, name="laptop", role="own", trusted=None, **dates):
        """A client's key, its certificate and the CA that it trusts, as --identity takes them."""
        names = f"URI:urn:duet-rpc:role:{role}" if role else ""
        return "".join(self.issue(name, "clientAuth", names, **dates)) + read((trusted or self).certificate)


def fingerprint(certificate):
    """Of a certificate's text, as a file of revoked ones has it."""
    line = openssl("x509", "-noout", "-fingerprint", "-sha256", input=certificate.encode())
    return line.partition("=")[2].strip().replace(":", "").lower()
