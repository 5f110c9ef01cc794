#include "app/client/event_printer.h"

#include <gtest/gtest.h>

#include "app/project/failure.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

/// What was printed, a word for each line: its number, or what else stands in it.
class EventPrinterTest : public ::testing::Test {
 protected:
  EventPrinter printer(std::optional<std::int64_t> since, const std::vector<std::string>& kinds = {}) {
    return {since, kinds, [this](std::string_view /*method*/, std::string_view params, bool live) {
              const boost::json::value told = rpc::parse_value(params);
              printed_ += (printed_.empty() ? "" : " ") + rpc::to_text(told.at("seq"));
              live_ += live ? 1 : 0;
            }};
  }
  static void give(EventPrinter& to, int seq, std::string_view kind = "taskQueued") {
    to.take("event." + std::string(kind), R"({"seq":)" + std::to_string(seq) + "}");
  }
  static std::string answer(int next, std::string_view more = "", std::string_view epoch = "e") {
    return R"({"epoch":")" + std::string(epoch) + R"(","next":)" + std::to_string(next) + std::string(more) + "}";
  }

  std::string printed_;
  int live_ = 0;
};

TEST_F(EventPrinterTest, WhatIsReplayedComesBeforeWhatCameEarly) {
  EventPrinter events = printer(3);
  events.begin_subscription();
  give(events, 5);
  EXPECT_EQ(events.subscribed(answer(6)), "");
  for (const int seq : {3, 4}) give(events, seq);
  give(events, 6);
  EXPECT_EQ(printed_, "3 4 5 6");
  EXPECT_EQ(live_, 1);
}

TEST_F(EventPrinterTest, ANumberThatIsStillToComeIsNotCalledForgotten) {
  EventPrinter events = printer(99999);
  events.begin_subscription();
  EXPECT_EQ(events.subscribed(answer(7, R"(,"missed":true,"oldest":1)")),
            "event 99999 has not happened yet; the next one is 7");
  give(events, 7);
  EXPECT_EQ(printed_, "7");
}

TEST_F(EventPrinterTest, ADaemonThatTellsButDoesNotAnswerIsGivenUp) {
  EventPrinter events = printer(1);
  events.begin_subscription();
  const std::string large = R"({"seq":1,"text":")" + std::string(std::size_t{8} << 20U, 'x') + "\"}";
  EXPECT_THROW(for (int i = 0; i < 8; ++i) events.take("event.notice", large), Failure);
}

TEST_F(EventPrinterTest, ThoseThatAreForgottenAreNamed) {
  EventPrinter events = printer(2);
  events.begin_subscription();
  EXPECT_EQ(events.subscribed(answer(9, R"(,"missed":true,"oldest":5)")),
            "not all events since 2 are kept; the oldest is 5");
  for (const int seq : {5, 6}) give(events, seq);
  EXPECT_EQ(printed_, "5 6");
}

TEST_F(EventPrinterTest, OnlyTheWantedKindsArePrinted) {
  EventPrinter events = printer({}, {"taskFailed"});
  EXPECT_EQ(rpc::to_text(events.begin_subscription().at(0)), R"({"kinds":["taskFailed","daemonStopping"]})");
  events.subscribed(answer(1));
  give(events, 1);
  give(events, 2, "taskFailed");
  EXPECT_EQ(printed_, "2");
}

TEST_F(EventPrinterTest, WhoFellBehindAsksAgainFromThere) {
  EventPrinter events = printer({});
  events.begin_subscription();
  events.subscribed(answer(1));
  give(events, 4, "overflow");
  EXPECT_TRUE(events.has_fallen_behind());
  EXPECT_EQ(rpc::to_text(events.begin_subscription().at(0)), R"({"since":4})");
  EXPECT_FALSE(events.has_fallen_behind());
}

TEST_F(EventPrinterTest, ANewHistoryIsReadFromItsStart) {
  EventPrinter events = printer({});
  events.begin_subscription();
  events.subscribed(answer(8));
  events.begin_again();
  events.begin_subscription();
  EXPECT_NE(events.subscribed(answer(2, "", "another")), "");
  EXPECT_TRUE(events.has_fallen_behind());
  EXPECT_EQ(rpc::to_text(events.begin_subscription().at(0)), R"({"since":1})");
}

TEST_F(EventPrinterTest, OnlyAStopForGoodEndsIt) {
  EventPrinter events = printer(1);
  events.begin_subscription();
  events.subscribed(answer(5));
  give(events, 2, "daemonStopping");
  EXPECT_FALSE(events.daemon_has_stopped()) << "it is replayed: another daemon's";
  events.take("event.daemonStopping", R"({"seq":5,"restarting":true})");
  EXPECT_FALSE(events.daemon_has_stopped());
  give(events, 6, "daemonStopping");
  EXPECT_TRUE(events.daemon_has_stopped());
}

}  // namespace
}  // namespace duet::app
