#include "app/view/cluster_view.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace duet::app {
namespace {

std::string page(const char* json, std::optional<std::size_t> width = 100) {
  return cluster_page(boost::json::parse(json).as_object(), TextStyle(false), width);
}

constexpr const char* whole = R"({
  "worker": "build-3", "project": "site", "schema": "duet",
  "workers": [
    {"name": "build-3", "state": "live", "running": 2, "slots": 3, "labels": ["gpu", "os=debian"], "version": "0.3.0",
     "beatAgeMs": 4200},
    {"name": "build-4", "state": "silent", "running": 1, "slots": 3, "labels": [], "version": "0.3.0", "beatAgeMs": 130000}],
  "lanes": [
    {"agent": "claude", "group": "default", "needs": [], "queued": 7, "running": 3, "workers": ["build-3", "build-4"]},
    {"agent": "claude", "group": "default", "needs": ["tpu"], "queued": 1, "running": 0, "workers": [], "waitingFor": "no worker with tpu"}],
  "database": {"primary": "duet@db1:5432/work", "timeline": 3, "roundTripMs": 0.4, "wakeUps": "listen", "pooler": false,
    "insecure": true, "synchronousStandbys": 0, "oldestTransaction": {"pid": 4711, "application": "psql", "ageMs": 2000},
    "deadRows": 120, "liveRows": 509, "unnumberedEvents": 0, "schemaVersion": 1}})";

TEST(ClusterView, ShowsWorkersLanesAndTheDatabase) {
  EXPECT_EQ(page(whole),
            "NAME                STATE   RUNNING/SLOTS  BEAT AGE  VERSION  LABELS\n"
            "build-3 (this one)  live    2/3            4.2s      0.3.0    gpu, os=debian\n"
            "build-4             silent  1/3            2m 10s    0.3.0\n"
            "\n"
            "AGENT   GROUP    NEEDS  QUEUED  RUNNING  WORKERS\n"
            "claude  default         7       3        build-3, build-4\n"
            "claude  default  tpu    1       0        no worker with tpu\n"
            "\n"
            "primary               duet@db1:5432/work\n"
            "timeline              3\n"
            "schema version        1\n"
            "round trip            0.4 ms\n"
            "wake-ups              listen\n"
            "pooler                no\n"
            "synchronous standbys  0: a failover may lose the last moments\n"
            "oldest transaction    2s, pid 4711 (psql)\n"
            "dead rows             120, beside 509 live ones\n"
            "unnumbered events     0\n"
            "insecure: the server's certificate is not verified\n");
}

TEST(ClusterView, WhatIsNotKnownIsLeftOpen) {
  const std::string text = page(R"({"workers": [{"name": "a"}], "database": {"trouble": "nobody answers"}})");
  EXPECT_NE(text.find("a     -      -/-"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing waits\n"), std::string::npos) << text;
  EXPECT_NE(text.find("timeline              -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("trouble: nobody answers\n"), std::string::npos) << text;
}

TEST(ClusterView, FitsTheTerminal) {
  for (const std::size_t width : {40U, 60U}) {
    const std::string text = page(whole, width);
    for (std::size_t at = 0; at < text.find("\nprimary");) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };  // in a character
      EXPECT_LE(line.size() - static_cast<std::size_t>(std::ranges::count_if(line, follows)), width) << line;
      at = end + 1;
    }
  }
}

}  // namespace
}  // namespace duet::app
