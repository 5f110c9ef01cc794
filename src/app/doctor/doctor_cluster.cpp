// What the facts about a shared queue's database mean.

#include <cstdlib>
#include <utility>

#include "app/doctor/cluster_facts.h"

namespace duet::app {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr int oldest_server = 140000;
constexpr std::int64_t few_connections = 10;
constexpr std::int64_t of_a_daemon = 2;
constexpr std::int64_t few_rows = 1000;  // of a small table, whatever their ratio

Finding good(std::string subject, std::string text) { return {std::move(subject), Verdict::good, std::move(text)}; }
Finding note(std::string subject, std::string text) { return {std::move(subject), Verdict::note, std::move(text)}; }
Finding wrong(std::string subject, std::string text) { return {std::move(subject), Verdict::wrong, std::move(text)}; }

Finding check_tls(const ClusterFacts& facts) {
  if (facts.is_here) return good("cluster tls", "not needed: the server is on this machine");
  const bool is_verified = facts.ssl_mode == "verify-full";
  if (!facts.tls.empty() && is_verified) return good("cluster tls", facts.tls + ", verified in full");
  const std::string how = facts.tls.empty() ? "there is none: everybody on the way reads prompts and outputs"
                                            : facts.tls + " with sslmode " + facts.ssl_mode +
                                                  ": nobody knows whether this is the right server";
  return wrong("cluster tls", how + "; take `insecure` out of [cluster] and give the server a certificate");
}

Finding check_role(const ClusterFacts& facts) {
  const std::string subject = "cluster role";
  const std::string worker = facts.schema + "_worker";
  if (facts.is_superuser)
    return wrong(subject, facts.user + " is a superuser: make a role that is a member of " + worker +
                              ", and name it in `store`");
  const std::string cure = ": GRANT " + worker + " TO " + facts.user;
  const std::string client = facts.schema + "_client";
  if (!facts.may_join.value_or(true)) {
    const std::string text =
        facts.user + " may not join the queue" + cure + ", or " + client + " if [cluster] run is false";
    return facts.schema_version ? note(subject, text) : wrong(subject, text);
  }
  if (facts.wants_to_run && !facts.may_run.value_or(true))
    return note(subject, facts.user + " may not run tasks, so no daemon starts with it" + cure +
                             ", or set [cluster] run = false");
  return good(subject, facts.user);
}

Finding check_schema(const ClusterFacts& facts) {
  const std::string subject = "cluster schema";
  if (!facts.schema_version && !facts.may_join.value_or(true))
    return note(subject, facts.schema + ": " + facts.schema_fault);  // see the role
  if (!facts.schema_version)
    return wrong(subject, facts.schema + ": " + facts.schema_fault + "; 'duet-rpc cluster init' makes it");
  const std::string version = std::to_string(*facts.schema_version);
  const std::string own = std::to_string(facts.own_version);
  if (*facts.schema_version < facts.own_version)
    return wrong(subject, "version " + version + ", and this program needs " + own + ": 'duet-rpc cluster migrate'");
  if (facts.oldest > facts.own_version)
    return wrong(subject, "version " + version + " serves programs from " + std::to_string(facts.oldest) +
                              " on, and this one is " + own + ": install a newer one");
  if (facts.project != facts.own_project)
    return wrong(subject, "it is the queue of '" + facts.project + "', and [cluster] project is '" + facts.own_project +
                              "': one of them is mistaken, or another schema is meant");
  if (!facts.is_adopted)
    return wrong(
        subject,
        "it is a copy, made on another server or in another database, so no daemon uses it: if this is the one "
        "to use now, "
        "'duet-rpc cluster adopt --queue run|cancel'");
  return good(subject, facts.schema + ", version " + version + ", of '" + facts.project + "'");
}

Finding check_server(const ClusterFacts& facts) {
  const std::string version =
      std::to_string(facts.server_version / 10000) + "." + std::to_string(facts.server_version % 10000);
  if (facts.server_version >= oldest_server) return good("cluster server", "PostgreSQL " + version);
  return wrong("cluster server", "PostgreSQL " + version + ": 14 or newer is needed");
}

Finding check_encoding(const ClusterFacts& facts) {
  if (facts.encoding == "UTF8") return good("cluster encoding", "UTF8");
  return wrong("cluster encoding", facts.encoding +
                                       ": make a database with 'createdb --encoding=UTF8 "
                                       "--template=template0'");
}

Finding check_switch(const std::string& name, const std::string& value, const std::string& danger) {
  if (value == "on") return good("cluster " + name, "on");
  return wrong("cluster " + name, value + ": " + danger + "; ALTER SYSTEM SET " + name + " = on");
}

Finding check_commit(const ClusterFacts& facts) {
  const std::string& value = facts.synchronous_commit;
  if (value == "on" || value == "remote_apply") return good("cluster synchronous_commit", value);
  return note("cluster synchronous_commit", value + ": the queue commits what it acknowledges with `on` all the same");
}

Finding check_timeouts(const ClusterFacts& facts) {
  if (facts.missing_timeouts.empty()) return good("cluster timeouts", "the role has all three");
  std::string names;
  for (const std::string& name : facts.missing_timeouts) names += (names.empty() ? "" : ", ") + name;
  return note("cluster timeouts", facts.user + " has no " + names +
                                      ": a client that hangs may hold up others; docs/cluster.md has the lines");
}

Finding check_standby(const ClusterFacts& facts) {
  const std::string count = facts.standbys ? std::to_string(*facts.standbys) + " connected" : "nobody knows how many";
  if (!facts.synchronous_standby_names.empty() && facts.standbys.value_or(1) > 0)
    return good("cluster standby", "synchronous: " + facts.synchronous_standby_names + ", " + count);
  if (!facts.synchronous_standby_names.empty())
    return wrong("cluster standby",
                 "commits wait for " + facts.synchronous_standby_names +
                     ", and none is connected: start it, or take it out of synchronous_standby_names");
  return note("cluster standby", "none that is synchronous (" + count +
                                     "): a failover may lose the last moments; synchronous_standby_names changes that");
}

Finding check_pooler(const ClusterFacts& facts) {
  if (!facts.is_pooled) return good("cluster pooler", "none");
  return note("cluster pooler",
              "there is one: tasks start by polling, within 1.3 s; name the server itself in `store` "
              "for wake-ups");
}

Finding check_wake_ups(const ClusterFacts& facts) {
  if (facts.wakes.value_or(false)) return good("cluster wake-ups", "a probe came back");
  const std::string cure = facts.is_pooled ? "the pooler keeps them" : "is a listener blocked in an old transaction?";
  return note("cluster wake-ups", "a probe did not come back, so tasks start by polling: " + cure);
}

Finding check_timeline(const ClusterFacts& facts) {
  const std::string subject = "cluster timeline";
  if (!facts.outdated.empty()) return wrong(subject, facts.outdated);
  if (!facts.timeline || !facts.known_timeline) return note(subject, "the server does not say");
  const std::string now = std::to_string(*facts.timeline);
  const std::string known = std::to_string(*facts.known_timeline);
  if (*facts.timeline < *facts.known_timeline)
    return wrong(subject, now + ", and the queue has seen " + known + ": this is an old primary; find the present one");
  if (*facts.timeline > *facts.known_timeline)
    return note(subject, now + ", and the queue has seen " + known + " only: the next daemon takes the failover over");
  return good(subject, now + ", known");
}

Finding check_transactions(const ClusterFacts& facts) {
  const std::string subject = "cluster transactions";
  if (facts.oldest_transaction && facts.oldest_transaction->age > 5min) {
    const auto& old = *facts.oldest_transaction;
    const std::string who = "pid " + old.pid + (old.application.empty() ? "" : " (" + old.application + ")");
    return wrong(subject, who + " has one open for " + std::to_string(old.age / 1min) +
                              " min, and nothing is cleared away meanwhile: SELECT pg_terminate_backend(" + old.pid +
                              ")");
  }
  if (facts.hidden_sessions == 0) return good(subject, "none is older than 5 min");
  return note(subject, "none is older than 5 min of those that this role sees; " +
                           std::to_string(facts.hidden_sessions) +
                           " sessions it does not: GRANT pg_read_all_stats TO " + facts.user);
}

Finding check_rows(const ClusterFacts& facts) {
  std::string bad;
  for (const ClusterFacts::Rows& rows : facts.rows) {
    if (rows.dead <= few_rows || rows.dead <= 5 * rows.live) continue;
    bad += (bad.empty() ? "" : ", ") + rows.table + " has " + std::to_string(rows.dead) + " dead rows and " +
           std::to_string(rows.live) + " live ones";
  }
  if (bad.empty()) return good("cluster dead rows", "few");
  return wrong("cluster dead rows", bad +
                                        ": an old transaction, a forgotten replication slot or an autovacuum that is "
                                        "off keeps them; then VACUUM");
}

Finding check_vacuum(const ClusterFacts& facts) {
  std::string off;
  for (const std::string& table : facts.tables_without_vacuum) off += (off.empty() ? "" : ", ") + table;
  if (facts.autovacuum == "on" && off.empty()) return good("cluster autovacuum", "on");
  if (facts.autovacuum != "on")
    return wrong("cluster autovacuum", "off: the queue becomes slower by the hour; ALTER SYSTEM SET autovacuum = on");
  return wrong("cluster autovacuum", "off for " + off + ": ALTER TABLE … RESET (autovacuum_enabled)");
}

Finding check_indexes(const ClusterFacts& facts) {
  std::string names;
  for (const std::string& index : facts.invalid_indexes) names += (names.empty() ? "" : ", ") + index;
  if (names.empty()) return good("cluster indexes", "all valid");
  return wrong("cluster indexes", "not valid: " + names +
                                      ": 'duet-rpc cluster migrate' was interrupted, run it again; or "
                                      "REINDEX INDEX CONCURRENTLY");
}

Finding check_clock(const ClusterFacts& facts) {
  if (!facts.clock_apart) return note("cluster clock", "the server does not say");
  const auto apart = *facts.clock_apart;
  if (std::chrono::abs(apart) <= 5s) return good("cluster clock", "this machine and the server agree");
  return note("cluster clock", "the server is " + std::to_string(std::chrono::abs(apart) / 1s) + " s " +
                                   (apart > 0ms ? "ahead" : "behind") +
                                   ": only the times that people see are affected; is NTP running?");
}

Finding check_connections(const ClusterFacts& facts) {
  if (!facts.connections_left) return note("cluster connections", "the server does not say");
  const std::string left = std::to_string(*facts.connections_left) + " left";
  const std::string subject = "cluster connections";
  if (*facts.connections_left >= few_connections) return good(subject, left);
  const std::string text = left + ", and each daemon needs two: raise max_connections, or the limit of " + facts.user +
                           " or of the database";
  return *facts.connections_left < of_a_daemon ? wrong(subject, text) : note(subject, text);
}

Finding check_notify_queue(const ClusterFacts& facts) {
  if (!facts.notify_queue) return note("cluster notify queue", "the server does not say");
  const std::string full = std::to_string(static_cast<int>(*facts.notify_queue * 100)) + " % full";
  if (*facts.notify_queue <= 0.1) return good("cluster notify queue", full);
  return wrong("cluster notify queue", full +
                                           ": somebody LISTENs in a transaction that does not end; "
                                           "pg_stat_activity shows who");
}

Finding check_log(const ClusterFacts& facts) {
  if (facts.logs_parameters.empty()) return good("cluster server log", "has no prompts in it");
  return wrong("cluster server log", "by " + facts.logs_parameters +
                                         " it holds parameters, and with them prompts and `env`: ALTER ROLE " +
                                         facts.user +
                                         " SET log_parameter_max_length = 0, and "
                                         "log_parameter_max_length_on_error = 0");
}

std::vector<Finding> check_answering(const ClusterFacts& facts) {
  return {check_tls(facts),
          check_role(facts),
          check_schema(facts),
          check_server(facts),
          check_encoding(facts),
          check_switch("fsync", facts.fsync, "a power cut may destroy the queue"),
          check_switch("full_page_writes", facts.full_page_writes, "a power cut may destroy the queue"),
          check_commit(facts),
          check_timeouts(facts),
          check_standby(facts),
          check_pooler(facts),
          check_wake_ups(facts),
          check_timeline(facts),
          check_transactions(facts),
          check_rows(facts),
          check_vacuum(facts),
          check_indexes(facts),
          check_clock(facts),
          check_connections(facts),
          check_notify_queue(facts),
          check_log(facts)};
}

}  // namespace

std::vector<Finding> check_cluster(const ClusterFacts& facts) {
  if (!facts.unreachable.empty()) return {wrong("cluster", facts.server + ": " + facts.unreachable)};
  std::vector<Finding> findings{good("cluster", facts.server + " answers")};
  for (const std::string& host : facts.passed_by)
    findings.push_back(note("cluster host", host + ": daemons pass it by"));
  if (!facts.name_taken.empty())
    findings.push_back(wrong("cluster name", "another worker of the queue has the name '" + facts.name_taken +
                                                 "': set [cluster] name, or wait until it is lost, or run 'duet-rpc "
                                                 "cluster forget " +
                                                 facts.name_taken + "'"));
  const std::vector<Finding> more = check_answering(facts);
  findings.insert(findings.end(), more.begin(), more.end());
  return findings;
}

}  // namespace duet::app
