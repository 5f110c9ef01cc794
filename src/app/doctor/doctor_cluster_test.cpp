#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "app/doctor/cluster_facts.h"

namespace duet::app {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

ClusterFacts sound() {
  ClusterFacts facts;
  facts.server = "duet@db1:5432/work";
  facts.tls = "TLSv1.3";
  facts.ssl_mode = "verify-full";
  facts.user = "duet";
  facts.schema = "duet";
  facts.schema_version = 1;
  facts.own_version = 1;
  facts.oldest = 1;
  facts.project = facts.own_project = "site";
  facts.server_version = 150004;
  facts.encoding = "UTF8";
  facts.fsync = facts.full_page_writes = facts.synchronous_commit = facts.autovacuum = "on";
  facts.synchronous_standby_names = "db2";
  facts.standbys = 1;
  facts.wakes = true;
  facts.timeline = facts.known_timeline = 3;
  facts.rows = {{"task", 1000, 4000}, {"meta", 1, 900}};
  facts.clock_apart = 40ms;
  facts.connections_left = 80;
  facts.notify_queue = 0.0;
  return facts;
}

/// The one finding that is not good when one fact is another one.
Finding with(const std::function<void(ClusterFacts&)>& change) {
  ClusterFacts facts = sound();
  change(facts);
  const std::vector<Finding> findings = check_cluster(facts);
  EXPECT_EQ(std::ranges::count_if(findings, [](const Finding& f) { return f.verdict != Verdict::good; }), 1);
  const auto bad = std::ranges::find_if(findings, [](const Finding& f) { return f.verdict != Verdict::good; });
  return bad == findings.end() ? Finding{"none", Verdict::good, ""} : *bad;
}

void expect(const Finding& finding, Verdict verdict, const std::string& subject, const std::string& part) {
  EXPECT_EQ(finding.subject, subject);
  EXPECT_EQ(finding.verdict, verdict) << finding.text;
  EXPECT_NE(finding.text.find(part), std::string::npos) << finding.text;
}

TEST(DoctorOfClusters, HasARowForEachThingAndNothingAgainstASoundOne) {
  const std::vector<Finding> findings = check_cluster(sound());
  EXPECT_EQ(findings.size(), 22U);
  for (const Finding& finding : findings) EXPECT_EQ(finding.verdict, Verdict::good) << finding.subject << finding.text;
}

TEST(DoctorOfClusters, OneThatCannotBeReachedIsAllThatIsSaid) {
  const auto findings = check_cluster({.server = "duet@db1:5432/work", .unreachable = "connection refused"});
  ASSERT_EQ(findings.size(), 1U);
  expect(findings[0], Verdict::wrong, "cluster", "connection refused");
}

TEST(DoctorOfClusters, TlsIsVerifiedUnlessTheServerIsHere) {
  expect(with([](auto& f) { f.tls = ""; }), Verdict::wrong, "cluster tls", "there is none");
  expect(with([](auto& f) { f.ssl_mode = "require"; }), Verdict::wrong, "cluster tls", "the right server");
  ClusterFacts here = sound();
  here.is_here = true;
  here.tls = here.ssl_mode = "";
  EXPECT_EQ(check_cluster(here).at(1).verdict, Verdict::good);
}

TEST(DoctorOfClusters, ASuperuserIsAFault) {
  expect(with([](auto& f) { f.is_superuser = true; }), Verdict::wrong, "cluster role", "duet_worker");
}

TEST(DoctorOfClusters, ARoleThatMayNotJoinIsToldWhatItLacks) {
  ClusterFacts none = sound();
  none.may_join = none.may_run = false;
  none.schema_version.reset();
  none.schema_fault = "permission denied for schema duet";
  const auto findings = check_cluster(none);
  expect(findings.at(2), Verdict::wrong, "cluster role", "GRANT duet_worker TO duet, or duet_client if");
  expect(findings.at(3), Verdict::note, "cluster schema", "permission denied");
  EXPECT_EQ(findings.at(3).text.find("cluster init"), std::string::npos);
  expect(with([](auto& f) { f.may_join = f.may_run = false; }), Verdict::note, "cluster role", "may not join");
  expect(with([](auto& f) { f.may_run = false; }), Verdict::note, "cluster role", "GRANT duet_worker TO duet, or set");
  ClusterFacts client = sound();
  client.may_run = client.wants_to_run = false;
  EXPECT_EQ(check_cluster(client).at(2).verdict, Verdict::good);
}

TEST(DoctorOfClusters, ANameThatAnotherWorkerHasIsAFault) {
  expect(with([](auto& f) { f.name_taken = "build-3"; }), Verdict::wrong, "cluster name", "cluster forget build-3");
}

TEST(DoctorOfClusters, AHostThatDaemonsPassByIsANote) {
  expect(with([](auto& f) { f.passed_by = {"db1:5432: it is an old primary"}; }), Verdict::note, "cluster host",
         "db1:5432: it is an old primary: daemons pass it by");
}

TEST(DoctorOfClusters, TheSchemaMustFitTheProgramAndTheProject) {
  const auto schema = [](const auto& change, const std::string& part) {
    expect(with(change), Verdict::wrong, "cluster schema", part);
  };
  schema(
      [](ClusterFacts& f) {
        f.schema_version.reset();
        f.schema_fault = "no such function";
      },
      "cluster init");
  schema([](ClusterFacts& f) { f.own_version = 2; }, "cluster migrate");
  schema([](ClusterFacts& f) { f.schema_version = f.oldest = 3; }, "install a newer one");
  schema([](ClusterFacts& f) { f.project = "other"; }, "'other'");
  schema([](ClusterFacts& f) { f.is_adopted = false; }, "cluster adopt");
}

TEST(DoctorOfClusters, TheServerMustKeepWhatItSays) {
  expect(with([](auto& f) { f.server_version = 130011; }), Verdict::wrong, "cluster server", "13.11: 14 or newer");
  expect(with([](auto& f) { f.encoding = "LATIN1"; }), Verdict::wrong, "cluster encoding", "LATIN1");
  expect(with([](auto& f) { f.fsync = "off"; }), Verdict::wrong, "cluster fsync", "power cut");
  expect(with([](auto& f) { f.full_page_writes = "off"; }), Verdict::wrong, "cluster full_page_writes", "power cut");
  for (const char* value : {"off", "local", "remote_write"}) {
    expect(with([&](auto& f) { f.synchronous_commit = value; }), Verdict::note, "cluster synchronous_commit", value);
  }
  expect(with([](auto& f) { f.missing_timeouts = {"lock_timeout"}; }), Verdict::note, "cluster timeouts",
         "no lock_timeout");
  ClusterFacts apply = sound();
  apply.synchronous_commit = "remote_apply";
  EXPECT_EQ(check_cluster(apply).at(8).verdict, Verdict::good);
}

TEST(DoctorOfClusters, AMissingStandbyIsANoteAndOneThatIsWaitedForAFault) {
  expect(with([](auto& f) { f.synchronous_standby_names = ""; }), Verdict::note, "cluster standby",
         "a failover may lose the last moments");
  expect(with([](auto& f) { f.standbys = 0; }), Verdict::wrong, "cluster standby", "commits wait for db2");
}

TEST(DoctorOfClusters, WithoutWakeUpsTasksStartByPolling) {
  expect(with([](auto& f) { f.is_pooled = true; }), Verdict::note, "cluster pooler", "polling");
  expect(with([](auto& f) { f.wakes = false; }), Verdict::note, "cluster wake-ups", "polling");
}

TEST(DoctorOfClusters, AnOldPrimaryIsKnownByItsTimeline) {
  expect(with([](auto& f) { f.timeline = 2; }), Verdict::wrong, "cluster timeline", "old primary");
  expect(with([](auto& f) { f.timeline = 4; }), Verdict::note, "cluster timeline", "failover");
  expect(with([](auto& f) { f.outdated = "this daemon has seen 4"; }), Verdict::wrong, "cluster timeline", "seen 4");
}

TEST(DoctorOfClusters, WhatMakesAQueueSlowIsNamed) {
  expect(with([](auto& f) {
           f.oldest_transaction = {"4711", "psql", 6min};
         }),
         Verdict::wrong, "cluster transactions", "pid 4711 (psql) has one open for 6 min");
  expect(with([](auto& f) { f.hidden_sessions = 2; }), Verdict::note, "cluster transactions", "pg_read_all_stats");
  expect(with([](auto& f) { f.rows = {{"task", 1000, 5001}}; }), Verdict::wrong, "cluster dead rows", "task has 5001");
  expect(with([](auto& f) { f.autovacuum = "off"; }), Verdict::wrong, "cluster autovacuum", "ALTER SYSTEM");
  expect(with([](auto& f) { f.tables_without_vacuum = {"task"}; }), Verdict::wrong, "cluster autovacuum", "for task");
  expect(with([](auto& f) { f.invalid_indexes = {"task_new"}; }), Verdict::wrong, "cluster indexes", "task_new");
  expect(with([](auto& f) { f.connections_left = 1; }), Verdict::wrong, "cluster connections", "1 left");
  expect(with([](auto& f) { f.connections_left = 3; }), Verdict::note, "cluster connections", "3 left");
  expect(with([](auto& f) { f.notify_queue = 0.2; }), Verdict::wrong, "cluster notify queue", "20 % full");
}

TEST(DoctorOfClusters, AClockThatIsApartIsForPeopleToKnow) {
  expect(with([](auto& f) { f.clock_apart = 6s; }), Verdict::note, "cluster clock", "6 s ahead");
  expect(with([](auto& f) { f.clock_apart = -70s; }), Verdict::note, "cluster clock", "70 s behind");
}

TEST(DoctorOfClusters, ALogWithPromptsIsAFault) {
  expect(with([](auto& f) { f.logs_parameters = "log_statement"; }), Verdict::wrong, "cluster server log",
         "by log_statement it holds parameters");
}

}  // namespace
}  // namespace duet::app
