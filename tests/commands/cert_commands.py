#!/usr/bin/env python3
"""`duet-rpc cert`: what it makes, as the openssl command sees it, and what it refuses.

Usage: cert_commands.py --program PATH
"""

import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import Failure  # noqa: E402
from project import Process, ProjectTestCase  # noqa: E402
from terminal import Terminal  # noqa: E402

ENOUGH = 120  # seconds, for anything
FILES = ("ca.key", "ca.pem", "server.key", "server.pem")


def openssl(*words, input=None, fails=False):
    """What the openssl command says on stdout and stderr."""
    done = subprocess.run(["openssl", *words], input=input, stdin=None if input is not None else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=ENOUGH, check=False)
    text = done.stdout.decode("utf-8", "backslashreplace")
    if (done.returncode != 0) != fails:
        raise Failure(f"openssl {' '.join(words)}: exit code {done.returncode}\n{text}")
    return text


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class CertTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.project.home, ".config", "duet-rpc", "tls")

    def file(self, *names):
        return os.path.join(self.folder, *names)

    def read(self, *names):
        with open(self.file(*names), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        path = os.path.join(self.project.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def cert(self, *words, **options):
        return self.project.run("cert", *words, **options)

    def run_well(self, *words, **options):
        result = self.cert(*words, **options)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result

    def client(self, name, *words, role="own"):
        """The path of a new identity."""
        return self.write(f"{name}.pem", self.run_well("client", name, "--role", role, *words).out)

    def assert_verifies(self, path, purpose, authority=None):
        text = openssl("verify", "-x509_strict", "-check_ss_sig", "-purpose", purpose,
                       "-CAfile", authority or self.file("ca.pem"), path)
        self.assertEqual(text.strip(), f"{path}: OK")

    def snapshot(self):
        return {name: self.read(name) for name in FILES if os.path.exists(self.file(name))}


class Made(CertTestCase):
    def test_init_makes_a_ca_and_a_certificate_for_this_machine(self):
        result = self.run_well("init", "box.example.net", "*.example.net", "192.0.2.7", "2001:DB8::7")
        self.assertIn(self.file("server.pem"), result.out)
        self.assertEqual(mode(self.folder), 0o700)
        self.assertEqual({name: mode(self.file(name)) for name in FILES}, dict.fromkeys(FILES, 0o600))
        self.assert_verifies(self.file("ca.pem"), "any")
        self.assert_verifies(self.file("server.pem"), "sslserver")
        openssl("verify", "-purpose", "sslclient", "-CAfile", self.file("ca.pem"), self.file("server.pem"), fails=True)
        for flag, name in (("-verify_hostname", socket.gethostname()), ("-verify_hostname", "localhost"),
                           ("-verify_hostname", "box.example.net"), ("-verify_hostname", "any.example.net"),
                           ("-verify_ip", "192.0.2.7"), ("-verify_ip", "2001:db8::7")):
            openssl("verify", flag, name, "-CAfile", self.file("ca.pem"), self.file("server.pem"))
        openssl("verify", "-verify_hostname", "a.b.example.net", "-CAfile", self.file("ca.pem"), self.file("server.pem"),
                fails=True)

    def text_of(self, path):
        text = openssl("x509", "-in", path, "-noout", "-text")
        return re.sub(r"\s+", " ", text)

    def test_the_extensions_are_what_they_should_be(self):
        self.run_well("init")
        authority, server = self.text_of(self.file("ca.pem")), self.text_of(self.file("server.pem"))
        client = self.text_of(self.client("laptop", role="operate"))
        self.assertIn("Basic Constraints: critical CA:TRUE, pathlen:0", authority)
        self.assertIn("Key Usage: critical Certificate Sign, CRL Sign", authority)
        for text in (authority, server, client):
            self.assertIn("Version: 3", text)
            self.assertIn("Signature Algorithm: ecdsa-with-SHA256", text)
            self.assertIn("NIST CURVE: P-256", text)
            self.assertIn("Subject Key Identifier", text)
        for text, use in ((server, "Server"), (client, "Client")):
            self.assertIn("Basic Constraints: critical CA:FALSE", text)
            self.assertIn("Key Usage: critical Digital Signature", text)
            self.assertIn(f"Extended Key Usage: TLS Web {use} Authentication", text)
            self.assertIn("Authority Key Identifier", text)
        self.assertIn("URI:urn:duet-rpc:role:operate", client)
        self.assertIn("Subject: CN = laptop", client)

    def test_the_dates_begin_an_hour_ago_and_the_serials_are_random(self):
        self.run_well("init")
        paths = {self.file("ca.pem"): timedelta(days=3652), self.file("server.pem"): timedelta(days=397),
                 self.client("a"): timedelta(days=365), self.client("b", "--days", "7"): timedelta(days=7)}
        now, serials = datetime.now(timezone.utc), set()
        for path, life in paths.items():
            facts = self.run_well("show", path, "--json").json()
            begin, end = (datetime.fromisoformat(facts[name].replace("Z", "+00:00")) for name in ("beginsAt", "expiresAt"))
            self.assertLess(abs(now - begin - timedelta(hours=1)), timedelta(minutes=5))
            self.assertLess(abs(end - now - life), timedelta(minutes=5))
            self.assertRegex(facts["serial"], "^[0-9a-f]{32}$")
            serial = openssl("x509", "-in", path, "-noout", "-serial").strip().split("=")[1].lower()
            self.assertEqual(serial, facts["serial"])
            serials.add(serial)
        self.assertEqual(len(serials), len(paths))

    def test_an_identity_is_one_pem_with_key_certificate_and_ca(self):
        self.run_well("init")
        path = self.client("laptop", role="observe")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(re.findall(r"BEGIN ([A-Z ]+)-", text), ["PRIVATE KEY", "CERTIFICATE", "CERTIFICATE"])
        self.assertTrue(text.endswith(self.read("ca.pem")))
        self.assert_verifies(path, "sslclient")
        openssl("verify", "-purpose", "sslserver", "-CAfile", self.file("ca.pem"), path, fails=True)
        self.assertEqual(openssl("pkey", "-in", path, "-pubout"), openssl("x509", "-in", path, "-noout", "-pubkey"))
        self.assertEqual([mode(self.file("issued", name)) for name in os.listdir(self.file("issued"))], [0o600])
        self.assertNotIn("PRIVATE", self.read("issued", os.listdir(self.file("issued"))[0]))

    def test_an_identity_in_a_file_is_for_its_owner_alone(self):
        self.run_well("init")
        path = os.path.join(self.project.root, "laptop.pem")
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            with self.project.popen("cert", "client", "laptop", "--role", "own", stdout=file) as process:
                process.communicate(timeout=ENOUGH)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(mode(path), 0o600)

    def test_json_tells_all_of_it(self):
        made = self.run_well("init", "--json").json()
        self.assertEqual(set(made), {"folder", "ca", "server"})
        self.assertEqual((made["ca"]["kind"], made["server"]["kind"], made["folder"]), ("ca", "server", self.folder))
        client = self.run_well("client", "laptop", "--role", "own", "--json").json()
        self.assertEqual((client["name"], client["role"], client["kind"]), ("laptop", "own", "client"))
        self.assert_verifies(self.write("x.pem", client["identity"]), "sslclient")
        server = self.run_well("server", "a.example", "--force", "--json").json()
        self.assertEqual(server["server"]["names"], ["a.example"])

    def test_a_server_gets_other_names_or_those_it_has(self):
        self.run_well("init", "box")
        before = self.run_well("show", self.file("server.pem"), "--json").json()
        self.run_well("server", "--force")
        after = self.run_well("show", self.file("server.pem"), "--json").json()
        self.assertEqual(before["names"], after["names"])
        self.assertNotEqual(before["fingerprint"], after["fingerprint"])
        self.run_well("server", "Other.example", "::1", "--force")
        self.assertEqual(self.run_well("show", self.file("server.pem"), "--json").json()["names"], ["other.example", "::1"])
        self.assert_verifies(self.file("server.pem"), "sslserver")
        self.assertEqual(openssl("pkey", "-in", self.file("server.key"), "-pubout"),
                         openssl("x509", "-in", self.file("server.pem"), "-noout", "-pubkey"))
        self.assertEqual(mode(self.file("server.key")), 0o600)

    def test_both_certificates_speak_tls_with_each_other(self):
        self.run_well("init")
        client = self.client("laptop")
        server = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", self.file("server.pem"), "-key",
                  self.file("server.key"), "-CAfile", self.file("ca.pem"), "-Verify", "1", "-verify_return_error", "-tls1_3",
                  "-naccept", "1", "-rev"]
        with Process(server, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            line = b""
            while not line.startswith(b"ACCEPT"):
                line = process.stdout.readline()
                self.assertTrue(line, "s_server did not start")
            port = int(line.rsplit(b":", 1)[1])
            text = openssl("s_client", "-connect", f"127.0.0.1:{port}", "-cert", client, "-key", client, "-CAfile", client,
                           "-verify_return_error", "-verify_hostname", "localhost", "-tls1_3", "-ign_eof", "-quiet",
                           input=b"olleh\n" + b"CLOSE\n")
            self.assertIn("hello", text)
            process.communicate(timeout=ENOUGH)


class Refused(CertTestCase):
    def test_nothing_is_overwritten_without_force(self):
        self.run_well("init")
        before = self.snapshot()
        self.assert_refused(self.cert("init"), 1, "is there already", "--force")
        self.assert_refused(self.cert("server", "x"), 1, "server.pem is there already", "--force")
        self.assertEqual(self.snapshot(), before)
        for name in FILES:
            os.remove(self.file(name))
            self.write(self.file("server.key"), "mine")
        self.assert_refused(self.cert("init"), 1, "server.key is there already")
        self.assertEqual(self.read("server.key"), "mine")

    def test_force_makes_a_new_ca_and_the_clients_of_the_old_are_gone(self):
        self.run_well("init")
        client = self.client("laptop")
        self.run_well("init", "--force")
        openssl("verify", "-CAfile", self.file("ca.pem"), client, fails=True)
        self.assertNotIn("laptop", self.run_well("list").out)
        self.assert_verifies(self.client("laptop"), "sslclient")

    def test_a_name_is_given_once(self):
        self.run_well("init")
        first = self.client("laptop")
        self.assert_refused(self.cert("client", "laptop", "--role", "own"), 1, "laptop has a certificate already", "--force")
        forced = self.cert("client", "laptop", "--role", "own", "--force")
        self.assertEqual(forced.code, 0)
        self.assertRegex(forced.err, "stays valid until it is revoked: 'duet-rpc cert revoke [0-9a-f]{64}'")
        self.assertIn(self.run_well("show", first, "--json").json()["fingerprint"], forced.err)
        self.run_well("revoke", "laptop")
        self.client("laptop")  # revoked ones leave the name free

    def test_bad_names(self):
        self.run_well("init")
        for name in ("a b", "x" * 65, "ä", "a/b", ""):
            self.assert_refused(self.cert("client", name, "--role", "own"), 1, "1 to 64 of")
        for name in ("[::1]", "host:7443", "*.net", "1.2.3.400", "a,DNS:b", "-", ""):
            with self.subTest(name):
                self.assert_refused(self.cert("server", "--force", "--", name), 1, "cannot be in a server's certificate")
                self.assert_refused(self.cert("init", "--force", "--", name), 1, "cannot be in a server's certificate")

    def test_other_machines_are_left_alone(self):
        for words in (["init"], ["client", "a", "--role", "own"], ["list"], ["revoke", "a"]):
            result = self.cert(*words, "--connect", "tls://far")
            self.assertEqual(result.code, 1)
            self.assertIn("log in there, with ssh", result.err)

    def test_bad_usage(self):
        self.run_well("init")
        self.assert_refused(self.cert("client", "laptop"), 1, "needs --role")
        for words in (["client"], ["client", "a", "--role", "root"], ["client", "a", "--role", "own", "--days", "0"],
                      ["client", "a", "--role", "own", "--days", "99999"], ["show"], ["revoke"], ["lst"], []):
            with self.subTest(words):
                self.assertEqual(self.cert(*words).code, 1)
        self.assertEqual(self.run_well("list", "--json").json()[2:], [])

    def test_without_a_ca(self):
        for words in (["client", "a", "--role", "own"], ["server", "x"]):
            self.assert_refused(self.cert(*words), 1, "there is no CA yet", "duet-rpc cert init")
        self.assertEqual(self.run_well("list").out, "there are no certificates: 'duet-rpc cert init' makes the first\n")
        self.assertEqual(self.run_well("list", "--json").json(), [])
        self.assert_refused(self.cert("init", env={"HOME": None, "XDG_CONFIG_HOME": None}), 1, "set HOME or XDG_CONFIG_HOME")

    def test_a_ca_that_cannot_sign(self):
        self.run_well("init")
        client = ("client", "laptop", "--role", "own")
        os.chmod(self.file("ca.key"), 0o640)
        self.assert_refused(self.cert(*client), 1, "ca.key is not used: others can read it", "chmod 600")
        os.chmod(self.file("ca.key"), 0o600)
        shutil.copy(self.file("server.key"), self.file("ca.key"))
        self.assert_refused(self.cert(*client), 1, "ca.key is not the key of")
        openssl("pkey", "-in", self.file("server.key"), "-aes256", "-passout", "pass:x", "-out", self.file("ca.key"))
        self.assert_refused(self.cert(*client), 1, "has a password")
        os.remove(self.file("ca.key"))
        self.assert_refused(self.cert(*client), 1, "there is no .*ca.key", "cert init --force")
        self.assertEqual(len(self.run_well("list", "--json").json()), 2)

    def test_an_expired_ca(self):
        self.run_well("init")
        self.write("index.txt", "")
        config = self.write("ca.cnf", "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\n"
                            "default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n"
                            "[e]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
                            "subjectKeyIdentifier=hash\n")
        request = openssl("req", "-new", "-key", self.file("ca.key"), "-subj", "/CN=old")
        subprocess.run(["openssl", "ca", "-batch", "-config", config, "-selfsign", "-keyfile", self.file("ca.key"), "-in",
                        self.write("ca.csr", request), "-out", self.file("ca.pem"), "-notext", "-startdate",
                        "20200101000000Z", "-enddate", "20200201000000Z"], check=True, cwd=self.project.root,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=ENOUGH)
        self.assert_refused(self.cert("client", "laptop", "--role", "own"), 1, "has expired on 2020-02-01", "--force")
        self.assertEqual(self.run_well("list", "--json").json()[0]["state"], "expired")

    def test_a_ca_without_key_identifier_can_sign(self):
        self.run_well("init")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                self.file("ca.key"), "-out", self.file("ca.pem"), "-days", "3", "-config",
                self.write("plain.cnf", "[req]\ndistinguished_name=n\nx509_extensions=e\n[n]\n[e]\n"
                           "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
                           "subjectKeyIdentifier=none\n"), "-subj", "/CN=plain")
        openssl("verify", "-purpose", "sslclient", "-CAfile", self.file("ca.pem"), self.client("laptop"))

    def test_a_folder_that_cannot_be_written(self):
        if os.geteuid() != 0:
            self.skipTest("needs another user")
        home = os.path.join(self.project.place.name, "other")
        os.makedirs(home, 0o755)
        environment = {"HOME": home, "XDG_CONFIG_HOME": None}
        result = self.project.run_as_nobody("cert", "init", env=environment)
        self.assert_refused(result, 1, "cannot make .*Permission denied")
        self.assertEqual(os.listdir(home), [])

    def test_a_full_disk_leaves_what_was_there(self):
        if self.project.run("--mount", "true", program="unshare").code != 0:
            self.skipTest("no mounts here")
        os.makedirs(self.folder, 0o700)
        fill = 'mount -t tmpfs -o size=40k,mode=700 none "$1" && cd "$1" || exit 99; shift; "$@" cert init >/dev/null || exit 98;'
        script = fill + 'sha256sum ??*.??? > sums; head -c 100000 /dev/zero > filler 2>/dev/null; "$@" cert init --force; code=$?;' \
                        'rm filler; sha256sum --quiet -c sums && ls && exit $code'
        result = self.project.run("--mount", "sh", "-c", script, "sh", self.folder, self.project.program, program="unshare")
        self.assertEqual(result.code, 1, result)
        self.assertIn("No space left on device", result.err)
        self.assertEqual(result.out.split(), sorted([*FILES, "lock", "sums"]))

    def test_an_identity_that_cannot_be_printed_is_told(self):
        self.run_well("init")
        with open("/dev/full", "wb") as full:
            with self.project.popen("cert", "client", "laptop", "--role", "own", stdout=full) as process:
                err = process.communicate(timeout=ENOUGH)[1].decode()
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, "No space left on device; .*'duet-rpc cert revoke laptop'")


class Interrupted(CertTestCase):
    def test_a_kill_at_any_moment_leaves_nothing_or_all_or_what_the_next_init_finishes(self):
        began = time.monotonic()
        self.run_well("init")
        whole = time.monotonic() - began
        chance = random.Random(1)
        killed = 0
        for _ in range(25):
            shutil.rmtree(self.folder)
            with self.project.popen("cert", "init") as process:
                began = time.monotonic()
                try:
                    process.wait(chance.uniform(0, whole))
                    whole = min(whole, time.monotonic() - began)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
                process.communicate(timeout=ENOUGH)
            there = [name for name in FILES if os.path.exists(self.file(name))]
            result = self.cert("init")
            if len(there) == len(FILES):
                self.assert_refused(result, 1, "is there already")
            else:
                self.assertEqual((result.code, result.err), (0, ""), there)
            self.assert_verifies(self.file("server.pem"), "sslserver")
            self.assertEqual(sorted(os.listdir(self.folder)), sorted([*FILES, "lock"]))
            self.client("laptop")
        self.assertGreater(killed, 0)

    def test_what_is_written_but_not_in_its_place_is_finished(self):
        self.run_well("init", "old.example")
        os.mkdir(self.file("unfinished"), 0o700)
        for name in FILES[:3]:  # as if it had been killed after the first move
            os.rename(self.file(name), self.file("unfinished", name))
        self.assert_refused(self.cert("list"), 1, "was killed before it had finished")
        key = self.read("unfinished", "ca.key")
        self.run_well("init", "new.example")
        self.assertEqual(self.read("ca.key"), key)
        self.assertIn("new.example", self.run_well("show", self.file("server.pem"), "--json").json()["names"])
        self.assert_verifies(self.file("server.pem"), "sslserver")
        self.assert_refused(self.cert("init"), 1, "is there already")

    def interrupt_server(self):
        """As if `cert server` had been killed between its two moves."""
        self.run_well("server", "other.example", "--force")
        os.mkdir(self.file("unfinished"), 0o700)
        os.rename(self.file("server.key"), self.file("unfinished", "server.key"))

    def test_init_that_only_finishes_says_so(self):
        self.run_well("init")
        self.interrupt_server()
        result = self.cert("init", "--json")
        self.assertEqual(result.code, 0, result)
        self.assertIn("interrupted command is finished", result.err)
        self.assertEqual(result.json()["server"]["names"], ["other.example"])
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*FILES, "lock"]))

    def test_a_client_is_made_after_an_interrupted_change(self):
        self.run_well("init")
        os.mkdir(self.file("unfinished"), 0o700)
        for name in FILES[:2]:
            os.rename(self.file(name), self.file("unfinished", name))
        self.assert_verifies(self.client("laptop"), "sslclient")
        self.assertFalse(os.path.exists(self.file("unfinished")))

    def test_of_several_at_once_one_wins(self):
        processes = [self.project.popen("cert", "init") for _ in range(4)]
        codes = []
        for process in processes:
            with process:
                process.communicate(timeout=ENOUGH)
                codes.append(process.returncode)
        self.assertEqual(sorted(codes), [0, 1, 1, 1])
        self.assert_verifies(self.file("server.pem"), "sslserver")
        processes = [self.project.popen("cert", "client", "laptop", "--role", "own") for _ in range(3)]
        outs = [process.communicate(timeout=ENOUGH)[0] for process in processes]
        self.assertEqual(sum(bool(out) for out in outs), 1)


class Shown(CertTestCase):
    def setUp(self):
        super().setUp()
        self.run_well("init", "box.example.net")

    def test_list_is_a_table(self):
        self.client("laptop", role="observe")
        self.client("phone", "--days", "1")
        self.run_well("revoke", "phone")
        lines = [line.split("  ") for line in self.run_well("list").out.splitlines()]
        rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
        self.assertEqual(rows[0], ["NAME", "ROLE", "KIND", "EXPIRES", "STATE"])
        self.assertEqual([[row[0], row[1], row[2], row[4]] for row in rows[3:]],
                         [["laptop", "observe", "client", "valid"], ["phone", "own", "client", "revoked"]])
        self.assertEqual([row[2] for row in rows[1:3]], ["ca", "server"])
        for row in rows[1:]:
            self.assertRegex(row[3], r"^\d{4}-\d\d-\d\d$")
        listed = self.project.run("--json", "cert", "list").json()
        self.assertEqual([(each["kind"], each["state"]) for each in listed],
                         [("ca", "valid"), ("server", "valid"), ("client", "valid"), ("client", "revoked")])

    def test_show_tells_what_openssl_tells(self):
        path = self.client("laptop", role="operate")
        text = self.run_well("show", path).out
        facts = self.run_well("show", path, "--json").json()
        fingerprint = openssl("x509", "-in", path, "-noout", "-fingerprint", "-sha256").split("=")[1].strip()
        self.assertEqual(facts["fingerprint"], fingerprint.replace(":", "").lower())
        self.assertEqual((facts["name"], facts["role"], facts["state"], facts["key"], facts["hasKey"], facts["ours"]),
                         ("laptop", "operate", "valid", "EC P-256", True, True))
        self.assertEqual([other["kind"] for other in facts["others"]], ["ca"])
        self.assertTrue(facts["issuer"].startswith("CN=duet-rpc CA "))
        for word in ("laptop", "operate", "client", "valid", facts["fingerprint"], "EC P-256", facts["issuer"]):
            self.assertIn(word, text)
        with open(path, "rb") as file:
            self.assertEqual(self.run_well("show", "-", "--json", input=file.read()).json(), facts)

    def test_show_reads_certificates_of_others(self):
        for kind, key in (("rsa:2048", "RSA 2048"), ("ed25519", "Ed25519")):
            path = os.path.join(self.project.root, "other.pem")
            openssl("req", "-x509", "-newkey", kind, "-nodes", "-keyout", "/dev/null", "-out", path, "-days", "3", "-subj",
                    "/O=Other/CN=evil \x1b[31m\u202e", "-utf8", "-addext", "subjectAltName=DNS:a.example,email:a@b.example")
            facts = self.run_well("show", path, "--json").json()
            self.assertEqual((facts["key"], facts["ours"], facts["role"]), (key, False, None))
            self.assertEqual(facts["names"], ["a.example", "email:a@b.example"])
            self.assertNotIn("\x1b", self.run_well("show", path).out)
        openssl("x509", "-in", path, "-outform", "DER", "-out", path + ".der")
        self.assertEqual(self.run_well("show", path + ".der", "--json").json()["fingerprint"], facts["fingerprint"])

    def test_show_refuses_nonsense(self):
        key = self.file("server.key")
        cut = self.write("cut.pem", self.read("ca.pem")[:300])
        for path, text in (("/nowhere/x.pem", "there is no file"), (self.folder, "not a plain file"), ("/dev/null", "not a plain"),
                           (key, "a private key and no certificate"), (cut, "damaged"), (self.write("empty", ""), "empty"),
                           (self.write("text", "hello\n"), "holds no certificate"), (self.project.program, "larger than")):
            with self.subTest(path):
                self.assert_refused(self.cert("show", path), 1, text)

    def test_revoke_adds_the_fingerprints_of_a_name_and_keeps_comments(self):
        self.write(self.file("revoked"), "# mine\n")
        os.chmod(self.file("revoked"), 0o600)
        facts = [self.run_well("show", self.client("laptop"), "--json").json()]
        forced = self.cert("client", "laptop", "--role", "own", "--force", "--json")
        facts.append(forced.json())
        self.assertIn("2 certificates", self.run_well("revoke", "laptop").out)
        text = self.read("revoked")
        self.assertTrue(text.startswith("# mine\n"))
        listed = {line for line in text.splitlines() if not line.startswith("#")}
        self.assertEqual(listed, {each["fingerprint"] for each in facts})
        self.assertEqual(mode(self.file("revoked")), 0o600)
        self.assertEqual(self.run_well("revoke", "laptop").out, "laptop was revoked already\n")
        self.assertEqual(self.read("revoked"), text)

    def test_revoke_takes_a_fingerprint(self):
        first = self.run_well("show", self.client("laptop"), "--json").json()["fingerprint"]
        self.cert("client", "laptop", "--role", "own", "--force")
        self.run_well("revoke", first)
        states = [each["state"] for each in self.run_well("list", "--json").json() if each["kind"] == "client"]
        self.assertEqual(sorted(states), ["revoked", "valid"])
        other = "AB:" * 31 + "AB"
        self.assertEqual(self.run_well("revoke", other, "--json").json()["revoked"], ["ab" * 32])
        self.assertIn("ab" * 32, self.read("revoked"))

    def test_revoke_refuses_a_list_that_daemons_do_not_read(self):
        self.client("laptop")
        for name in ("laptop", "ab" * 32):
            self.write(self.file("revoked"), "# mine\nphone\n")
            os.chmod(self.file("revoked"), 0o600)
            self.assert_refused(self.cert("revoke", name), 1, "revoked:2: not the SHA-256 fingerprint", "mended or removed")
            self.assertEqual(self.read("revoked"), "# mine\nphone\n")
        self.write(self.file("revoked"), "# " + "x" * (2**20 - 10))
        self.assert_refused(self.cert("revoke", "laptop"), 1, "larger than 1 MiB")

    def test_revoke_does_not_replace_a_link_to_nothing(self):
        self.client("laptop")
        os.symlink("elsewhere", self.file("revoked"))
        self.assert_refused(self.cert("revoke", "laptop"), 1, "revoked is not used: it is a link to a file that is not there")
        self.assertTrue(os.path.islink(self.file("revoked")))

    def test_revoke_writes_the_list_that_the_settings_name(self):
        self.client("laptop")
        elsewhere = os.path.join(self.project.root, "list")
        settings = os.path.join(self.project.home, ".config", "duet-rpc", "config.toml")
        self.write(settings, f'[tls]\nrevoked = "{elsewhere}"\n')
        os.chmod(settings, 0o600)
        self.run_well("revoke", "laptop")
        with open(elsewhere, encoding="utf-8") as file:
            self.assertRegex(file.read(), "\n[0-9a-f]{64}\n$")
        self.assertFalse(os.path.exists(self.file("revoked")))
        self.assertEqual(self.run_well("list", "--json").json()[2]["state"], "revoked")
        self.write(settings, "[tls]\nrevoked = 7\n")
        self.assert_refused(self.cert("revoke", "laptop"), 1, "config.toml:2")

    def test_stray_files_do_not_keep_anybody_from_revoking(self):
        self.client("laptop")
        self.write(self.file("issued", "stray.pem"), "nonsense")
        self.write(self.file("server.pem"), "nonsense")
        result = self.cert("revoke", "laptop")
        self.assertEqual(result.code, 0, result)
        self.assertIn("stray.pem", result.err)
        self.assertIn("server.pem", result.err)
        self.assertEqual(self.cert("list", "--json").json()[1]["state"], "revoked")
        self.write(self.file("ca.pem"), "nonsense")
        self.assert_refused(self.cert("revoke", "laptop"), 1, "ca.pem holds no certificate")
        self.assertEqual(self.cert("revoke", "ab" * 32).code, 0)
        self.assertIn("ab" * 32, self.read("revoked"))

    def test_revoke_of_an_unknown_name(self):
        self.client("laptop")
        self.assert_refused(self.cert("revoke", "latop"), 1, "no certificate of a client 'latop'", "did you mean 'laptop'")
        self.assert_refused(self.cert("revoke", "nobody"), 1, "cert list")
        self.assert_refused(self.cert("revoke", "box.example.net"), 1, "this machine's own certificate")
        self.assertFalse(os.path.exists(self.file("revoked")))

    def test_shells_are_offered_the_names(self):
        self.client("laptop", role="observe")
        result = self.project.run("candidates", "certificate", "--", "duet-rpc", "cert", "revoke", "")
        self.assertEqual((result.code, result.out), (0, "laptop\tobserve\n"))


class Browsers(CertTestCase):
    def setUp(self):
        super().setUp()
        self.run_well("init")
        self.path = os.path.join(self.project.root, "laptop.p12")
        self.words = ("client", "laptop", "--role", "own", "--p12", self.path)

    def assert_opens(self, password):
        text = openssl("pkcs12", "-in", self.path, "-passin", f"pass:{password}", "-nodes")
        self.assertEqual(text.count("BEGIN CERTIFICATE"), 2)
        self.assertIn("BEGIN PRIVATE KEY", text)
        self.assertIn("friendlyName: laptop", text)
        openssl("pkcs12", "-in", self.path, "-passin", "pass:wrong", "-nodes", fails=True)
        self.assertEqual(mode(self.path), 0o600)

    def test_the_password_may_come_from_stdin(self):
        identity = self.run_well(*self.words, input=b"secret\n").out
        self.assert_opens("secret")
        self.assert_verifies(self.write("id.pem", identity), "sslclient")

    def test_no_password_makes_nothing(self):
        for given in (b"", b"\n", b"one\0two\n"):
            self.assert_refused(self.cert(*self.words, input=given), 1, "password")
        self.assertFalse(os.path.exists(self.path))
        self.assertEqual(len(self.run_well("list", "--json").json()), 2)

    def test_a_file_that_is_there_or_cannot_be_is_refused(self):
        self.write("laptop.p12", "mine")
        self.assert_refused(self.cert(*self.words, input=b"secret\n"), 1, "is there already: --force")
        self.assert_refused(self.cert(*self.words[:-1], self.project.root, input=b"secret\n"), 1, "is a folder")
        self.assert_refused(self.cert(*self.words[:-1], "/nowhere/x.p12", input=b"secret\n"), 1, "No such file")
        self.assertEqual(len(self.run_well("list", "--json").json()), 2)
        self.run_well(*self.words, "--force", input=b"secret\nother\n")
        self.assert_opens("secret")

    def test_what_is_not_a_plain_file_is_refused(self):
        os.mkfifo(self.path)
        for words in (self.words, (*self.words, "--force")):
            self.assert_refused(self.cert(*words, input=b"secret\n"), 1, "not a plain file")

    def test_a_file_that_was_made_meanwhile_stays(self):
        with self.project.popen("cert", *self.words, stdin=subprocess.PIPE) as process:
            with open(self.path, "x", encoding="utf-8") as file:  # before the password, or the command ends at once
                file.write("mine")
            err = process.communicate(b"secret\n", timeout=ENOUGH)[1]
        self.assertEqual(process.returncode, 1, err)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(len(self.run_well("list", "--json").json()), 2)

    def test_one_line_of_stdin_is_enough(self):
        with self.project.popen("cert", *self.words, stdin=subprocess.PIPE) as process:
            process.stdin.write(b"secret\n")
            process.stdin.flush()
            process.wait(ENOUGH)  # stdin stays open
            self.assertEqual(process.returncode, 0)
        self.assert_opens("secret")

    def ask(self, terminal, **options):
        return self.project.popen("cert", *self.words, stdin=terminal.slave, stderr=terminal.slave, start_new_session=True,
                                  **options)

    @staticmethod
    def shows_typing(terminal):
        return bool(termios.tcgetattr(terminal.slave)[3] & termios.ECHO)

    def test_a_terminal_is_asked_twice_and_shows_nothing(self):
        with Terminal() as terminal:
            with self.ask(terminal) as process:
                terminal.screen.wait_until(lambda data: b"Password for" in data, ENOUGH)
                terminal.type(b"s3cret-word\n")
                terminal.screen.wait_until(lambda data: b"again" in data, ENOUGH)
                terminal.type(b"s3cret-word\n")
                out = process.communicate(timeout=ENOUGH)[0]
                self.assertEqual(process.returncode, 0)
            terminal.screen.wait_until(lambda data: b"laptop may own" in data, ENOUGH)
            self.assertNotIn("s3cret", terminal.screen.text())
            self.assertIn(b"BEGIN PRIVATE KEY", out)
        self.assert_opens("s3cret-word")

    def test_a_terminal_is_as_before_after_an_interrupt(self):
        with Terminal() as terminal:
            with self.ask(terminal) as process:
                terminal.screen.wait_until(lambda data: b"Password for" in data, ENOUGH)
                self.assertFalse(self.shows_typing(terminal))
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=ENOUGH)
                self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertTrue(self.shows_typing(terminal))
        self.assertFalse(os.path.exists(self.path))

    def test_an_interrupt_also_ends_it_after_the_end_of_input_within_a_line(self):
        with Terminal() as terminal:
            with self.ask(terminal) as process:
                terminal.screen.wait_until(lambda data: b"Password for" in data, ENOUGH)
                terminal.type(b"abc\x04")
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=ENOUGH)
                self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertTrue(self.shows_typing(terminal))


if __name__ == "__main__":
    suite.main()
