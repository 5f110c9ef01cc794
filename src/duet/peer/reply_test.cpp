#include "duet/peer/reply.h"

#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

/// A conversation in which a `late` request has begun.
struct Setting : TestConnection {
  Setting() {
    open();
    say({request("1", "late")});
    reply.emplace(std::move(replies.front()));
  }
  Strings heard_later() {
    turn();
    return heard();
  }
  std::optional<Reply<>> reply;
};

TEST(Reply, AnswersOnce) {
  Setting s;
  EXPECT_FALSE(s.reply->abandoned());
  s.reply->ok(1);
  s.reply->ok(2);
  s.reply->fail({1, "three"});
  EXPECT_TRUE(s.reply->abandoned());
  s.reply.reset();
  EXPECT_EQ(s.heard_later(), Strings{result("1", "1")});
}

TEST(Reply, LetGoOfIsAnInternalError) {
  Setting s;
  s.reply.reset();
  EXPECT_EQ(s.heard_later(), Strings{internal("1")});
}

TEST(Reply, MovesAndLeavesNothingBehind) {
  Setting s;
  Reply<> other = std::move(*s.reply);
  EXPECT_TRUE(s.reply->abandoned());  // NOLINT(bugprone-use-after-move): that is what is tested
  s.reply->ok(1);
  s.reply->on_abandoned([] { ADD_FAILURE(); });
  s.reply.reset();
  EXPECT_EQ(s.heard_later(), Strings{});
  other.ok(2);
  EXPECT_EQ(s.heard_later(), Strings{result("1", "2")});
}

TEST(Reply, AssignedToLetsGoOfWhatItHad) {
  Setting one;
  Setting two;
  Reply<>& same = *one.reply;
  same = std::move(*one.reply);
  EXPECT_FALSE(one.reply->abandoned());
  *one.reply = std::move(*two.reply);
  EXPECT_EQ(one.heard_later(), Strings{internal("1")});
  one.reply->ok(2);
  EXPECT_EQ(two.heard_later(), Strings{result("1", "2")});
}

TEST(Reply, TellsWhenTheCallerHasGone) {
  Setting s;
  int told = 0;
  s.reply->on_abandoned([&] { ++told; });
  s.far->close();
  s.turn();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(s.reply->abandoned());
  s.reply->ok(1);
}

TEST(Reply, TellsNothingAfterTheAnswer) {
  Setting s;
  s.reply->on_abandoned([] { ADD_FAILURE(); });
  s.reply->ok(1);
  s.say({cancel("1")});
  s.connection->close();
}

TEST(Reply, OutlivesItsConnection) {
  Setting s;
  s.connection.reset();
  EXPECT_TRUE(s.reply->abandoned());
  s.reply->ok(1);
  s.reply.reset();
}

TEST(Reply, KeepsNothingOfItsListenerAliveAfterTheAnswer) {
  Setting s;
  struct Waiter {
    Reply<> reply;
  };
  auto waiter = std::make_shared<Waiter>(Waiter{std::move(*s.reply)});
  const std::weak_ptr<Waiter> watched = waiter;
  waiter->reply.on_abandoned([waiter] { ADD_FAILURE(); });
  waiter->reply.ok(1);
  waiter.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace duet::peer
