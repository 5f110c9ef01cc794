#include "duet/peer/calls.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/log_tape_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using Cause = Outcome::Cause;

struct Setting {
  base::VirtualClock clock;
  base::LogTape tape;
  Calls calls{tape.log()};
  std::vector<std::pair<std::uint64_t, Outcome>> outcomes;

  std::uint64_t add(base::Duration patience = 30s) {
    const std::uint64_t next = last + 1;
    last = calls.add(patience, [this, next](Outcome outcome) { outcomes.emplace_back(next, std::move(outcome)); });
    EXPECT_EQ(last, next);
    calls.start_clocks(clock.now());
    return last;
  }
  bool answer(const std::string& text) {
    const rpc::Message message = rpc::decode(text, rpc::Batches::allowed);
    EXPECT_EQ(message.kind, rpc::Message::Kind::response);
    return calls.handle_response(message);
  }
  void advance(base::Duration step) {
    clock.advance(step);
    for (const CallId id : calls.due(clock.now())) calls.end(id, {.cause = Cause::timed_out});
  }
  std::uint64_t last = 0;
};

TEST(Calls, GetTheirAnswersWhateverTheOrder) {
  Setting s;
  s.add();
  s.add();
  EXPECT_TRUE(s.answer(R"({"jsonrpc":"2.0","id":2,"result":{"a":1}})"));
  EXPECT_TRUE(s.answer(R"({"jsonrpc":"2.0","id":1,"result":null})"));
  ASSERT_EQ(s.outcomes.size(), 2U);
  EXPECT_EQ(s.outcomes[0].first, 2U);
  EXPECT_EQ(s.outcomes[0].second.cause, Cause::answered);
  EXPECT_EQ(s.outcomes[0].second.result, R"({"a":1})");
  EXPECT_EQ(s.outcomes[1].second.result, "null");
  EXPECT_EQ(s.calls.size(), 0U);
}

Outcome outcome_of(const std::string& rest) {
  Setting s;
  s.add();
  EXPECT_TRUE(s.answer(R"({"jsonrpc":"2.0","id":1,)" + rest + "}"));
  return s.outcomes.at(0).second;
}

TEST(Calls, ThatAreRefusedSayHow) {
  const Outcome outcome = outcome_of(R"("error":{"code":-32001,"message":"No \u0041","data":{"why":[1]}})");
  EXPECT_EQ(outcome.cause, Cause::refused);
  EXPECT_EQ(outcome.error->code(), -32001);
  EXPECT_EQ(outcome.error->message(), "No A");
  EXPECT_EQ(outcome.error->data(), R"({"why":[1]})");
}

TEST(Calls, AnErrorThatIsNoProperOneIsARefusalAllTheSame) {
  for (const std::string error : {"7", "[]", "{}", "null", R"("text")", R"({"code":"x","message":7})",
                                  R"({"code":99999999999})", R"({"code":1.5})"}) {
    const Outcome outcome = outcome_of(R"("error":)" + error);
    EXPECT_EQ(outcome.cause, Cause::refused) << error;
    EXPECT_EQ(outcome.error->code(), rpc::code::internal_error) << error;
    EXPECT_EQ(outcome.error->message(), "") << error;
  }
}

TEST(Calls, AnErrorOfNullBesideAResultIsNone) {
  const Outcome outcome = outcome_of(R"("result":5,"error":null)");
  EXPECT_EQ(outcome.cause, Cause::answered);
  EXPECT_EQ(outcome.result, "5");
}

TEST(Calls, WithoutAnAnswerTimeOut) {
  Setting s;
  s.add(30s);
  s.add(10s);
  s.advance(9s);
  EXPECT_TRUE(s.outcomes.empty());
  s.advance(1s);
  ASSERT_EQ(s.outcomes.size(), 1U);
  EXPECT_EQ(s.outcomes[0].first, 2U);
  EXPECT_EQ(s.outcomes[0].second.cause, Cause::timed_out);
  s.advance(20s);
  EXPECT_EQ(s.outcomes.size(), 2U);
}

TEST(Calls, ALateAnswerIsDropped) {
  Setting s;
  s.add(1s);
  s.advance(1s);
  EXPECT_TRUE(s.answer(R"({"jsonrpc":"2.0","id":1,"result":1})"));
  EXPECT_EQ(s.outcomes.size(), 1U);
}

TEST(Calls, AnAnsweredOneDoesNotTimeOut) {
  Setting s;
  s.add(1s);
  s.answer(R"({"jsonrpc":"2.0","id":1,"result":1})");
  s.advance(2s);
  EXPECT_EQ(s.outcomes.size(), 1U);
}

TEST(Calls, MayWaitWithoutEnd) {
  Setting s;
  s.clock.advance(1s);
  s.add(base::Duration::max());
  s.advance(24h * 365 * 100);
  EXPECT_TRUE(s.outcomes.empty());
  s.answer(R"({"jsonrpc":"2.0","id":1,"result":1})");
  EXPECT_EQ(s.outcomes.size(), 1U);
}

TEST(Calls, AResponseToNoCallOfOursIsAStray) {
  Setting s;
  s.add();
  for (const std::string id : {"0", "2", "-1", "1.0", "\"1\"", "null", "18446744073709551617", "[]"}) {
    EXPECT_FALSE(s.answer(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}")) << id;
  }
  EXPECT_FALSE(s.answer(R"({"jsonrpc":"2.0","result":1})"));
  EXPECT_TRUE(s.outcomes.empty());
}

TEST(Calls, AllFailAtOnceInTheOrderTheyWereMade) {
  Setting s;
  for (int i = 0; i < 100; ++i) s.add();
  s.calls.end_all(Cause::disconnected, [](CallId) { return true; });
  ASSERT_EQ(s.outcomes.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(s.outcomes[i].first, i + 1);
    EXPECT_EQ(s.outcomes[i].second.cause, Cause::disconnected);
  }
  s.advance(60s);
  EXPECT_EQ(s.outcomes.size(), 100U);
}

TEST(Calls, OneThatIsMadeWhileAllFailIsNotAmongThem) {
  Setting s;
  int failed = 0;
  const std::function<void(Outcome)> again = [&](const Outcome&) {
    if (++failed < 1000) s.calls.add(30s, again);
  };
  s.calls.add(30s, again);
  s.calls.end_all(Cause::disconnected, [](CallId) { return true; });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(s.calls.size(), 1U);
}

TEST(Calls, WhatACallbackThrowsIsLogged) {
  Setting s;
  s.calls.add(30s, [](const Outcome&) { throw std::runtime_error("oops"); });
  s.calls.add(30s, [](const Outcome&) { throw 42; });
  s.calls.end_all(Cause::disconnected, [](CallId) { return true; });
  EXPECT_EQ(s.tape.lines(), (Strings{R"(error Callback failed what="oops")", "error Callback failed"}));
}

TEST(Calls, SayWhenTheNextIsDue) {
  Setting s;
  EXPECT_EQ(s.calls.deadline(), std::nullopt);
  s.add(30s);
  s.add(10s);
  EXPECT_EQ(s.calls.deadline(), s.clock.now() + 10s);
  s.advance(10s);
  EXPECT_EQ(s.calls.deadline(), s.clock.now() + 20s);
  s.answer(R"({"jsonrpc":"2.0","id":1,"result":1})");
  EXPECT_EQ(s.calls.deadline(), std::nullopt);
}

TEST(Calls, WaitFromTheFirstTimeThatIsTold) {
  Setting s;
  s.calls.add(10s, [](const Outcome&) {});
  EXPECT_EQ(s.calls.deadline(), base::TimePoint());
  s.clock.advance(5s);
  s.calls.start_clocks(s.clock.now());
  EXPECT_EQ(s.calls.deadline(), s.clock.now() + 10s);
}

TEST(Calls, ThatAreForgottenHearNothing) {
  Setting s;
  s.add(1s);
  EXPECT_TRUE(s.calls.forget(1));
  EXPECT_FALSE(s.calls.forget(1));
  s.advance(2s);
  EXPECT_TRUE(s.answer(R"({"jsonrpc":"2.0","id":1,"result":1})"));
  EXPECT_TRUE(s.outcomes.empty());
}

TEST(Calls, ADamagedAnswerBelongsToTheCallItNamesOrToTheOnlyOne) {
  Setting s;
  EXPECT_EQ(s.calls.owner_of(""), std::nullopt);
  s.add();
  EXPECT_EQ(s.calls.owner_of(""), 1U);
  s.add();
  EXPECT_EQ(s.calls.owner_of(""), std::nullopt);
  EXPECT_EQ(s.calls.owner_of("2"), 2U);
  EXPECT_EQ(s.calls.owner_of("3"), std::nullopt);
  EXPECT_EQ(s.calls.owner_of("x"), std::nullopt);
}

TEST(Calls, EveryCauseHasAName) {
  std::set<std::string_view> names;
  for (const Cause cause :
       {Cause::answered, Cause::refused, Cause::timed_out, Cause::disconnected, Cause::overloaded, Cause::unreadable}) {
    names.insert(name_of(cause));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"answered", "refused", "timed out", "disconnected", "overloaded",
                                               "unreadable"}));
}

}  // namespace
}  // namespace duet::peer
