// Two peers that flood each other through narrow pipes, neither reading first; and one peer that floods a loop that has
// others to serve.

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/base/log_tape_test.h"
#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/memory_use_test.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/memory.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using Channels = std::pair<std::unique_ptr<transport::Channel>, std::unique_ptr<transport::Channel>>;

constexpr std::size_t narrow = 4096;

base::Pipe narrow_pipe() {
  base::Pipe pipe = base::make_pipe();
  EXPECT_EQ(fcntl(pipe.write_end.get(), F_SETPIPE_SZ, narrow), static_cast<int>(narrow));
  return pipe;
}

Channels over_pipes(transport::Loop& loop) {
  base::Pipe there = narrow_pipe();
  base::Pipe back = narrow_pipe();
  return {std::make_unique<transport::FdChannel>(loop, std::move(back.read_end), std::move(there.write_end)),
          std::make_unique<transport::FdChannel>(loop, std::move(there.read_end), std::move(back.write_end))};
}

Channels over_memory(transport::Loop& loop) { return transport::memory_pair(loop, narrow); }

struct Carrier {
  const char* name;
  Channels (*make)(transport::Loop&);
};

class Flood : public testing::TestWithParam<std::tuple<Carrier, Framing>> {
 protected:
  static constexpr std::size_t bound = 500'000;
  static constexpr std::size_t message_size = 200;

  struct Side {
    Methods methods;
    std::map<Outcome::Cause, int> outcomes;
    int asked = 0;
    int told = 0;
    std::unique_ptr<Connection> connection;
  };

  Flood() {
    auto [left, right] = std::get<0>(GetParam()).make(loop);
    start(sides[0], std::move(left));
    start(sides[1], std::move(right));
  }

  void start(Side& side, std::unique_ptr<transport::Channel> channel) {
    side.methods.add("echo", [](const Request& asked) { return rpc::Json::view(asked.params.text()); });
    side.methods.add("tell", [&side](const Request&) -> rpc::Json {
      ++side.told;
      return nullptr;
    });
    Protocol protocol = server_protocol(std::get<1>(GetParam()));
    protocol.max_waiting = bound;
    side.connection =
        std::make_unique<Connection>(loop, std::move(channel), protocol, side.methods, tape.log(), ConnectionEvents{});
    side.connection->open();
  }

  void ask(Side& side, std::string_view method = "echo") {
    ++side.asked;
    side.connection->call(method, rpc::Json::view(params), 30s,
                          [&side](const Outcome& outcome) { ++side.outcomes[outcome.cause]; });
  }

  template <typename Done>
  bool turn_until(Done done) {
    for (int i = 0; i < 1'000'000 && !done(); ++i) {
      loop.turn(loop.now());
      for (const Side& side : sides) most = std::max(most, side.connection->load());
    }
    return done();
  }

  static int ended(const Side& side) {
    int sum = 0;
    for (const auto& [cause, count] : side.outcomes) sum += count;
    return sum;
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  std::array<Side, 2> sides;
  std::string params = "[\"" + std::string(message_size, 'x') + "\"]";
  std::size_t most = 0;
};

INSTANTIATE_TEST_SUITE_P(Narrow, Flood,
                         testing::Combine(testing::Values(Carrier{"pipes", over_pipes}, Carrier{"memory", over_memory}),
                                          testing::Values(Framing::content_length, Framing::lines)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) +
                                  (std::get<1>(each.param) == Framing::content_length ? "_stdio" : "_socket");
                         });

TEST_P(Flood, OfCallsIsAnsweredAndWhatIsTooMuchIsRefusedAsSuch) {
  constexpr int count = 10'000;
  const std::size_t before = allocated_bytes();
  for (int i = 0; i < count; ++i) {
    for (Side& side : sides) ask(side);
  }
  EXPECT_LT(allocated_bytes() - before, 16 * bound);  // calls that were refused still wait for their outcome
  ASSERT_TRUE(turn_until([&] { return ended(sides[0]) == count && ended(sides[1]) == count; }));
  for (Side& side : sides) {
    EXPECT_EQ(side.outcomes[Outcome::Cause::answered] + side.outcomes[Outcome::Cause::overloaded], count);
    EXPECT_GT(side.outcomes[Outcome::Cause::answered], 500);
    EXPECT_GT(side.outcomes[Outcome::Cause::overloaded], 500);
    EXPECT_EQ(side.connection->load(), 0U);
  }
  EXPECT_LT(most, bound + 100'000);
}

TEST_P(Flood, ThatGoesOnAsFastAsItCanMakesProgress) {
  constexpr int count = 20'000;
  const auto keep_asking = [&] {
    for (Side& side : sides) {
      for (int i = 0; i < 50 && side.asked < count; ++i) ask(side);
    }
    return ended(sides[0]) == count && ended(sides[1]) == count;
  };
  ASSERT_TRUE(turn_until(keep_asking));
  for (Side& side : sides) {
    EXPECT_EQ(side.outcomes[Outcome::Cause::answered] + side.outcomes[Outcome::Cause::overloaded], count);
    EXPECT_GT(side.outcomes[Outcome::Cause::answered], 1000);
  }
  EXPECT_LT(most, bound + 100'000);
}

TEST_P(Flood, OfNotificationsArrivesAndWhatIsTooMuchIsToldToTheSender) {
  std::array<int, 2> sent{};
  for (int i = 0; i < 10'000; ++i) {
    for (std::size_t side : {0U, 1U}) {
      if (sides[side].connection->notify("tell", rpc::Json::view(params))) ++sent[side];
    }
  }
  EXPECT_LT(sent[0], 10'000);
  ASSERT_TRUE(turn_until([&] { return sides[0].told == sent[1] && sides[1].told == sent[0]; }));
  EXPECT_LT(most, bound + 100'000);
}

TEST_P(Flood, OfCallsWithLargeAnswersEndsForEveryCallWithItsCause) {
  for (Side& side : sides) {
    side.methods.add("long", [](const Request&) { return rpc::Json::trusted('"' + std::string(20'000, 'y') + '"'); });
  }
  constexpr int count = 2'000;
  params = "[]";
  for (int i = 0; i < count; ++i) {
    for (Side& side : sides) ask(side, "long");
  }
  const auto all_ended = [&] { return ended(sides[0]) == count && ended(sides[1]) == count; };
  for (int i = 0; i < 100'000 && !all_ended(); ++i) {
    loop.turn(loop.now());
    for (const Side& side : sides) most = std::max(most, side.connection->load());
  }
  clock.advance(30s);
  ASSERT_TRUE(turn_until(all_ended));
  EXPECT_LT(most, 2 * bound);
}

/// Counts how many requests are handled in one turn of the loop.
class FloodOfALoop : public testing::TestWithParam<Framing> {
 protected:
  static constexpr std::size_t count = 20'000;
  static constexpr std::size_t wide = 1U << 23U;

  FloodOfALoop() {
    c.methods.add("count", [this](const Request&) -> rpc::Json {
      ++handled;
      return nullptr;
    });
    c.open();
  }

  std::string flood(std::size_t requests = count) const {
    std::string text;
    const std::string message = request("7", "count");
    for (std::size_t i = 0; i < requests; ++i) {
      text += GetParam() == Framing::lines ? message + '\n' : framed(message);
    }
    return text;
  }

  // What is read, what had to wait, and what waits still when the turn's timers run: a portion each, and one to spare.
  static std::size_t most_in_a_turn() {
    const std::size_t portion = GetParam() == Framing::lines ? 16 * 1024 : 64 * 1024;
    return 4 * portion / request("7", "count").size();
  }

  /// Returns the most that were handled in one turn.
  std::size_t turn_until_handled(std::size_t all) {
    std::size_t most = 0;
    for (int i = 0; i < 100'000 && handled < all; ++i) {
      const std::size_t before = handled;
      c.turn(1);
      most = std::max(most, handled - before);
    }
    EXPECT_EQ(handled, all);
    return most;
  }

  std::size_t handled = 0;
  TestConnection c{server_protocol(GetParam()), wide};
};

INSTANTIATE_TEST_SUITE_P(Framings, FloodOfALoop, testing::Values(Framing::content_length, Framing::lines),
                         framing_name);

TEST_P(FloodOfALoop, ThatHadToWaitForALateAnswerLeavesOthersTheirTurn) {
  c.send(request("1", "late"));
  c.far->send(flood());
  ASSERT_TRUE(c.turn_until([&] { return c.far->sent_all() && c.connection->conversation().partial_bytes() == 0; }));
  c.turn(1000);
  EXPECT_EQ(handled, 0U);
  c.answer_late("1");
  EXPECT_LE(turn_until_handled(count), most_in_a_turn());
  ASSERT_TRUE(c.turn_until([&] { return c.connection->load() == 0; }));
  c.turn();
  EXPECT_EQ(c.heard().size(), count + 1);
}

TEST_P(FloodOfALoop, BehindALargeMessageLeavesOthersTheirTurn) {
  if (GetParam() != Framing::lines) return;  // on stdio there are no others
  const std::string large = request("1", "echo", quoted_text(600'000)) + '\n';
  c.far->send(large.substr(0, 500'000));
  ASSERT_TRUE(c.turn_until([&] { return c.connection->conversation().partial_bytes() == 500'000; }));
  c.far->send(large.substr(500'000) + flood() + "{");  // the last one stays partial
  EXPECT_LE(turn_until_handled(count), most_in_a_turn());
  ASSERT_TRUE(c.turn_until([&] { return c.connection->load() == 1; }));
  c.turn();
  EXPECT_EQ(c.heard().size(), count + 1);
}

}  // namespace
}  // namespace duet::peer
