#include "task/postgres/report.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/base/base64.h"
#include "duet/rpc/value.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::UtcTime noon{1'800'000'000s};
constexpr std::size_t first_of_ends = 1;  // in arguments_of()
constexpr std::size_t behind_ends = 19;

End ended(const Outcome& outcome) {
  const base::VirtualClock clock{noon};
  End end{.run = {7, 1}, .fence = 31};
  tell_outcome(end, outcome, clock);
  return end;
}

/// How many elements an array literal of one dimension has.
std::size_t size_of(const std::string& array) {
  if (array == "{}") return 0;
  std::size_t commas = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < array.size(); ++at) {
    if (array[at] == '\\') {
      ++at;
    } else if (array[at] == '"') {
      quoted = !quoted;
    } else if (array[at] == ',' && !quoted) {
      ++commas;
    }
  }
  return commas + 1;
}

TEST(PostgresReport, TimesAreHowLongAgoAndNeverToCome) {
  const base::VirtualClock clock{noon};
  EXPECT_EQ(ago_of(clock, noon - 1500ms), 1500);
  EXPECT_EQ(ago_of(clock, noon + 1h), 0);
}

TEST(PostgresReport, AnExitIsItsCode) {
  const End end = ended({.kind = Outcome::Kind::exited,
                         .code = 3,
                         .started = Started{100, noon - 5s},
                         .ended_at = noon - 1s,
                         .result = "out"});
  EXPECT_FALSE(end.ok);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.failure->reason, Reason::exit);
  EXPECT_EQ(end.started_ago, 5000);
  EXPECT_EQ(end.ended_ago, 1000);
  EXPECT_EQ(end.result, "out");
  EXPECT_TRUE(ended({.kind = Outcome::Kind::exited, .code = 0}).ok);
  EXPECT_FALSE(ended({.kind = Outcome::Kind::exited, .code = 0, .timed_out = true}).ok);
}

TEST(PostgresReport, ASignalIsItsName) {
  const End end = ended({.kind = Outcome::Kind::signalled, .signal = 9});
  EXPECT_EQ(end.signal, "SIGKILL");
  EXPECT_EQ(end.code, std::nullopt);
}

TEST(PostgresReport, WhatNeverStartedHasNoResult) {
  const End end = ended({.kind = Outcome::Kind::not_started, .problem = "no such program"});
  EXPECT_EQ(end.failure->reason, Reason::spawn);
  EXPECT_FALSE(end.result);
  EXPECT_FALSE(end.started);
}

TEST(PostgresReport, WithNothingToTellAllArraysAreEmpty) {
  const std::vector<Argument> arguments = arguments_of({});
  ASSERT_EQ(arguments.size(), 20U);
  EXPECT_EQ(arguments.front(), std::nullopt);
  EXPECT_EQ(arguments.back(), std::nullopt);
  for (std::size_t at = first_of_ends; at < behind_ends; ++at) EXPECT_EQ(arguments.at(at), "{}");
}

RC_GTEST_PROP(PostgresReport, EveryEndHasAnElementInEveryArray, ()) {
  Report report;
  const auto kinds = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
  for (const int kind : kinds) {
    Outcome outcome{.kind = static_cast<Outcome::Kind>(kind), .ended_at = noon};
    outcome.problem = *rc::gen::arbitrary<std::string>();
    outcome.result = *rc::gen::arbitrary<std::string>();
    if (*rc::gen::arbitrary<bool>()) outcome.started = Started{5, noon};
    if (*rc::gen::arbitrary<bool>()) outcome.usage = Usage{};
    report.ends.push_back(ended(outcome));
    if (*rc::gen::arbitrary<bool>()) {
      report.ends.back().hold = 5s;
      report.ends.back().hold_text = "held, \"until\" {then}";
    }
  }
  const std::vector<Argument> arguments = arguments_of(report);
  for (std::size_t at = first_of_ends; at < behind_ends; ++at) RC_ASSERT(size_of(*arguments.at(at)) == kinds.size());
}

TEST(PostgresReport, OnlyTheLastPieceOfTheLastPortionIsTheLast) {
  Report report;
  report.outputs.push_back({{7, 2}, 31, {.pieces = {{0, "ab", "0e"}, {2, "c", ""}}, .total = 3, .last = true}});
  report.outputs.push_back({{8, 1}, 32, {.pieces = {{5, "d", ""}}, .total = 6, .dropped = {{1, 5}}}});
  report.outputs.push_back({{9, 1}, 33, {.total = 4, .last = true}});
  const boost::json::array told = rpc::parse_value(arguments_of(report).back().value()).as_array();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told.at(0), rpc::parse_value(R"({"task":7,"fence":31,"attempt":2,"total":3,"dropped":[],"last":false,)"
                                         R"("offset":0,"bytes":"YWI=","marks":"0e"})"));
  EXPECT_EQ(told.at(1).as_object().at("last"), true);
  EXPECT_EQ(told.at(2).as_object().at("last"), false);
  EXPECT_EQ(told.at(2).as_object().at("dropped"), rpc::parse_value("[[1,5]]"));
  EXPECT_EQ(told.at(3), rpc::parse_value(R"({"task":9,"fence":33,"attempt":1,"total":4,"dropped":[],"last":true,)"
                                         R"("offset":4,"bytes":"","marks":""})"))
      << "without pieces it says of the whole that it is all there";
}

TEST(PostgresReport, AClaimIsToldSoThatItsTaskCanComeBackAsItWas) {
  const std::string claim = claim_text({.agent = "shell",
                                        .group = "say \"x\"",
                                        .priority = 5,
                                        .retries = 2,
                                        .on_lost = OnLost::retry,
                                        .body = R"({"prompt":"p"})"});
  const boost::json::object told = rpc::parse_value("{" + claim + "}").as_object();
  EXPECT_EQ(told.at("retries"), 2);
  EXPECT_EQ(told.at("onLost"), 1) << "else a task that a failover lost would come back as another one";
  EXPECT_EQ(told.at("agent"), "shell");
  EXPECT_EQ(told.at("group"), "say \"x\"");
  EXPECT_EQ(told.at("priority"), 5);
  EXPECT_EQ(told.at("body"), R"({"prompt":"p"})");
}

TEST(PostgresReport, AClaimTellsAllThatALostTaskNeedsToComeBack) {
  Submission asked{.prompt = std::string(2'000, 'p'), .key = "K"};
  asked.labels["a"] = "b";
  const std::string claim = claim_text(
      {.agent = "shell", .group = "g", .needs = "big\x1fgpu", .submitter = "one", .has_env = true, .body = "{}"});
  const boost::json::object told = rpc::parse_value("{" + claim + "," + request_text(asked) + "}").as_object();
  EXPECT_EQ(told.at("needs"), "big\x1fgpu") << "also what a limit or a name needs, which the body does not say";
  EXPECT_EQ(told.at("submitter"), "one");
  EXPECT_EQ(told.at("hasEnv"), true) << "else it would be restarted without";
  EXPECT_EQ(told.at("key"), "K") << "else a rule of another daemon would fire again";
  EXPECT_EQ(text_in(told, "prompt"), prompt_text(asked.prompt)) << "its beginning";
  EXPECT_EQ(told.at("labels"), R"({"a":"b"})");
  EXPECT_EQ(text_in(told, "metadata"), shown_metadata_text(asked));
}

TEST(PostgresReport, AClaimOfAPlainTaskTellsNoMore) {
  const std::string text =
      "{" + claim_text({.agent = "shell", .group = "g", .body = "{}"}) + "," + request_text({.prompt = "p"}) + "}";
  const boost::json::object told = rpc::parse_value(text).as_object();
  for (const char* const name : {"needs", "submitter", "hasEnv", "key", "labels"}) {
    EXPECT_FALSE(told.contains(name)) << name;
  }
}

}  // namespace
}  // namespace duet::task::postgres
