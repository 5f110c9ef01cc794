#include "simulate/event_client.h"

#include <gtest/gtest.h>

#include "duet/peer/server.h"

namespace duet::simulate {
namespace {

class EventClientTest : public testing::Test {
 protected:
  EventClientTest() {
    model.take_epoch("e");
    happen();
    wire = client.connect([this] { return oldest; });
  }

  void happen() {
    const std::uint64_t seq = model.next_seq();
    model.told({.seq = seq, .kind = "notice", .params = R"({"seq":)" + std::to_string(seq) + '}'}, std::nullopt);
  }
  void tell(const std::string& kind, std::uint64_t seq) {
    wire->to_client += peer::framed_notification(peer::Protocol::json_lines(), "event." + kind, {{"seq", seq}});
    client.read(wire->to_client.size());
  }
  std::string wrong() const { return model.violation().value_or(""); }

  MachineClock clock;
  Model model{clock};
  Trace trace;
  std::uint64_t oldest = 1;
  EventClient client{"client", Random(1), model, trace};
  std::shared_ptr<ClientWire> wire;
};

TEST_F(EventClientTest, HearsOfAllThatHappensFromTheMomentItIsConnected) {
  happen();
  happen();
  tell("notice", 2);
  tell("notice", 3);
  client.check_complete();
  EXPECT_EQ(wrong(), "");
}

TEST_F(EventClientTest, NoticesAGap) {
  happen();
  happen();
  tell("notice", 3);
  EXPECT_EQ(wrong(), "client does not get event 2");
}

TEST_F(EventClientTest, NoticesWhatComesTwice) {
  happen();
  tell("notice", 2);
  tell("notice", 2);
  EXPECT_EQ(wrong(), "client gets event 2 out of order");
}

TEST_F(EventClientTest, NoticesWhatNeverHappened) {
  tell("notice", 2);
  EXPECT_EQ(wrong(), "client is told of event 2, which never happened");
}

TEST_F(EventClientTest, NoticesWhatNeverComes) {
  happen();
  client.check_complete();
  EXPECT_EQ(wrong(), "client does not get event 2");
}

TEST_F(EventClientTest, MayFallBehindTheHistoryOnly) {
  happen();
  tell("overflow", 2);
  EXPECT_EQ(wrong(), "client is said to miss events, though they are there from 1 on");
}

TEST_F(EventClientTest, GetsNothingAfterItFellBehind) {
  happen();
  happen();
  oldest = 3;
  tell("overflow", 2);
  EXPECT_EQ(wrong(), "");
  tell("notice", 3);
  EXPECT_NE(wrong(), "");
}

}  // namespace
}  // namespace duet::simulate
