#include "task/postgres/server_check.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::task::postgres {
namespace {

using Kind = Objection::Kind;

boost::json::object hello() {
  return rpc::parse_value(R"({"version":1,"oldest":1,"project":"site","queue":"q","system":"5","timeline":2,)"
                          R"("serverTimeline":2,"newestEventMs":1000,"recovery":false,"adopted":true})")
      .as_object();
}

const WorkerMemory memory{.queue = "q", .system = "5", .timeline = 2, .newest_event_ms = 1000};

/// With one member changed.
std::vector<Kind> kinds(const char* name, const boost::json::value& value, const WorkerMemory& seen = memory) {
  boost::json::object changed = hello();
  changed[name] = value;
  std::vector<Kind> out;
  for (const Objection& objection : objections_to(changed, seen, "site")) out.push_back(objection.kind);
  return out;
}

using Kinds = std::vector<Kind>;

TEST(ServerCheck, NothingSpeaksAgainstTheServerThatIsKnownOrAFailover) {
  EXPECT_EQ(kinds("serverTimeline", 2), Kinds{});
  EXPECT_EQ(kinds("serverTimeline", 3), Kinds{});
  EXPECT_EQ(kinds("serverTimeline", 2, {}), Kinds{}) << "nothing is remembered";
}

TEST(ServerCheck, EachFaultHasItsKind) {
  EXPECT_EQ(kinds("recovery", true), Kinds{Kind::standby});
  EXPECT_EQ(kinds("version", 0), Kinds{Kind::version});
  EXPECT_EQ(kinds("oldest", 2), Kinds{Kind::version});
  EXPECT_EQ(kinds("project", "other"), Kinds{Kind::project});
  EXPECT_EQ(kinds("adopted", false), Kinds{Kind::copy});
  EXPECT_EQ(kinds("system", "6"), Kinds{Kind::copy});
  EXPECT_EQ(kinds("serverTimeline", 1), Kinds{Kind::old_primary});
  EXPECT_EQ(kinds("serverTimeline", 1, {}), Kinds{Kind::old_primary}) << "the queue itself knows";
  WorkerMemory seen = memory;
  seen.newest_event_ms = 70'000;
  EXPECT_EQ(kinds("timeline", 2, seen), Kinds{Kind::backup});
}

TEST(ServerCheck, OnAnotherServerTimelinesBeginAnew) {
  boost::json::object copy = hello();
  copy["adopted"] = false;
  copy["system"] = "6";
  copy["serverTimeline"] = 1;
  const std::vector<Objection> all = objections_to(copy, memory, "other");
  ASSERT_EQ(all.size(), 2U) << "all of them, so that who adopts it sees that it is another project's";
  EXPECT_EQ(all[0].kind, Kind::project);
  EXPECT_EQ(all[1].kind, Kind::copy);
}

TEST(ServerCheck, WhatMayPassIsNoRefusalForGood) {
  EXPECT_TRUE((Objection{Kind::old_primary, ""}.may_pass()));
  EXPECT_TRUE((Objection{Kind::standby, ""}.may_pass()));
  EXPECT_FALSE((Objection{Kind::copy, ""}.may_pass()));
}

}  // namespace
}  // namespace duet::task::postgres
