#include "duet/peer/reply.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/transport/await_test.h"

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

TEST(Reply, ListensToNothingAfterTheAnswer) {
  Setting s;
  s.reply->ok(1);
  const auto listener = std::make_shared<int>();
  s.reply->on_abandoned([listener] { ADD_FAILURE(); });
  EXPECT_EQ(listener.use_count(), 1);
}

/// Does something on another thread, and waits until it is done.
template <typename Action>
void elsewhere(Action action) {
  std::thread(std::move(action)).join();
}

TEST(Reply, AnswersFromAnotherThread) {
  Setting s;
  elsewhere([&] {
    EXPECT_FALSE(s.reply->abandoned());
    const std::string text = "[1]";
    s.reply->ok(rpc::Json::view(text));
    EXPECT_TRUE(s.reply->abandoned());
    s.reply->ok(2);
    s.reply->fail({1, "three"});
    s.reply.reset();
  });
  EXPECT_EQ(s.heard(), Strings{}) << "nothing is done on the other thread";
  EXPECT_EQ(s.heard_later(), Strings{result("1", "[1]")});
}

TEST(Reply, RefusesFromAnotherThread) {
  Setting s;
  elsewhere([&] { s.reply->fail({1, "no"}); });
  EXPECT_EQ(s.heard_later(), Strings{error("1", 1, "no")});
}

TEST(Reply, LetGoOfOnAnotherThreadIsAnInternalError) {
  Setting s;
  elsewhere([&] { s.reply.reset(); });
  EXPECT_EQ(s.heard_later(), Strings{internal("1")});
}

TEST(Reply, MayBeMovedIntoAThreadByItsHandler) {
  TestConnection c;
  std::vector<std::thread> threads;
  c.add_late("on_a_thread", [&](const Request&, Reply<> reply) {
    threads.emplace_back([reply = std::move(reply)]() mutable { reply.ok("from there"); });
  });
  c.open();
  for (int i = 0; i < 50; ++i) c.send(request(std::to_string(i), "on_a_thread"));
  std::size_t answered = 0;
  EXPECT_TRUE(transport::await([&] {
    c.turn(1);
    answered += c.heard().size();
    return answered == 50;
  }));
  for (std::thread& thread : threads) thread.join();
}

TEST(Reply, MayBeMovedIntoWorkThatRunsElsewhere) {
  TestConnection c;
  c.add_late("elsewhere", [&](const Request&, Reply<> reply) {
    c.loop.run_elsewhere([reply = std::move(reply)]() mutable { reply.ok(std::string(100'000, 'x')); }, [](auto) {});
  });
  c.open();
  c.send(request("1", "elsewhere"));
  Strings answers;
  EXPECT_TRUE(transport::await([&] {
    c.turn(1);
    answers = c.heard();
    return !answers.empty();
  }));
  EXPECT_EQ(answers, Strings{result("1", '"' + std::string(100'000, 'x') + '"')});
}

TEST(Reply, AHandlerThatThrowsAfterItGaveItsReplyAwayHasThrown) {
  TestConnection c;
  std::optional<Reply<>> kept;
  c.add_late("throws", [&](const Request&, Reply<> reply) {
    kept.emplace(std::move(reply));
    throw rpc::Error(5, "no");
  });
  c.open();
  EXPECT_EQ(c.say({request("1", "throws")}), Strings{error("1", 5, "no")});
  elsewhere([&] { kept.reset(); });
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
}

TEST(Reply, TellsOnTheThreadOfTheConversationThatTheCallerHasGone) {
  Setting s;
  std::vector<std::thread::id> told;
  elsewhere([&] { s.reply->on_abandoned([&] { told.push_back(std::this_thread::get_id()); }); });
  EXPECT_EQ(s.say({cancel("1")}), Strings{cancelled("1")});
  EXPECT_EQ(told, std::vector{std::this_thread::get_id()});
  elsewhere([&] {
    EXPECT_TRUE(s.reply->abandoned());
    s.reply->on_abandoned([&] { told.push_back(std::this_thread::get_id()); });
  });
  EXPECT_EQ(told.size(), 1U) << "not on the other thread";
  s.turn();
  EXPECT_EQ(told, std::vector(2, std::this_thread::get_id()));
}

TEST(Reply, OnAnotherThreadItOutlivesConnectionAndLoop) {
  std::optional<Reply<>> with_loop;
  {
    Setting s;
    elsewhere([&] { s.reply->on_abandoned([] { ADD_FAILURE(); }); });  // it is not heard any more
    with_loop.emplace(std::move(*s.reply));
    elsewhere([&] { with_loop->on_abandoned([] { ADD_FAILURE(); }); });
  }
  elsewhere([&] {
    EXPECT_TRUE(with_loop->abandoned());
    with_loop->ok(1);
    with_loop->on_abandoned([] { ADD_FAILURE(); });
    with_loop.reset();
  });
}

TEST(Reply, AnswersWhileTheConnectionGoes) {
  for (int i = 0; i < 100; ++i) {
    Setting s;
    s.reply->on_abandoned([] {});
    std::thread answering([&s, how = i % 3] {
      if (s.reply->abandoned()) return;
      if (how == 0) s.reply->ok(1);
      if (how == 1) s.reply->fail({1, "no"});
      s.reply.reset();
    });
    if (i % 2 == 0) s.turn(1);
    s.connection.reset();
    answering.join();
    s.turn();
  }
}

TEST(Reply, OfAConversationAloneIsHandedOverAsItsOwnerSays) {
  Methods methods;
  std::optional<Reply<>> reply;
  methods.add("late", [&](Reply<> given) { reply.emplace(std::move(given)); });
  std::vector<base::UniqueFunction<void()>> work;
  ConversationEvents events;
  events.hand_over = [&](base::UniqueFunction<void()> each) { work.push_back(std::move(each)); };
  Conversation talk(Protocol::json_lines(), methods, events);
  talk.receive(request("1", "late") + '\n', {});
  elsewhere([&] { reply->ok(1); });
  EXPECT_EQ(talk.output(), "");
  ASSERT_EQ(work.size(), 1U);
  work.front()();
  EXPECT_EQ(talk.output(), result("1", "1") + '\n');
}

}  // namespace
}  // namespace duet::peer
