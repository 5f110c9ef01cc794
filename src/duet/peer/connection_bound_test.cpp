#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/memory_use_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

struct SlowReader : TestConnection {
  static constexpr std::size_t bound = 200'000;
  static Protocol bounded_protocol(Framing framing) {
    Protocol bounded = server_protocol(framing);
    bounded.max_waiting = bound;
    return bounded;
  }
  explicit SlowReader(Framing framing = Framing::lines) : TestConnection(bounded_protocol(framing), 4096) {
    open();
    far->read(false);
  }
};

class BoundInEitherFraming : public testing::TestWithParam<Framing> {};
INSTANTIATE_TEST_SUITE_P(Framings, BoundInEitherFraming, testing::Values(Framing::content_length, Framing::lines),
                         framing_name);

TEST_P(BoundInEitherFraming, ThatIsNotReadPausesReadingAtItsBoundAndGoesOnWhenItIsRead) {
  SlowReader s(GetParam());
  constexpr int count = 2000;
  std::size_t most = 0;
  for (int i = 0; i < count; ++i) s.send(request(std::to_string(i), "echo", quoted_text(500)));
  for (int i = 0; i < 2000; ++i) {
    s.turn(1);
    most = std::max(most, s.connection->load());
  }
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_GE(most, SlowReader::bound);
  EXPECT_LT(most, SlowReader::bound + 100'000);
  s.far->read(true);
  Strings answers;
  ASSERT_TRUE(s.turn_until([&] {
    most = std::max(most, s.connection->load());
    for (std::string& answer : s.heard()) answers.push_back(std::move(answer));
    return answers.size() == count;
  }));
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)], result(std::to_string(i), quoted_text(500)));
  EXPECT_LT(most, SlowReader::bound + 100'000);
  EXPECT_EQ(s.connection->load(), 0U);
}

TEST(ConnectionBound, HoldsForRequestsThatWaitForALateAnswerHoweverSmallTheyAre) {
  SlowReader s;
  s.send(request("1", "late"));
  std::string flood;
  for (int i = 0; i < 400'000; ++i) flood += "1\n";
  s.far->send(flood);
  s.turn(10);
  const std::size_t before = allocated_bytes();
  s.turn(2000);
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_LT(allocated_bytes() - before, 3 * SlowReader::bound);
  EXPECT_LT(s.connection->load(), 3 * SlowReader::bound);  // the smallest messages cost the most beside their bytes
}

TEST(ConnectionBound, HoldsForCancelsToo) {
  SlowReader s;
  s.send(request("1", "late"));
  std::string flood;
  for (int i = 0; i < 50'000; ++i) flood += cancel('"' + std::string(30, 'x') + std::to_string(i) + '"') + "\n";
  s.far->send(flood);
  s.turn(10);
  const std::size_t before = allocated_bytes();
  s.turn(5000);
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_LT(allocated_bytes() - before, 4 * SlowReader::bound);
  s.far->read(true);
  s.answer_late("1");
  ASSERT_TRUE(s.turn_until([&] { return s.far->sent_all(); }));
  s.turn();
  EXPECT_EQ(s.connection->load(), 0U);
}

TEST(ConnectionBound, OwnMessagesAreRefusedWhenTooMuchWaits) {
  SlowReader s;
  std::size_t sent = 0;
  while (s.connection->notify("tell", rpc::Json::trusted(quoted_text(1000))) && sent < 1000) ++sent;
  EXPECT_GT(sent, 10U);
  EXPECT_LT(s.connection->load(), SlowReader::bound);
  std::vector<Outcome::Cause> causes;
  s.connection->call("ask", {}, 30s, [&](const Outcome& outcome) { causes.push_back(outcome.cause); });
  EXPECT_TRUE(causes.empty());
  s.turn();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::overloaded});
  s.far->read(true);
  ASSERT_TRUE(s.turn_until([&] { return s.connection->load() == 0; }));
  s.turn();
  EXPECT_EQ(s.heard().size(), sent);
  EXPECT_TRUE(s.connection->notify("tell", {}));
}

TEST(ConnectionBound, LargeMessagesLeaveNoMemoryBehind) {
  TestConnection c;
  c.open();
  for (int i = 0; i < 3; ++i) {
    c.send(request("1", "echo", quoted_text(5'000'000)));
    ASSERT_TRUE(c.turn_until([&] { return !c.heard().empty(); }));
  }
  EXPECT_TRUE(c.pool->keeps_any());
  c.advance(500ms);
  c.send(request("1", "echo", quoted_text(5'000'000)));  // used again: kept for another second
  ASSERT_TRUE(c.turn_until([&] { return !c.heard().empty(); }));
  c.advance(500ms);
  EXPECT_TRUE(c.pool->keeps_any());
  c.advance(1s);
  c.advance(1s);
  EXPECT_FALSE(c.pool->keeps_any());
}

TEST(ConnectionBound, ChangesOfTheLoadAreTold) {
  TestConnection c(Protocol::json_lines(), 1024);
  std::vector<std::size_t> loads;
  c.events.on_load_changed = [&] { loads.push_back(c.connection->load()); };
  c.open();
  c.far->read(false);
  EXPECT_EQ(c.say({request("1", "echo")}).size(), 0U);
  EXPECT_TRUE(loads.empty());  // written at once
  c.say({request("2", "echo", quoted_text(3000))});
  ASSERT_FALSE(loads.empty());
  EXPECT_GT(loads.back(), 2000U);
  c.far->read(true);
  c.turn();
  EXPECT_EQ(loads.back(), 0U);
  c.far->read(false);
  c.say({request("3", "echo", quoted_text(3000))});
  EXPECT_GT(loads.back(), 2000U);
  c.connection->close();
  EXPECT_EQ(loads.back(), 0U);
}

TEST(ConnectionBound, LimitedToNothingItReadsNothing) {
  TestConnection c;
  c.open();
  c.connection->conversation().limit_waiting(0);
  c.turn();
  EXPECT_EQ(c.say({request("1", "echo")}), Strings{});
  c.connection->conversation().limit_waiting(std::string::npos);
  c.turn();
  EXPECT_EQ(c.heard(), Strings{result("1", "null")});
}

TEST(ConnectionBound, ToReadNothingAtOnceIsToReadAByte) {
  Protocol protocol = Protocol::json_lines();
  protocol.read_at_once = 0;
  TestConnection c(protocol);
  c.open();
  c.send(request("1", "echo"));
  c.turn(100);
  EXPECT_EQ(c.heard(), Strings{result("1", "null")});
  EXPECT_EQ(c.endings, Endings{});
}

}  // namespace
}  // namespace duet::peer
