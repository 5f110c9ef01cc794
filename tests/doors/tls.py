#!/usr/bin/env python3
"""The TLS door: where it is open, whom it lets in, what they see, and how that changes while it is open."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from daemon import PATIENCE, eventually, request  # noqa: E402
from tls_client import Authority, HalfClosing, SecureWebSocket, TlsTestCase  # noqa: E402

BOTH = "DNS:localhost,IP:127.0.0.1"


class Opening(TlsTestCase):
    def test_it_is_closed_unless_somebody_says_so(self):
        self.project.start()
        self.assertIsNone(self.tls())
        eventually(lambda: self.status()["subsystems"]["ipc"]["byDoor"] == {"unix": 1, "http": 0, "tls": 0}, what="nobody else")

    def test_it_tells_where_it_is_and_how_long_its_certificate_is_good(self):
        self.open_door()
        self.assertRegex(self.address, r"^127\.0\.0\.1:\d+$")
        self.assertRegex(self.tls()["expiresAt"], r"^\d{4}-\d\d-\d\dT")
        self.assertIn(self.address, self.project.run("daemon", "status").out)
        self.assert_logged(f'tls="{re.escape(self.address)}"')

    def test_the_command_line_goes_over_the_settings_and_a_restart_keeps_it(self):
        self.open_door("--tls=[::1]:0", settings="")
        self.assertTrue(self.address.startswith("[::1]:"))
        result = self.project.run("daemon", "restart", "--json")
        self.assertEqual(result.code, 0, result)
        self.project.pids.add(result.json()["pid"])
        self.assertEqual(self.tls()["address"], self.address)
        laptop = self.authority.issue("laptop", role="own")
        self.assertEqual(self.connect(laptop).call("session.info")["result"]["name"], "laptop")

    def test_a_project_must_not_open_it(self):
        own = os.path.join(self.project.root, ".duet-rpc.toml")
        with open(own, "w", encoding="ascii") as file:
            file.write('\n[tls]\nlisten = "0.0.0.0:0"\n')
        self.project.needs_no_trust = False
        self.project.start()
        self.assertIsNone(self.tls())
        self.assertIn(f"{own}:2:1: [tls] is for your own settings", self.problems()["trust"])
        self.assert_refused(self.project.run("trust", "--yes"), 1, r"2:1: \[tls\] is for your own settings")

    def test_what_keeps_it_closed_fails_the_start(self):
        other = Authority(self.place, "other").issue("server", usage="serverAuth", names=BOTH)
        expired = self.authority.issue("server", usage="serverAuth", names=BOTH, start=-7200, end=-3600)
        rows = [
            ("a missing file", "server.pem: there is no such file", lambda: os.remove(os.path.join(self.files, "server.pem"))),
            ("another key", "server.key: this key does not belong to the certificate", lambda: self.put("server.key", other.key)),
            ("no certificate", "server.pem: there is no certificate in it", lambda: self.put("server.pem", self.server.key)),
            ("others read the key", "'chmod 600' it", lambda: self.put("server.key", self.server.key, mode=0o640)),
            ("damaged", "damaged PEM", lambda: self.write("ca.pem", "-----BEGIN CERTIFICATE-----\nrubbish\n")),
            ("no authority", "none of an authority", lambda: self.put("ca.pem", self.server.certificate)),
            ("a faulty list", "revoked:2: not the SHA-256", lambda: self.write("revoked", "# x\nlaptop\n")),
            ("expired", "has expired", lambda: (self.put("server.pem", expired.certificate), self.put("server.key", expired.key))),
        ]
        for what, text, spoil in rows:
            with self.subTest(what):
                spoil()
                self.assert_refused(self.project.run("daemon", "start", "--tls=127.0.0.1:0"), 1, text)
                self.restore()

    def write(self, name, text):
        with open(os.path.join(self.files, name), "w", encoding="ascii") as file:
            file.write(text)

    def restore(self):
        for name, file in (("server.pem", self.server.certificate), ("server.key", self.server.key), ("ca.pem", self.authority.certificate)):
            self.put(name, file)
        self.write("revoked", "")

    def test_a_taken_port_and_a_faulty_address_fail_the_start(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_refused(self.project.run("daemon", "start", f"--tls={address}"), 1, "another program listens there")
        self.assert_refused(self.project.run("daemon", "start", "--tls=here"), 1, "--tls 'here' is not an address")

    def test_a_reload_opens_moves_and_closes_it(self):
        self.project.start()
        self.project.write_user_settings('[tls]\nlisten = "127.0.0.1:0"\n')
        eventually(self.tls, what="it is open")
        self.address = self.tls()["address"]
        laptop = self.connect(self.authority.issue("laptop", role="own"))
        self.assertTrue(laptop.call("ping")["result"]["pong"])
        self.project.write_user_settings('[tls]\nlisten = "off"\n')
        eventually(lambda: self.tls() is None, what="it is closed")
        self.assert_ended(laptop)

    def test_a_passed_socket_is_an_open_door(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = "127.0.0.1:%d" % listener.getsockname()[1]
            argv = ["/bin/sh", "-c", 'exec 3<&"$0"; LISTEN_PID=$$ exec "$@"', str(listener.fileno()), suite.program(),
                    "daemon", "start", "--foreground", "--project", self.project.root]
            env = self.project.environment({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "tls"})
            service = subprocess.Popen(argv, env=env, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        self.addCleanup(service.wait)
        self.addCleanup(service.kill)
        eventually(self.project.reachable, what="it runs")
        self.assertEqual(self.tls()["address"], address)
        self.address = address
        self.assertEqual(self.connect(self.authority.issue("laptop", role="own")).call("session.info")["result"]["door"], "tls")
        self.project.write_user_settings('[tls]\nlisten = "off"\n')
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.tls()["address"], address)

    def test_a_certificate_that_ends_soon_is_a_problem(self):
        soon = self.authority.issue("server", usage="serverAuth", names=BOTH, days=20)
        self.put("server.pem", soon.certificate)
        self.put("server.key", soon.key)
        self.open_door()
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 20 * 86400))
        self.assertIn(f"expires on {day}", self.problems()["tls"])
        self.assertIn("duet-rpc cert server", self.problems()["tls"])
        self.assertIn("tls", self.project.run("doctor").out)

    def test_an_authority_that_ends_soon_or_has_ended_is_a_problem(self):
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 20 * 86400))
        soon, gone = Authority(self.place, "soon", days=20), Authority(self.place, "gone", start=-9000, end=-5400)
        self.put("ca.pem", soon.certificate, self.authority.certificate)
        self.open_door()
        self.assertIn(f"the CA CN=soon that clients are let in by expires on {day}", self.problems()["tls"])
        self.assertIn("duet-rpc cert init --force", self.problems()["tls"])
        self.assertRegex(self.project.run("doctor").out, "CN=soon, from .*cert init --force")
        self.assertTrue(self.connect(soon.issue("laptop", role="own", days=10)).call("ping")["result"]["pong"])
        self.put("ca.pem", gone.certificate, self.authority.certificate)
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertIn("the CA CN=gone that clients are let in by has expired on 20", self.problems()["tls"])
        self.assertEqual(self.refusal(gone.issue("laptop", role="own")), "SSLV3_ALERT_CERTIFICATE_EXPIRED")
        told = "its certificate is by CN=gone, whose own has expired: it was valid until 20"
        self.assert_logged(told)
        self.put("ca.pem", self.authority.certificate)
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.problems(), {})
        expired = self.authority.issue("old laptop", role="own", start=-7200, end=-3600)
        self.assertEqual(self.refusal(expired), "SSLV3_ALERT_CERTIFICATE_EXPIRED")
        self.assert_logged("that of CN=old laptop, has expired")

    def test_certificates_in_any_order(self):
        between = Authority(self.place, "between", parent=self.authority)
        server = between.issue("server", usage="serverAuth", names=BOTH)
        self.put("server.pem", between.certificate, server.certificate, self.authority.certificate)
        self.put("server.key", server.certificate, server.key)
        self.open_door()
        self.assertTrue(self.connect(self.authority.issue("laptop", role="own")).call("ping")["result"]["pong"])


class Certificates(TlsTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()

    def test_who_is_refused_is_told_why(self):
        other = Authority(self.place, "other")
        between = Authority(self.place, "between", parent=self.authority)
        below = Authority(self.place, "below", parent=between)
        revoked = self.authority.issue("revoked", role="own")
        self.revoke(revoked)
        eventually(lambda: "revoked certificates were read again" in self.project.log(), what="the list is read")
        issue = self.authority.issue
        rows = [
            ("revoked", revoked, (), "SSLV3_ALERT_CERTIFICATE_REVOKED"),
            ("none", None, (), "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            ("of another authority", other.issue("laptop", role="own"), (), "TLSV1_ALERT_UNKNOWN_CA"),
            ("self-signed", other, (), "TLSV1_ALERT_UNKNOWN_CA"),
            ("expired", issue("laptop", role="own", start=-7200, end=-3600), (), "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
            ("not valid yet", issue("laptop", role="own", start=3600), (), "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
            ("a server's", issue("laptop", role="own", usage="serverAuth"), (), "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE"),
            ("two authorities between", below.issue("laptop", role="own"), (below, between), "TLSV1_ALERT_UNKNOWN_CA"),
            ("a small key", issue("laptop", role="own", key=("rsa", 2040)), (), "SSLV3_ALERT_BAD_CERTIFICATE"),
        ]
        for what, identity, more, reason in rows:
            with self.subTest(what):
                self.assertEqual(self.refusal(identity, more_certificates=more), reason)
        self.assert_logged("Handshake refused")
        self.assertNotIn("CN=other", self.project.log(), "a stranger chooses no words of the log")
        self.assertEqual(self.connect(between.issue("x", role="own"), more_certificates=(between,)).call("ping")["id"], 1)
        self.assertEqual(self.connect(issue("x", role="own", key=("rsa", 4096))).call("ping")["id"], 1)
        self.assertEqual(self.status()["problems"], [])

    def test_too_many_bytes_of_certificates_are_refused(self):
        laptop = self.authority.issue("laptop", role="own", extra="nsComment=" + "x" * 20000 + "\n")
        with self.assertRaises((ssl.SSLError, ConnectionResetError)):
            self.connect(laptop).more()

    def client(self, *words, text=""):
        done = subprocess.run(["openssl", "s_client", "-connect", self.address, *words], input=text, capture_output=True,
                              text=True, timeout=PATIENCE)
        return done.stdout + done.stderr

    def test_older_versions_get_an_alert(self):
        for version in ("-tls1_2", "-tls1_1"):
            self.assertRegex(self.client(version, "-cipher", "ALL:@SECLEVEL=0"), "alert protocol version|alert number 70|no protocols")

    def test_what_is_negotiated(self):
        laptop = self.authority.issue("laptop", role="own")
        shown = self.client("-cert", laptop.certificate, "-key", laptop.key, "-CAfile", self.authority.certificate)
        self.assertIn("TLSv1.3", shown)
        self.assertIn("Verify return code: 0 (ok)", shown)
        self.assertIn("CN = authority", shown)  # whom it trusts
        self.assertNotIn("Post-Handshake New Session Ticket", shown)
        for group, good in (("X25519", True), ("P-256", True), ("P-384", False), ("X448", False)):
            shown = self.client("-cert", laptop.certificate, "-key", laptop.key, "-groups", group)
            self.assertEqual("Verification" in shown and "TLSv1.3, Cipher is TLS" in shown, good, group)

    def test_plain_text_gets_an_alert_and_the_end(self):
        host, port = self.address.rsplit(":", 1)
        for text in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"\x00" * 100):
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
                plain.sendall(text)
                seen = b""
                while piece := plain.recv(100):
                    seen += piece
                self.assertEqual(seen, b"\x15\x03\x01\x00\x02\x02\x46")

    def test_protocols_inside(self):
        laptop = self.authority.issue("laptop", role="own")
        self.assertEqual(self.connect(laptop, "duet-rpc/1").socket.selected_alpn_protocol(), "duet-rpc/1")
        self.assertEqual(self.connect(laptop, ["h2", "http/1.1"]).socket.selected_alpn_protocol(), "http/1.1")
        with self.assertRaisesRegex(ssl.SSLError, "no application protocol"):
            self.connect(laptop, ["h2"])

    def test_no_older_version_and_no_resumption_by_a_scan(self):
        laptop = self.authority.issue("laptop", role="own")
        session = os.path.join(self.place, "session")
        shown = self.client("-cert", laptop.certificate, "-key", laptop.key, "-sess_out", session, text="{}\n")
        self.assertNotIn("Session Ticket", shown)
        self.assertFalse(os.path.exists(session), "there is nothing to resume")


class Talking(TlsTestCase):
    def setUp(self):
        super().setUp()
        self.open_door(settings='[tls]\nlisten = "127.0.0.1:0"\n[tls.roles]\nguest = "observe"\n')
        self.laptop = self.authority.issue("laptop", role="own")

    def http(self, identity=None, **options):
        return self.connect(identity or self.laptop, "http/1.1", **options)

    def test_lines(self):
        for protocol in ("duet-rpc/1", None):
            with self.connect(self.laptop, protocol) as client:
                info = client.call("session.info")["result"]
                self.assertEqual((info["door"], info["name"], info["role"]), ("tls", "laptop", "own"))
                client.send(f"[{request('ping', 1)},{request('ping', 2)}]\r\n\n".encode())
                self.assertEqual([each["id"] for each in client.next_message()], [1, 2])
                client.send(b"{" + b"x" * (11 << 20) + b"}\n")
                self.assertEqual(client.next_message()["error"]["data"]["reason"], "oversize")
                self.assertTrue(client.call("ping")["result"]["pong"])

    def test_large_messages_both_ways(self):
        with self.connect(self.laptop, "duet-rpc/1") as client:
            id = "x" * (9 << 20)
            client.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode() + b"\n")
            self.assertEqual(client.next_message()["id"], id)

    def test_a_half_close_has_every_line_answered(self):
        client = HalfClosing(self.address, self.laptop, self.authority)
        self.addCleanup(client.plain.close)
        task = self.project.call("task.submit", params={"prompt": "sleep 0.3", "agent": "shell"})["result"]["taskId"]
        client.send((request("task.wait", 1, params={"taskId": task}) + "\n" + request("ping", 2) + '\n{"half').encode())
        client.end_output()
        self.assertEqual([each["id"] for each in client.all_lines() if "method" not in each], [1, 2])

    def test_the_task_has_the_name_of_who_submitted_it(self):
        with self.connect(self.laptop, "duet-rpc/1") as client:
            task = client.call("task.submit", params={"prompt": "true", "agent": "shell"})["result"]["taskId"]
        self.assertEqual(self.project.call("task.get", params={"taskId": task})["result"]["metadata"]["by"], "tls:laptop")
        self.assert_logged('called method="task.submit" by="tls:laptop"')

    def test_roles(self):
        rows = [
            (self.authority.issue("guest", role="own"), "observe"),
            (self.authority.issue("else", role="operate"), "operate"),
        ]
        for identity, role in rows:
            with self.connect(identity, "duet-rpc/1") as client:
                self.assertEqual(client.call("session.info")["result"]["role"], role)
                error = client.call("task.submit", params={"prompt": "true"})["error"]
                self.assertEqual((error["code"], error["data"]["needs"], error["data"]["role"]), (-32005, "own", role))

    def test_a_fingerprint_has_its_role(self):
        mobile = self.authority.issue("mobile")
        self.project.write_user_settings(
            f'[tls]\nlisten = "127.0.0.1:0"\n[tls.roles]\n"sha256:{mobile.fingerprint()}" = "operate"\n')
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.connect(mobile, "duet-rpc/1").call("session.info")["result"]["role"], "operate")

    def test_no_role_is_told_and_ended(self):
        two_roles = "own,URI:urn:duet-rpc:role:observe"
        for nobody in (self.authority.issue("nobody"), self.authority.issue("odd", role="king"),
                       self.authority.issue("two", role=two_roles)):
            shown = self.project.run("cert", "show", nobody.certificate, "--json").json()
            self.assertIsNone((shown[0] if isinstance(shown, list) else shown)["role"])
            with self.connect(nobody, "duet-rpc/1") as client:
                refusal = client.next_message()
                self.assertEqual((refusal["id"], refusal["error"]["code"]), (None, -32005))
                self.assertEqual(client.ends(), b"")
            with self.http(nobody) as client:
                answer = client.ask("POST", "/rpc", body=request("ping"))
                self.assertEqual((answer.status, answer.json()["error"]), (403, "role"))

    def test_a_certificate_without_a_name_goes_by_its_fingerprint(self):
        bare = self.authority.issue("", role="observe")
        name = self.connect(bare, "duet-rpc/1").call("session.info")["result"]["name"]
        self.assertEqual(name, bare.fingerprint().replace(":", "").lower())

    def test_http(self):
        for protocol in ("http/1.1", None):
            with self.connect(self.laptop, protocol) as client:
                answer = client.ask("POST", "/rpc", body=request("session.info"))
                self.assertEqual(answer.json()["result"]["door"], "tls")
                self.assertEqual(client.ask("GET", "/").status, 200)
                for path in ("/login", "/logout", "/nothing"):
                    self.assertEqual(client.ask("POST", path, body="{}").status, 404)
                wrong = client.ask("POST", "/rpc", {"Authorization": "Bearer duet_nonsense"}, request("ping"))
                self.assertEqual(wrong.status, 200, "no token is looked at")

    def test_http_is_for_the_names_in_the_certificate(self):
        port = self.address.rsplit(":", 1)[1]
        rows = [("localhost", 200), (f"127.0.0.1:{port}", 200), ("[::1]", 200), ("a.door.test", 200), ("a.b.door.test", 403),
                ("door.test", 403), ("127.0.0.2", 403), ("evil.test", 403)]
        with self.http() as client:
            for host, status in rows:
                self.assertEqual(client.ask("POST", "/rpc", {"Host": host}, request("ping")).status, status, host)
            for origin, status in ((f"https://{client.host}", 200), (f"http://{client.host}", 403), ("null", 403)):
                self.assertEqual(client.ask("POST", "/rpc", {"Origin": origin}, request("ping")).status, status, origin)

    def test_websocket(self):
        client = SecureWebSocket(self.address, self.laptop, self.authority)
        with client:
            self.assertEqual(client.answer_to_upgrade.status, 101)
            self.assertEqual(client.call("session.info")["result"]["door"], "tls")
            eventually(lambda: self.status()["subsystems"]["ipc"]["byDoor"] == {"unix": 1, "http": 0, "tls": 1}, what="it counts")
            self.project.run("task", "submit", "--agent", "shell", "true")
            while client.message()["method"] != "event.taskCompleted":
                pass

    def test_ipv6(self):
        self.project.write_user_settings('[tls]\nlisten = "[::1]:0"\n')
        eventually(lambda: self.tls()["address"].startswith("[::1]"), what="it has moved")
        self.address = self.tls()["address"]
        self.assertTrue(self.connect(self.authority.issue("x", role="own"), name="::1").call("ping")["result"]["pong"])

    def test_a_connection_that_is_cut_is_a_disconnect(self):
        client = self.connect(self.laptop, "duet-rpc/1")
        client.send(request("task.submit", 1, params={"prompt": "sleep 60", "agent": "shell"}).encode())  # half a line
        client.plain.close()
        os.close(client.socket.detach())
        eventually(lambda: self.status()["subsystems"]["ipc"]["byDoor"]["tls"] == 0, what="it is gone")
        self.assertEqual(self.project.call("task.list")["result"], [])

    def test_curl(self):
        url = "https://localhost:%s/rpc" % self.address.rsplit(":", 1)[1]
        done = subprocess.run(["curl", "-sS", "--cacert", self.authority.certificate, "--cert", self.laptop.certificate,
                               "--key", self.laptop.key, "-H", "Content-Type: application/json", "-d", request("ping"), url],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertTrue(json.loads(done.stdout)["result"]["pong"], done)


class Changes(TlsTestCase):
    def setUp(self):
        super().setUp()
        self.open_door()
        self.laptop = self.authority.issue("laptop", role="own")
        self.phone = self.authority.issue("phone", role="own")

    def test_a_revoked_certificate_ends_its_connections_without_a_signal(self):
        lines, http = self.connect(self.laptop, "duet-rpc/1"), self.connect(self.laptop, "http/1.1")
        socket_in_it = SecureWebSocket(self.address, self.laptop, self.authority)
        silent = self.connect(self.laptop)
        stays = self.connect(self.phone, "duet-rpc/1")
        for client in (lines, socket_in_it, stays):
            self.assertTrue(client.call("ping")["result"]["pong"])
        self.assertEqual(http.ask("POST", "/rpc", body=request("ping")).status, 200)
        self.revoke(self.laptop)
        self.assert_ended(lines)
        self.assertEqual(http.ends(), b"")
        self.assertEqual(silent.ends(), b"")
        self.assertEqual(socket_in_it.closed_with(), (1008, "session-ended"))
        self.assertEqual(self.refusal(self.laptop), "SSLV3_ALERT_CERTIFICATE_REVOKED")
        self.assertTrue(stays.call("ping")["result"]["pong"])
        socket_in_it.socket.close()

    def test_another_authority_ends_those_of_the_former(self):
        lines = self.connect(self.laptop, "duet-rpc/1")
        self.assertTrue(lines.call("ping")["result"]["pong"])
        other = Authority(self.place, "other")
        self.put("ca.pem", other.certificate)
        os.kill(self.project.pid(), signal.SIGHUP)
        self.assert_ended(lines)
        self.assertTrue(self.connect(other.issue("new", role="own")).call("ping")["result"]["pong"])
        self.assertEqual(self.refusal(self.laptop), "TLSV1_ALERT_UNKNOWN_CA")

    def test_a_new_certificate_is_shown_from_a_reload_on_and_old_connections_stay(self):
        lines = self.connect(self.laptop, "duet-rpc/1")
        new = self.authority.issue("server", usage="serverAuth", names="DNS:other.test")
        self.put("server.pem", new.certificate)
        self.put("server.key", new.key)
        reload = self.project.run("daemon", "reload")
        self.assertEqual((reload.code, reload.out), (0, "changed  tls.certificate\nchanged  tls.key\n"))
        self.assertEqual(self.project.run("daemon", "reload").out, "no setting has changed\n")
        self.assertTrue(lines.call("ping")["result"]["pong"])
        self.assertTrue(self.connect(self.laptop, name="other.test").call("ping")["result"]["pong"])

    def test_a_faulty_file_leaves_all_as_it_was(self):
        self.put("server.key", self.laptop.key)
        reload = self.project.run("daemon", "reload")
        self.assertEqual((reload.code, reload.out), (0, "no setting has changed\n"))
        self.assertRegex(reload.err, "the TLS door cannot be opened: .*does not belong")
        self.assertIn("does not belong", self.problems()["tls"])
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        with open(os.path.join(self.files, "revoked"), "w", encoding="ascii") as file:
            file.write("nonsense\n")
        eventually(lambda: "revoked:1" in self.problems()["tls"], what="the list is faulty, too")
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        self.put("server.key", self.server.key)
        self.revoke(self.phone)
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.problems(), {})

    def write_list(self, text):
        path = os.path.join(self.files, "revoked")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text)
        os.replace(path + ".new", path)  # nobody reads half of it

    def test_a_list_that_is_good_again_is_no_problem_any_more(self):
        for reload in (False, True):
            self.write_list("nonsense\n")
            if reload:
                self.assertEqual(self.project.run("daemon", "reload").code, 0)
            eventually(lambda: "revoked:1" in self.problems().get("tls", ""), what="the list is faulty")
            self.write_list("# nobody, as before\n")
            eventually(lambda: self.problems() == {}, what="the list is good again")

    def test_a_list_that_vanishes_stays_in_force(self):
        path = os.path.join(self.files, "revoked")
        self.revoke(self.phone)
        eventually(lambda: "revoked certificates were read again" in self.project.log(), what="the list is in force")
        with open(path, encoding="ascii") as file:
            text = file.read()
        for is_link, problem in ((False, "was in force and is gone"), (True, "revoked: there is no such file")):
            os.remove(path)
            if is_link:
                os.symlink("nothing", path)
                self.assertIn(problem, self.project.run("doctor").out)
            eventually(lambda: problem in self.problems().get("tls", ""), what="it is missed")
            self.assertEqual(self.refusal(self.phone), "SSLV3_ALERT_CERTIFICATE_REVOKED")
            self.assertEqual(self.project.run("daemon", "reload").code, 0)
            self.assertEqual(self.refusal(self.phone), "SSLV3_ALERT_CERTIFICATE_REVOKED")
            self.assert_refused(self.project.run("daemon", "restart"), 1, problem)
            self.write_list(text)
            eventually(lambda: self.problems() == {}, what="the list is back")
        self.write_list("")
        eventually(lambda: self.project.log().count("revoked certificates were read again") == 2, what="it has been emptied")
        self.assertTrue(self.connect(self.phone).call("ping")["result"]["pong"])
        os.remove(path)
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.problems(), {})

    def test_settings_whose_files_are_faulty_do_not_count(self):
        self.project.write_user_settings('[tls]\nlisten = "127.0.0.1:0"\nrevoked = "other"\ncertificate = "missing.pem"\n')
        eventually(lambda: "missing.pem" in self.problems().get("tls", ""), what="a file is missing")
        self.revoke(self.phone)
        eventually(lambda: "revoked certificates were read again" in self.project.log(), what="the old list is in force")
        self.assertEqual(self.refusal(self.phone), "SSLV3_ALERT_CERTIFICATE_REVOKED")
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        self.assertIn("missing.pem", self.problems()["tls"])

    def test_a_restart_that_could_not_open_it_is_refused(self):
        pid = self.project.pid()
        self.put("server.key", self.laptop.key)
        self.assert_refused(self.project.run("daemon", "restart"), 1, "the TLS door cannot be opened: .*does not belong")
        error = self.project.call("daemon.stop", params={"restart": True})["error"]
        self.assertRegex(error["message"], "would not start again: .*does not belong")
        self.assertEqual(self.project.pid(), pid)
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])

    def test_it_moves_to_all_addresses_at_the_same_port(self):
        lines = self.connect(self.laptop, "duet-rpc/1")
        self.assertTrue(lines.call("ping")["result"]["pong"])
        everywhere = "0.0.0.0:" + self.address.rsplit(":", 1)[1]
        with socket.create_server(("127.0.0.2", int(self.address.rsplit(":", 1)[1]))):
            self.project.write_user_settings(f'[tls]\nlisten = "{everywhere}"\n')
            eventually(lambda: "another program listens there" in self.problems().get("tls", ""), what="it cannot move")
            self.assertEqual(self.tls()["address"], self.address)
            self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        self.assertEqual(self.project.run("daemon", "reload").code, 0)
        self.assertEqual(self.tls()["address"], everywhere)
        self.assertEqual(self.problems(), {})
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        self.assertTrue(lines.call("ping", 2)["result"]["pong"])

    def test_a_certificate_that_expires_ends_its_connections(self):
        lines = self.connect(self.authority.issue("soon", role="own", end=25), "duet-rpc/1")
        self.assertTrue(lines.call("ping")["result"]["pong"])
        self.assert_ended(lines, 2 * PATIENCE)

    def test_a_role_that_changes_ends_the_connection(self):
        lines = self.connect(self.laptop, "duet-rpc/1")
        self.assertEqual(lines.call("session.info")["result"]["role"], "own")
        self.project.write_user_settings('[tls]\nlisten = "127.0.0.1:0"\n[tls.roles]\nlaptop = "observe"\n')
        self.assert_ended(lines)
        self.assertEqual(self.connect(self.laptop).call("session.info")["result"]["role"], "observe")

    def test_a_stop_tells_and_ends(self):
        lines = self.connect(self.laptop, "duet-rpc/1")
        self.assertTrue(lines.call("ping")["result"]["pong"])
        self.assertEqual(self.project.run("daemon", "stop").code, 0)
        self.assertIn(b"event.daemonStopping", lines.ends())


class Crowds(TlsTestCase):
    def setUp(self):
        super().setUp()
        self.open_door(settings='[tls]\nlisten = "127.0.0.1:0"\nmax_connections = 3\n')
        self.laptop = self.authority.issue("laptop", role="own")

    def half_open(self, count, data=b""):
        host, port = self.address.rsplit(":", 1)
        for _ in range(count):
            plain = socket.create_connection((host, int(port)), timeout=PATIENCE)
            self.addCleanup(plain.close)
            plain.sendall(data)

    def test_those_who_stop_half_way_keep_nobody_out(self):
        self.half_open(200)
        self.half_open(200, b"\x16\x03\x01\x02\x00\x01")
        self.assertTrue(self.connect(self.laptop).call("ping")["result"]["pong"])
        self.assertTrue(self.project.call("ping")["result"]["pong"])

    def test_there_are_no_more_than_the_settings_say(self):
        clients = [self.connect(self.laptop, "duet-rpc/1") for _ in range(3)]
        for client in clients:
            self.assertTrue(client.call("ping")["result"]["pong"])
        with self.connect(self.laptop, "duet-rpc/1") as refused:
            self.assertEqual(refused.next_message()["error"]["code"], -32003)
            self.assertEqual(refused.ends(), b"")
        with self.connect(self.laptop, "http/1.1") as refused:
            answer = refused.response()
            self.assertEqual((answer.status, answer.json()["error"]), (503, "busy"))
        clients.pop().socket.close()
        eventually(lambda: self.status()["subsystems"]["ipc"]["byDoor"]["tls"] == 2, what="one has gone")
        self.assertTrue(self.connect(self.laptop, "duet-rpc/1").call("ping")["result"]["pong"])


if __name__ == "__main__":
    suite.main()
