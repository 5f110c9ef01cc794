#!/usr/bin/env python3
"""`duet-rpc doctor` about the database of a shared queue: each thing that is wrong with a real server is found.

Usage: doctor.py --program PATH
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import server  # noqa: E402
import suite  # noqa: E402
from project import ProjectTestCase  # noqa: E402

ROWS = ("cluster", "cluster tls", "cluster role", "cluster schema", "cluster server", "cluster encoding", "cluster fsync",
        "cluster full_page_writes", "cluster synchronous_commit", "cluster timeouts", "cluster standby", "cluster pooler", "cluster wake-ups",
        "cluster timeline", "cluster transactions", "cluster dead rows", "cluster autovacuum", "cluster indexes", "cluster clock",
        "cluster connections", "cluster notify queue", "cluster server log")

ONE = None


def setUpModule():
    global ONE
    server.skip_unless_installed()
    ONE = server.Server(fsync=True)
    ONE.__enter__()
    server.install(ONE, ONE.make_database("work"))
    ONE.sql("CREATE ROLE duet LOGIN")
    ONE.sql("GRANT duet_worker TO duet")


def tearDownModule():
    ONE.__exit__()


class Doctor(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.use(ONE.url("work", "duet"))

    def use(self, store, project="site"):
        self.project.write_user_settings(f'store = "{store}"\n[cluster]\nproject = "{project}"\nname = "here"\n')

    def findings(self):
        answer = self.project.run("doctor", "--json").json()
        return {f["subject"]: f for f in answer["findings"] if f["subject"].startswith("cluster")}

    def assert_found(self, subject, verdict, text):
        finding = self.findings()[subject]
        self.assertEqual(finding["verdict"], verdict, finding)
        self.assertIn(text, finding["text"])

    def test_a_sound_server_has_nothing_against_it(self):
        findings = self.findings()
        self.assertEqual(tuple(findings), ROWS)
        self.assertEqual({s: f for s, f in findings.items() if f["verdict"] == "wrong"}, {})
        self.assertIn("a failover may lose the last moments", findings["cluster standby"]["text"])
        self.assertEqual(findings["cluster wake-ups"]["text"], "a probe came back")

    def test_a_superuser_is_a_fault(self):
        self.use(ONE.url("work"))
        self.assert_found("cluster role", "wrong", "superuser")

    def test_a_role_that_lacks_something_is_told_what(self):
        for name, grant, run, verdict, text in (("nobody", "", "true", "wrong", "GRANT duet_worker TO nobody"),
                                                ("watcher", "duet_watcher", "true", "note", "GRANT duet_worker TO watcher"),
                                                ("client", "duet_client", "true", "note", "or set [cluster] run = false"),
                                                ("client", "duet_client", "false", "good", "client")):
            with self.subTest(name, run=run):
                if not ONE.sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
                    ONE.sql(f"CREATE ROLE {name} LOGIN")
                    if grant:
                        ONE.sql(f"GRANT {grant} TO {name}")
                self.project.write_user_settings(f'store = "{ONE.url("work", name)}"\n[cluster]\nproject = "site"\nname = "here"\nrun = {run}\n')
                findings = self.findings()
                self.assertEqual(findings["cluster role"]["verdict"], verdict, findings)
                self.assertIn(text, findings["cluster role"]["text"])
                self.assertNotIn("cluster init", str(findings))
                wrong = {s for s, f in findings.items() if f["verdict"] == "wrong"}
                self.assertEqual(wrong, {"cluster role"} if verdict == "wrong" else set())

    def test_of_several_hosts_it_looks_at_the_one_that_a_daemon_works_with(self):
        standby = ONE.standby()
        try:
            both = ONE.url("work", "duet").replace("@", f"@{standby.folder.replace('/', '%2F')}:5432,") + "?target_session_attrs=any"
            self.use(both)
            findings = self.findings()
            self.assertEqual({s: f for s, f in findings.items() if f["verdict"] == "wrong"}, {})
            self.assertIn(ONE.folder, findings["cluster"]["text"])
            self.assertEqual(findings["cluster host"]["verdict"], "note")
            self.assertRegex(findings["cluster host"]["text"], f"{standby.folder}.*is a standby")
            self.use(standby.url("work", "duet") + "?target_session_attrs=any")
            self.assert_found("cluster timeline", "wrong", "is a standby")
        finally:
            ONE.standbys.remove(standby)
            standby.__exit__()

    def test_beside_a_host_elsewhere_a_socket_needs_no_tls(self):
        self.use(ONE.url("work", "duet").replace("/work", ",db.invalid:5432/work"))
        self.assert_found("cluster tls", "good", "not needed")

    def test_another_server_than_the_one_the_daemon_has_seen_is_a_fault(self):
        hello = json.loads(ONE.sql("SELECT duet.hello_v1()", "work")[0][0])
        os.makedirs(self.project.state, mode=0o700)
        with open(os.path.join(self.project.state, "cluster"), "w", encoding="utf-8") as file:
            json.dump({"queue": hello["queue"], "place": "here", "system": "1"}, file)
        self.assert_found("cluster timeline", "wrong", "system identifier")

    def test_a_name_that_another_worker_has_is_a_fault(self):
        new = ONE.sql("SELECT gen_random_uuid()")[0][0]
        told = ONE.sql(f"SELECT duet.attach_v1('here', NULL, '{{}}', '{new}', 'm', 90000, 600000, '{{}}', '{{}}', '{{}}', 3, true, '0', 1)", "work")
        self.addCleanup(ONE.sql, f"SELECT duet.leave_v1({json.loads(told[0][0])['worker']}, '{new}')", "work")
        self.assert_found("cluster name", "wrong", "cluster forget here")
        self.project.write_user_settings(f'store = "{ONE.url("work", "duet")}"\n[cluster]\nproject = "site"\nname = "there"\n')
        self.project.start()
        self.assertNotIn("cluster name", self.findings())
        self.project.run("daemon", "stop")

    def test_few_connections_are_told_of_and_too_few_are_a_fault(self):
        ONE.sql("CREATE ROLE few LOGIN CONNECTION LIMIT 4")
        ONE.sql("GRANT duet_worker TO few")
        self.use(ONE.url("work", "few"))
        self.assert_found("cluster connections", "note", "3 left")
        ONE.sql("ALTER ROLE few CONNECTION LIMIT 2")
        self.assert_found("cluster connections", "wrong", "1 left")

    def test_a_schema_that_is_not_there_and_one_of_another_project(self):
        self.use(ONE.url("postgres", "duet"))
        self.assert_found("cluster schema", "wrong", "cluster init")
        self.use(ONE.url("work", "duet"), project="other")
        self.assert_found("cluster schema", "wrong", "the queue of 'site'")

    def test_settings_of_the_server_that_lose_or_tell_something(self):
        for setting, value, subject, text in (("full_page_writes", "off", "cluster full_page_writes", "power cut"),
                                              ("autovacuum", "off", "cluster autovacuum", "ALTER SYSTEM"),
                                              ("log_min_duration_statement", "100", "cluster server log", "log_min_duration"),
                                              ("synchronous_standby_names", "nobody", "cluster standby", "commits wait")):
            with self.subTest(setting):
                ONE.set(**{setting: value})
                self.addCleanup(ONE.sql, "SELECT pg_reload_conf()")
                self.addCleanup(ONE.sql, f"ALTER SYSTEM RESET {setting}")
                server.eventually("the server has taken it", lambda s=setting, v=value: ONE.sql(f"SHOW {s}") == [[v]] or
                                  ONE.sql(f"SELECT setting FROM pg_settings WHERE name = '{s}'") == [[v]])
                self.assert_found(subject, "wrong", text)
                ONE.sql(f"ALTER SYSTEM RESET {setting}")
                ONE.sql("SELECT pg_reload_conf()")

    def test_a_role_that_would_commit_with_less_loses_nothing(self):
        ONE.sql("ALTER ROLE duet SET synchronous_commit = off")
        self.addCleanup(ONE.sql, "ALTER ROLE duet RESET synchronous_commit")
        self.assert_found("cluster synchronous_commit", "note", "off: the queue commits what it acknowledges with `on`")

    def status(self):
        return json.loads(ONE.sql("SELECT duet.read_status_v1()", "work", "duet")[0][0])

    def test_a_vacuum_is_nobodys_old_transaction(self):
        ONE.sql("CREATE TABLE public.slow WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_threshold = 1,"
                " autovacuum_vacuum_scale_factor = 0) AS SELECT repeat('x', 500) AS x FROM generate_series(1, 20000)", "work")
        self.addCleanup(ONE.sql, "DROP TABLE public.slow", "work")
        ONE.sql("DELETE FROM public.slow", "work")
        self.addCleanup(ONE.sql, "SELECT pg_reload_conf()")
        self.addCleanup(ONE.sql, "ALTER SYSTEM RESET autovacuum_naptime")
        ONE.set(autovacuum_naptime="1s")
        server.eventually("a table is vacuumed", lambda: ONE.sql(
            "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' AND datname = 'work' AND query LIKE '%slow%'"))
        self.assertIsNone(self.status()["oldestTransaction"])

    def test_who_may_not_see_standbys_does_not_say_that_there_are_none(self):
        self.assertEqual(self.status()["synchronousStandbys"], 0)
        ONE.sql("REVOKE pg_read_all_stats FROM duet_owner")
        self.addCleanup(ONE.sql, "GRANT pg_read_all_stats TO duet_owner")
        self.assertIsNone(self.status()["synchronousStandbys"])

    def test_an_invalid_index_and_a_table_without_vacuum(self):
        ONE.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'duet.lane_of'::regclass", "work")
        self.addCleanup(ONE.sql, "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'duet.lane_of'::regclass", "work")
        ONE.sql("ALTER TABLE duet.event SET (autovacuum_enabled = false)", "work")
        self.addCleanup(ONE.sql, "ALTER TABLE duet.event RESET (autovacuum_enabled)", "work")
        self.assert_found("cluster indexes", "wrong", "lane_of")
        self.assert_found("cluster autovacuum", "wrong", "event")

    def test_an_old_primary_is_known_by_what_the_daemon_has_seen(self):
        hello = json.loads(ONE.sql("SELECT duet.hello_v1()", "work")[0][0])
        os.makedirs(self.project.state, mode=0o700)
        with open(os.path.join(self.project.state, "cluster"), "w", encoding="utf-8") as file:
            json.dump({"queue": hello["queue"], "place": "here", "system": hello["system"], "timeline": 9}, file)
        self.assert_found("cluster timeline", "wrong", "old primary")

    def test_tasks_of_this_machine_keep_a_daemon_from_starting(self):
        self.project.write_user_settings("default_agent = 'shell'\n")
        self.project.start()
        self.project.call("task.submit", params={"prompt": "true", "delaySeconds": 3600})
        self.project.run("daemon", "stop")
        self.use(ONE.url("work", "duet"))
        start = self.project.run("daemon", "start")
        findings = self.project.run("doctor", "--json").json()["findings"]
        self.assertFalse([f for f in findings if "may be started here" in f["text"]])
        self.assertTrue([f for f in findings if f["verdict"] == "wrong" and f["text"] in start.err], (findings, start))

    def test_a_pooler_is_noticed(self):
        if not server.Bouncer.installed():
            self.skipTest("pgbouncer is not installed")
        with server.Bouncer(ONE) as pooler:
            self.use(pooler.url("work", "duet"))
            findings = self.findings()
        self.assertEqual(findings["cluster pooler"]["verdict"], "note")
        self.assertEqual({s for s, f in findings.items() if f["verdict"] == "wrong"}, set())

    def test_one_that_is_not_there_is_all_that_is_said(self):
        self.use("postgresql://duet@127.0.0.1:1/work")
        self.assertEqual(list(self.findings()), ["cluster"])
        self.assert_found("cluster", "wrong", "127.0.0.1")


if __name__ == "__main__":
    suite.main()
