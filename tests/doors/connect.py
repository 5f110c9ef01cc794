#!/usr/bin/env python3
"""Commands that ask a daemon of another machine, over TLS."""

import json
import os
import re
import signal
import socket
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
import suite  # noqa: E402
from daemon import PATIENCE, eventually  # noqa: E402
from project import Process  # noqa: E402
from proxy import Proxy  # noqa: E402
from terminal import Terminal  # noqa: E402
from tls_client import Authority, TlsTestCase  # noqa: E402

LONG = 240  # for what takes several connections
DAY = 86400


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class FarTestCase(TlsTestCase):
    """A project whose daemon has its TLS door open, and a laptop, which has another home and knows it by --connect."""

    def setUp(self):
        super().setUp()
        self.laptop = self.new_project("laptop")
        self.identity = os.path.join(self.laptop.home, ".config", "duet-rpc", "tls", "client.pem")
        os.makedirs(os.path.dirname(self.identity))
        self.mine = self.carry("laptop", role="own")

    def write_identity(self, text):
        with open(os.open(self.identity, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text)

    def carry(self, name, issuer=None, **wishes):
        """The laptop shows another certificate; it trusts the daemon's authority whoever has made that."""
        mine = (issuer or self.authority).issue(name, **wishes)
        self.write_identity(read(mine.key) + read(mine.certificate) + read(self.authority.certificate))
        return mine

    def open_door(self, address="127.0.0.1:0"):
        super().open_door(f"--tls={address}", settings="")
        self.pid = self.project.pid()
        self.url = f"tls://{self.address}"

    def far(self, *words, url=None, **options):
        """Runs a command on the laptop."""
        return self.laptop.run(*words, "--connect", url or self.url, **options)

    def assert_pong(self, result):
        self.assertEqual(result.code, 0, result)
        self.assertTrue(result.json()["pong"])


class Asking(FarTestCase):
    def test_every_way_to_say_where_and_who(self):
        self.open_door()
        self.assert_pong(self.far("call", "ping"))
        self.assert_pong(self.laptop.run("--connect", self.url, "call", "ping"))
        self.assert_pong(self.laptop.run("call", "ping", env={"DUET_RPC_CONNECT": self.url}))
        named = os.path.join(self.laptop.home, "another.pem")
        os.rename(self.identity, named)
        self.assert_pong(self.far("call", "ping", "--identity", named))
        self.assert_pong(self.far("call", "ping", env={"DUET_RPC_IDENTITY": named}))
        self.assert_refused(self.far("call", "ping"), 1, "no identity at .*tls/client.pem", "cert client", "--identity")

    def test_flags_go_over_the_environment(self):
        self.open_door()
        here = {"DUET_RPC_CONNECT": "tls://127.0.0.1:1", "DUET_RPC_IDENTITY": "/nowhere"}
        self.assert_pong(self.far("call", "ping", "--identity", self.identity, env=here))
        self.assert_pong(self.project.run("call", "ping", "--project", self.project.root, env=here))
        self.assert_pong(self.project.run("call", "ping", "--socket", self.project.socket, env=here))

    def test_by_ipv6_and_by_name(self):
        self.open_door("[::1]:0")
        self.assertRegex(self.url, r"^tls://\[::1\]:\d+$")
        self.assert_pong(self.far("call", "ping"))

    def test_a_tunnel_needs_the_name_of_the_server(self):
        server = self.authority.issue("server", usage="serverAuth", names="DNS:build.example")
        self.put("server.pem", server.certificate)
        self.put("server.key", server.key)
        self.open_door()
        self.assert_pong(self.far("call", "ping", "--server-name", "build.example"))
        self.assert_refused(self.far("call", "ping"), 1, "not for 127.0.0.1: it is for build.example", "--server-name")

    def test_the_commands_work_as_at_home(self):
        self.open_door()
        result = self.far("task", "submit", "echo hello; exit 3", "--agent", "shell", "--follow")
        self.assertEqual((result.code, result.out), (3, "hello\n"), result)
        self.assertEqual(self.far("task", "wait", "1").code, 3)
        self.assertEqual(self.far("task", "output", "1").out, "hello\n")
        self.assertEqual(self.far("task", "get", "1", "--json").json()["metadata"]["by"], "tls:laptop")
        self.assertIn("task-1", self.far("task", "list").out)
        self.assertEqual(self.far("queue", "pause").code, 0)
        self.assertEqual(self.far("queue", "resume").code, 0)
        self.assertEqual(self.far("daemon", "status", "--json").json()["pid"], self.pid)
        self.assertEqual(self.far("daemon", "reload").code, 0)
        self.assertEqual(self.far("automation", "status").code, 0)
        self.assert_offered("--connect", self.url)
        scheme, _, rest = self.url.partition("://")
        host, port = rest.split(":")
        bash = ("--connect", scheme, ":", f"//{host}", ":", port)
        self.assert_offered(*bash)

    def assert_offered(self, *place):
        """A shell does not wait long, and a busy machine may need longer to shake hands."""
        words = ("candidates", "task", "--", "duet-rpc", *place, "task", "get", "")
        eventually(lambda: "task-1\t" in self.laptop.run(*words).out, what="the task is offered")

    def test_the_task_works_in_the_root_there_with_the_path_there(self):
        self.open_door()
        mine = {"PATH": "/opt/of-the-laptop:" + os.environ["PATH"]}
        result = self.far("task", "submit", 'pwd; echo "$PATH"', "--agent", "shell", "--follow", env=mine)
        self.assertEqual(result.out.splitlines()[0], os.path.realpath(self.project.root), result)
        self.assertNotIn("/opt/of-the-laptop", result.out)
        self.assertNotIn("cwd", self.far("task", "get", "1", "--json").json()["metadata"])
        os.makedirs(os.path.join(self.project.root, "sub"))
        result = self.far("task", "submit", "pwd", "--agent", "shell", "--follow", "--cwd", "sub")
        self.assertEqual(result.out, os.path.realpath(self.project.root) + "/sub\n", "as written, from the root there")

    def test_files_of_lsp_are_taken_as_written(self):
        self.open_door()
        with open(os.path.join(self.laptop.root, "a.odd:3"), "w", encoding="ascii"):
            pass
        result = self.far("lsp", "hover", "a.odd:3:5", "--trace")
        sent = next(line for line in result.err.splitlines() if " sent" in line and "lsp.hover" in line)
        self.assertIn(r'"params":{"file":"a.odd","line":3,"column":5}', sent.replace("\\", ""))

    def test_a_trace_shows_the_messages_and_no_secret(self):
        self.open_door()
        result = self.far("task", "submit", "true", "--agent", "shell", "--env", "KEY=sesame", "--trace")
        self.assertIn("task.submit", result.err)
        self.assertNotIn("sesame", result.err)
        self.assertNotIn("PRIVATE", result.err)

    def test_stop_waits_for_the_end(self):
        self.open_door()
        result = self.far("daemon", "stop", "--json")
        self.assertEqual((result.code, result.json()), (0, {"stopped": True, "pid": self.pid}), result)
        self.project.wait_gone(self.pid)
        self.assertEqual(self.far("daemon", "stop", "--if-running").out, "no daemon is running\n")
        self.assert_refused(self.far("daemon", "stop"), 3, self.address)

    def test_connect_joins_stdin_and_stdout(self):
        self.open_door()
        lines = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"task.stats"}\n'
        result = self.far("connect", "--framing", "lines", input=lines.encode())
        self.assertEqual(result.code, 0, result)
        self.assertEqual([json.loads(line)["id"] for line in result.out.splitlines()], [1, 2])

    def test_an_interrupt_says_how_to_come_back(self):
        self.open_door()
        words = ("task", "submit", "sleep 60", "--agent", "shell", "--follow", "--connect", self.url, "--identity", self.identity)
        with self.laptop.popen(*words) as process:
            eventually(lambda: self.project.call("task.stats")["result"]["running"] == 1, what="the task runs")
            self.assertEqual(process.stderr.readline(), b"task-1\n")
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=LONG)[1].decode()
        self.assertIn(f"task output -f task-1 --connect {self.url} --identity {self.identity}'", err)
        self.assertEqual(self.far("task", "cancel", "1").code, 0)


class Refusing(FarTestCase):
    def test_what_is_for_one_machine_only_says_what_to_do(self):
        for words in (["daemon", "start"], ["daemon", "restart"], ["daemon", "logs"], ["token", "new", "x"], ["token", "list"],
                      ["token", "revoke", "x"], ["doctor"], ["trust"], ["lsp", "check", "x"]):
            for result in (self.far(*words, url="tls://far"), self.laptop.run("--connect=tls://far", *words)):
                self.assertEqual((result.code, result.out), (1, ""), result)
                self.assertRegex(result.err.splitlines()[0], "'--connect' does not go with this command: .*(there|machine)")
            result = self.laptop.run(*words, env={"DUET_RPC_CONNECT": "tls://far"})
            self.assert_refused(result, 1, "DUET_RPC_CONNECT", "unset it, or give --project")

    def test_start_is_for_this_machine(self):
        self.assert_refused(self.far("task", "list", "--start", url="tls://far"), 1, "--start .*there")

    def test_autostart_starts_nothing_here(self):
        self.open_door()
        self.laptop.write_user_settings("[daemon]\nautostart = true\n")
        self.assert_pong(self.far("call", "ping"))
        self.assertFalse(os.path.exists(self.laptop.state))

    def test_a_daemon_of_this_machine_does_not_pass_it_on(self):
        far = {"DUET_RPC_CONNECT": "tls://far", "DUET_RPC_IDENTITY": "/nowhere"}
        for in_front in (False, True):
            with self.subTest(in_front=in_front):
                words = ["daemon", "start", "--project", self.laptop.root] + ["--foreground"] * in_front
                with self.laptop.popen(*words, env=far) as daemon:
                    eventually(self.laptop.reachable, what="the daemon")
                    env = self.laptop.run("task", "submit", "--agent", "shell", "--follow", "--", "env")
                    self.assertEqual(env.code, 0, env)
                    self.assertNotRegex(env.out, "DUET_RPC_(CONNECT|IDENTITY)")
                    self.assertEqual(self.laptop.run("daemon", "stop").code, 0)
                    self.assertEqual(daemon.wait(PATIENCE), 0)

    def test_a_place_is_said_once(self):
        for other in ("--project=/x", "--socket=/x"):
            result = self.far("task", "list", other, url="tls://far")
            self.assertEqual(result.code, 1)
            self.assertIn("--connect says which daemon is meant", result.err)
        self.assertEqual(self.far("task", "wait", "1", "--project=/x", url="tls://far").code, 123)

    def test_what_is_no_place_is_told(self):
        for url in ("far", "https://far", "tls://far:0", "tls://far/x", "tls://::1"):
            result = self.far("task", "list", url=url)
            self.assertEqual(result.code, 1, result)
            self.assertIn("it is tls://HOST", result.err)
            result = self.laptop.run("task", "list", env={"DUET_RPC_CONNECT": url})
            self.assert_refused(result, 1, "DUET_RPC_CONNECT", "it is tls://HOST")

    def test_who_and_whose_go_with_where(self):
        for option in ("--identity", "--server-name"):
            self.assert_refused(self.laptop.run("task", "list", option, "x"), 1, f"{option} goes with --connect")


class Front:
    """A TLS server that is none of ours: it shows the certificate it is given."""

    def __init__(self, test, shown):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown.certificate, shown.key)
        self.server = socket.create_server(("127.0.0.1", 0))
        test.addCleanup(self.server.close)
        self.url = f"tls://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(context,), daemon=True).start()

    def _serve(self, context):
        while True:
            try:
                connection = self.server.accept()[0]
            except OSError:
                return
            try:
                context.wrap_socket(connection, server_side=True).recv(1)
            except OSError:
                connection.close()


class Failing(FarTestCase):
    """Each row of the table in docs/doors.md."""

    def ping(self, url, *words, **options):
        return self.far("call", "ping", *words, url=url, **options)

    def front(self, issuer=None, name="server", names="IP:127.0.0.1", **wishes):
        return Front(self, (issuer or self.authority).issue(name, usage="serverAuth", names=names, **wishes))

    def listening(self, answer=None):
        """A socket that somebody listens at, and what it answers to whoever comes."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def serve():
            with server.accept()[0] as connection:
                connection.recv(1)
                connection.sendall(answer)
                while connection.recv(1 << 16):
                    pass

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        return f"tls://127.0.0.1:{server.getsockname()[1]}"

    def test_nobody_listens(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_refused(self.ping(f"tls://{place}"), 3, re.escape(place), "Connection refused")
            follow = self.far("task", "wait", "1", url=f"tls://{place}")
            self.assert_refused(follow, 123, re.escape(place))

    def test_nobody_knows_the_host(self):
        self.assert_refused(self.ping("tls://no-such-host.invalid"), 3, "no-such-host.invalid:7443")

    def test_somebody_hangs_up(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        self.assert_refused(self.ping(f"tls://127.0.0.1:{server.getsockname()[1]}"), 3, "ended the connection")

    def test_no_answer_in_time(self):
        self.assert_refused(self.ping(self.listening(), "--timeout", "1s"), 4, "in time.*--timeout")
        result = self.far("task", "wait", "1", "--timeout", "1s", url=self.listening())
        self.assert_refused(result, 124, "in time")

    def test_the_other_end_speaks_no_tls(self):
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b'{"jsonrpc":"2.0"}\n'):
            self.assert_refused(self.ping(self.listening(answer)), 1, "speaks no TLS")

    def test_the_certificate_there_has_other_names(self):
        front = self.front(names="DNS:build.example,DNS:*.lab.example,IP:192.0.2.7")
        self.assert_refused(self.ping(front.url), 1, r"not for 127.0.0.1", r"build.example, \*.lab.example, 192.0.2.7")
        result = self.ping(front.url, "--server-name", "other.example")
        self.assert_refused(result, 1, "not for other.example")

    def test_the_common_name_does_not_count(self):
        front = self.front(name="127.0.0.1", names="")
        self.assert_refused(self.ping(front.url), 1, "no names at all")

    def test_the_certificate_there_is_of_another_ca(self):
        other = Authority(self.place, "Some Other CA")
        self.assert_refused(self.ping(self.front(other).url), 1, "no CA that .*client.pem trusts",
                            "that of .*server", "signed by .*Some Other CA")

    def test_the_certificate_there_does_not_count_now(self):
        front = self.front(start=-9 * DAY, end=-2 * DAY)
        self.assert_refused(self.ping(front.url), 1, r"has expired, on 20\d\d-\d\d-\d\dT")
        front = self.front(start=2 * DAY)
        self.assert_refused(self.ping(front.url), 1, r"not valid before 20\d\d-\d\d-\d\dT", "clock")

    def test_a_bad_identity(self):
        url = "tls://127.0.0.1:1"
        whole = read(self.identity)
        key, rest = whole[:whole.index("-----BEGIN CERT")], whole[whole.index("-----BEGIN CERT"):]
        for text, what in (("", "no certificate"), ("no PEM\n", "no certificate"), (rest, "no key"), (key, "no certificate"),
                           (key + read(self.authority.certificate), "belong together"), (whole[:200] + whole[400:], "damaged")):
            self.write_identity(text)
            self.assert_refused(self.ping(url), 1, f"identity is of no use: .*client.pem: .*{what}")
        self.write_identity(whole)
        for mode in (0o644, 0o640, 0o604):
            os.chmod(self.identity, mode)
            self.assert_refused(self.ping(url), 1, "client.pem", "others")
        os.remove(self.identity)
        self.assert_refused(self.ping(url), 1, "no identity at .*client.pem")
        os.mkdir(self.identity)
        self.assert_refused(self.ping(url), 1, "client.pem")

    def test_our_certificate_is_refused(self):
        self.open_door()
        for wishes, alert in (({"issuer": Authority(self.place, "other")}, "unknown_ca"),
                              ({"start": -9 * DAY, "end": -2 * DAY}, "certificate_expired")):
            self.carry("laptop", role="own", **wishes)
            self.assert_refused(self.ping(self.url), 1, f"refuses the certificate in .*client.pem: {alert}", "cert client")
            self.assert_refused(self.far("task", "wait", "1"), 123, alert)
            self.assert_refused(self.far("events"), 1, alert)
            self.assert_refused(self.far("connect", input=b""), 1, alert)

    def test_the_authority_of_our_certificate_has_expired_there(self):
        gone = Authority(self.place, "gone", start=-9000, end=-5400)
        self.put("ca.pem", gone.certificate)
        self.open_door()
        self.carry("laptop", role="own", issuer=gone)
        result = self.ping(self.url)
        self.assert_refused(result, 1, "certificate_expired; but it is good until 20.*'duet-rpc doctor' on that machine")
        self.assertNotIn("cert client", result.err)

    def test_the_role_is_too_small(self):
        self.open_door()
        self.carry("watcher", role="observe")
        self.assert_pong(self.ping(self.url))
        result = self.far("task", "submit", "true", "--agent", "shell")
        needs = r"task.submit: Not permitted \(-32005\): needs own, this certificate has observe"
        self.assert_refused(result, 1, needs)
        self.assert_refused(self.far("task", "submit", "true", "--follow"), 123, needs)
        self.assert_refused(self.far("daemon", "stop"), 1, "daemon.stop: Not permitted")

    def test_there_is_no_role_at_all(self):
        self.open_door()
        self.carry("nobody")
        self.assert_refused(self.ping(self.url), 1, r"Not permitted \(-32005\)")
        self.assert_refused(self.far("events"), 1, r"Not permitted \(-32005\)")


class Cut(FarTestCase):
    """Connections are cut, and what waits or follows goes on over the next one."""

    def start_counting(self):
        """A task that prints numbered lines until it is enough, or the project is gone, and then says how many."""
        script = ('i=0; until [ -e enough ] || [ ! -e .git ]; do i=$((i + 1)); echo "line $i"; sleep 0.01; done; '
                  'echo "last $i"; exit 7')
        return self.project.call("task.submit", params={"prompt": script, "agent": "shell"})["result"]["taskId"]

    def say_enough(self, proxy, cuts=4):
        eventually(lambda: proxy.cuts >= cuts, LONG, f"{cuts} cuts")
        self.touch_enough()

    def touch_enough(self):
        with open(os.path.join(self.project.root, "enough"), "w", encoding="ascii"):
            pass

    def test_no_line_of_output_is_lost_or_doubled(self):
        self.open_door()
        task = self.start_counting()
        with Proxy(self.address, every=1) as proxy:
            with self.laptop.popen("task", "output", "-f", task, "--connect", proxy.url) as process:
                self.say_enough(proxy)
                out, err = process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 7, err)
        lines = out.decode().splitlines()
        count = int(lines[-1].removeprefix("last "))
        self.assertEqual(lines[:-1], [f"line {number}" for number in range(1, count + 1)])

    def test_waiting_ends_with_the_task(self):
        self.open_door()
        task = self.start_counting()
        with Proxy(self.address, every=0.5) as proxy:
            with self.laptop.popen("task", "wait", task, "--connect", proxy.url) as process:
                self.say_enough(proxy)
                out, err = process.communicate(timeout=LONG)
        self.assertEqual((process.returncode, err), (7, b""))
        self.assertIn(task, out.decode())

    def test_no_event_is_lost_or_doubled(self):
        self.open_door()
        path = os.path.join(self.laptop.place.name, "events")

        def numbers():
            told = [json.loads(line)["params"] for line in read(path).splitlines(True) if line.endswith("\n")]
            return [params["seq"] for params in told if "seq" in params]  # output has no number

        with Proxy(self.address, every=0.5) as proxy, open(path, "wb") as out:
            with self.laptop.popen("events", "--since", "1", "--connect", proxy.url, stdout=out) as process:
                self.addCleanup(process.kill)
                while proxy.cuts < 4:
                    self.project.run("task", "submit", "true", "--agent", "shell", "--follow")
                last = self.project.call("events.subscribe", params={})["result"]["next"] - 1
                eventually(lambda: numbers()[-1:] == [last], LONG, f"event {last}")
                process.terminate()
        self.assertEqual(numbers(), list(range(1, last + 1)))

    def test_a_refusal_is_final(self):
        self.open_door()
        task = self.start_counting()
        with Proxy(self.address) as proxy:
            with self.laptop.popen("task", "output", "-f", task, "--connect", proxy.url) as process:
                self.assertEqual(process.stdout.readline(), b"line 1\n")
                self.revoke(self.mine)
                err = process.communicate(timeout=LONG)[1].decode()
            self.assertEqual(process.returncode, 123, err)
            self.assertRegex(err.splitlines()[-1], "certificate_revoked")
            self.assertLessEqual(proxy.accepted, 2, "the one that was cut, and the one that was refused")

    def test_a_daemon_that_comes_back_is_found(self):
        self.open_door()
        task = self.start_counting()
        with self.laptop.popen("task", "wait", task, "--connect", self.url) as process:
            eventually(lambda: self.status()["subsystems"]["ipc"]["byDoor"]["tls"] == 1, what="it waits")
            result = self.project.run("daemon", "restart", "--json")
            self.assertEqual(result.code, 0, result)
            self.project.pids.add(result.json()["pid"])
            self.touch_enough()
            out, err = process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 7, (out, err))

    def test_top_goes_on(self):
        self.top_goes_on(cuts=3)

    def test_top_goes_on_where_hands_are_shaken_slowly(self):
        self.top_goes_on(cuts=1, delay=0.8)

    def top_goes_on(self, cuts, delay=0):
        self.open_door()
        self.project.run("task", "submit", "true first", "--agent", "shell", "--follow")
        with Proxy(self.address, delay=delay) as proxy, Terminal() as terminal:
            environment = self.laptop.environment({"TERM": "xterm-256color"})
            ends = {"stdin": terminal.slave, "stdout": terminal.slave, "stderr": terminal.slave}
            with Process([self.laptop.program, "top", "--connect", proxy.url, "--timeout", "200s"], env=environment,
                         cwd=self.laptop.root, start_new_session=True, **ends) as process:
                self.addCleanup(process.kill)
                self.assertTrue(terminal.screen.wait_until(lambda data: b"true first" in data, LONG))
                for number in range(cuts):
                    accepted = proxy.accepted
                    proxy.cut()
                    eventually(lambda: proxy.accepted > accepted, LONG, "another connection")
                    self.project.run("task", "submit", f"true after-{number}", "--agent", "shell", "--follow")
                    self.assertTrue(terminal.screen.wait_until(lambda data, n=number: b"after-%d" % n in data, LONG))
                terminal.type(b"q")
                self.assertEqual(process.wait(LONG), 0)


if __name__ == "__main__":
    suite.main()
