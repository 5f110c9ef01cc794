// Two conversations joined by a simulated wire that splits, delays, damages, cuts and ends at random. Every run comes
// from its seed. More seeds: DUET_WIRE_SEEDS=FROM:COUNT.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/sanitizer_test.h"
#include "duet/framing/websocket_frames_test.h"
#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/conversation.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t end) { return engine_() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

// What happens to the bytes.
enum class Wire { whole, damaged, cut };

class WireRun {
 public:
  static constexpr std::size_t bound = 20'000;
  static constexpr std::size_t largest_message = 4'000;
  static constexpr std::size_t smallest_request = 45;

  WireRun(std::uint64_t seed, Protocol::Framing framing) : random_(seed), wire_(Wire(seed % 3)), framing_(framing) {
    for (Side& side : sides_) start(side);
  }

  /// Empty: every promise was kept.
  std::string run() {
    const std::size_t steps = 50 + random_.below(1500);
    const std::size_t cut_at = wire_ == Wire::cut ? random_.below(steps) : steps;
    for (std::size_t i = 0; i < cut_at && fault_.empty(); ++i) step();
    if (wire_ == Wire::cut) cut();
    come_to_rest();
    return fault_;
  }

  std::uint64_t steps() const { return steps_; }
  std::uint64_t messages() const { return messages_; }

 private:
  struct Asked {
    std::string params;
    bool was_cancelled = false;
    int outcomes = 0;
  };
  struct Side {
    Methods methods;
    std::deque<Reply<>> replies;
    std::map<CallId, Asked> asked;
    CallId last_answered = 0;
    std::string wire;      // what this side has written and the other has not read
    std::string unmasked;  // of a WebSocket: part of a frame
    std::size_t most_at_once = 0;
    bool input_ended = false;
    std::unique_ptr<Conversation> talk;
  };

  void start(Side& side) {
    side.methods.add("echo", [this](const rpc::Json& params) {
      ++messages_;
      return params;
    });
    side.methods.add("refuse", [this]() -> rpc::Json {
      ++messages_;
      throw rpc::Error(-32001, "No");
    });
    side.methods.add("crash", []() -> rpc::Json { throw 42; });
    const auto answer_later = [this, &side](const rpc::Json& params, const Request& asked, Reply<> reply) {
      ++messages_;
      if (params.text().size() > 100) return reply.ok(params);
      if (asked.id.empty()) return reply.ok(nullptr);
      side.replies.push_back(std::move(reply));
    };
    side.methods.add("late", answer_later);
    side.methods.add("pipelined", answer_later).pipelined();
    Protocol protocol = server_protocol(framing_);
    if (wire_ == Wire::damaged)
      protocol.faults = Protocol::Faults::told;  // two that answer faults would go on for ever
    protocol.max_waiting = bound;
    protocol.max_message = largest_message;
    protocol.cancels_late_calls = random_.one_in(2);
    if (random_.one_in(2)) protocol.read_at_once = random_.below(1000);
    side.most_at_once = 1 + std::min<std::size_t>(protocol.read_at_once, 65536) / smallest_request;
    side.talk = std::make_unique<Conversation>(protocol, side.methods);
  }

  void step() {
    ++steps_;
    const std::size_t which = random_.below(2);
    Side& side = sides_[which];
    switch (random_.below(10)) {
      case 0:
      case 1:
        return ask(side);
      case 2:
        return one_in_three() ? cancel(side) : notify(side);
      case 3:
        return answer(side);
      case 4:
        return pass_time();
      default:
        return move_bytes(which);
    }
  }

  bool one_in_three() { return random_.one_in(3); }

  void ask(Side& side) {
    static constexpr std::array methods{"echo", "echo", "late", "pipelined", "refuse", "crash", "missing"};
    const std::size_t size = random_.one_in(20) ? random_.below(largest_message) : random_.below(60);
    const std::string params = "[\"" + std::string(size, 'x') + "\"]";
    const base::Duration patience = random_.one_in(4) ? 1ms * random_.below(2000) : 1h;
    const char* const method = methods[random_.below(methods.size())];
    const bool echoes = method == std::string_view("echo");
    const CallId id =
        side.talk->call(method, rpc::Json::view(params), patience,
                        [this, &side, echoes](const Outcome& outcome) { take_outcome(side, outcome, echoes); });
    side.asked[id].params = params;
  }

  void take_outcome(Side& side, const Outcome& outcome, bool echoes) {
    Asked& asked = side.asked[outcome.call];
    if (++asked.outcomes > 1) fail("a second outcome");
    if (asked.was_cancelled) fail("an outcome of a call that was cancelled");
    const bool has_answer = outcome.cause == Outcome::Cause::answered || outcome.cause == Outcome::Cause::refused;
    if (!has_answer || wire_ == Wire::damaged) return;
    if (outcome.call <= side.last_answered) fail("answers out of order");
    side.last_answered = outcome.call;
    if (echoes && outcome.cause == Outcome::Cause::answered && outcome.result != asked.params) fail("another answer");
  }

  void cancel(Side& side) {
    if (side.asked.empty()) return;
    auto found = side.asked.lower_bound(1 + random_.below(side.asked.rbegin()->first));
    if (found == side.asked.end() || found->second.outcomes > 0) return;
    found->second.was_cancelled = true;
    side.talk->cancel(found->first);
  }

  void notify(Side& side) { side.talk->notify(random_.one_in(3) ? "missing" : "echo", rpc::Json::view("[1]")); }

  void answer(Side& side) {
    if (side.replies.empty()) return;
    std::swap(side.replies.front(), side.replies[random_.below(side.replies.size())]);
    Reply<> reply = std::move(side.replies.front());
    side.replies.pop_front();
    if (!random_.one_in(8)) reply.ok(true);  // else it is let go of
  }

  void pass_time() {
    now_ += 1ms * random_.below(500);
    for (Side& side : sides_) tick(side);
  }

  void tick(Side& side) {
    for (int i = 0; side.talk->deadline().value_or(base::TimePoint::max()) <= now_; ++i) {
      const std::uint64_t before = messages_;
      side.talk->tick(now_);
      if (messages_ - before > side.most_at_once) fail("too much was handled at once");
      if (i > 1000) return fail("its deadline never passes");
    }
    check(side);
  }

  void move_bytes(std::size_t which) {
    Side& from = sides_[which];
    Side& to = sides_[1 - which];
    const std::string_view out = from.talk->output();
    if (!out.empty() && from.wire.size() < 5000) {
      const std::size_t count = 1 + random_.below(std::min<std::size_t>(out.size(), 5000));
      from.wire += damaged(on_the_wire(from, std::string(out.substr(0, count))));
      from.talk->written(count);
    }
    if (to.talk->is_closing() && !to.talk->wants_input()) from.wire.clear();  // nobody reads it any more
    if (!from.wire.empty() && to.talk->wants_input()) {
      const std::size_t count = random_.one_in(4) ? 1 : 1 + random_.below(from.wire.size());
      deliver(to, from.wire.substr(0, count));
      from.wire.erase(0, count);
    }
    tick(to);
    tick(from);
  }

  // Both are servers; between two WebSockets' the wire does what a client does, and masks.
  std::string on_the_wire(Side& from, std::string bytes) {
    if (framing_ != Protocol::Framing::websocket) return bytes;
    from.unmasked += bytes;
    std::string masked;
    for (;;) {
      std::size_t size = 0;
      const std::size_t header = header_size(from.unmasked, size);
      if (header == 0 || from.unmasked.size() < header + size) return masked;
      framing::ClientFrame frame{.opcode = static_cast<std::uint8_t>(from.unmasked[0] & 15),
                                 .payload = from.unmasked.substr(header, size)};
      for (std::uint8_t& each : frame.mask) each = static_cast<std::uint8_t>(random_.below(256));
      masked += frame.bytes();
      from.unmasked.erase(0, header + size);
    }
  }

  // 0: it is not there yet.
  static std::size_t header_size(const std::string& frame, std::size_t& payload) {
    if (frame.size() < 2) return 0;
    payload = static_cast<std::uint8_t>(frame[1]);
    if (payload < 126) return 2;
    if (frame.size() < 4) return 0;
    payload = static_cast<std::uint8_t>(frame[2]) * 256U + static_cast<std::uint8_t>(frame[3]);
    return 4;
  }

  void deliver(Side& to, std::string bytes) {
    const std::span<char> room = to.talk->room();
    const base::TimePoint now = to.talk->is_timed() || random_.one_in(2) ? now_ : base::TimePoint();
    if (room.size() >= bytes.size() && random_.one_in(2)) {
      std::ranges::copy(bytes, room.begin());
      to.talk->receive_in_room(bytes.size(), now);
    } else if (random_.one_in(2)) {
      to.talk->receive_in_place(bytes, now);
    } else {
      to.talk->receive(bytes, now);
    }
  }

  std::string damaged(std::string bytes) {
    if (wire_ != Wire::damaged || bytes.empty() || !random_.one_in(framing_ == Framing::websocket ? 60 : 6))
      return bytes;
    const std::size_t at = random_.below(bytes.size());
    switch (random_.below(3)) {
      case 0:
        bytes[at] = static_cast<char>(random_.below(256));
        break;
      case 1:
        bytes.erase(at, 1 + random_.below(20));
        break;
      default:
        bytes += bytes.substr(at);  // some come twice
    }
    return bytes;
  }

  void cut() {
    for (std::size_t which : {0U, 1U}) {
      if (random_.one_in(2)) continue;
      sides_[which].talk->end_of_input(now_);
      sides_[which].input_ended = true;
    }
    if (random_.one_in(2)) sides_[random_.below(2)].talk->close();
    if (random_.one_in(4)) sides_[random_.below(2)].talk->stop();
  }

  // Nothing new is asked, everything is answered and delivered, and all time passes.
  void come_to_rest() {
    const int most = wire_ == Wire::cut ? 300 : 100'000;  // what was cut may never rest
    for (int i = 0; i < most && fault_.empty() && !is_at_rest(); ++i) {
      for (std::size_t which : {0U, 1U}) {
        while (!sides_[which].replies.empty()) answer(sides_[which]);
        move_bytes(which);
      }
      if (i % 100 == 99) now_ += 2h;
    }
    for (Side& side : sides_) {
      if (wire_ == Wire::cut) side.talk->close();
      side.talk->resume();
      for (const auto& [id, asked] : side.asked) {
        if (asked.outcomes + (asked.was_cancelled ? 1 : 0) < 1) return fail("a call without an outcome");
      }
      if (wire_ == Wire::whole && side.talk->load() != 0) fail("something is left");
    }
  }

  bool is_at_rest() {
    return std::ranges::all_of(sides_, [](Side& side) {
      return side.replies.empty() && side.talk->pending_calls() == 0 && side.talk->output().empty() &&
             side.wire.empty() && !side.talk->has_more_to_do();
    });
  }

  void check(Side& side) {
    // One message more may come in and one answer more may go out, and small ones cost more than their bytes.
    const std::size_t most = 3 * bound + 4 * largest_message;
    if (side.talk->load() > most) fail("too much is held: " + std::to_string(side.talk->load()));
    const bool is_timed = framing_ != Framing::websocket && side.talk->deadline();
    const bool wants_nothing = side.talk->wants_input() && side.talk->output().empty() && !is_timed &&
                               side.talk->load() == 0 && !side.talk->is_over();
    if (side.talk->is_idle() && !wants_nothing) fail("it says that it is idle, and is not");
  }

  void fail(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }

  Random random_;
  Wire wire_;
  Protocol::Framing framing_;
  base::TimePoint now_{1h};
  std::string fault_;
  std::uint64_t steps_ = 0;
  std::uint64_t messages_ = 0;
  std::array<Side, 2> sides_;  // their calls end when they do, and tell
};

std::pair<std::uint64_t, std::uint64_t> seeds() {
  std::uint64_t from = 1;
  std::uint64_t count = base::under_sanitizer ? 500 : 1500;
  if (const char* given = std::getenv("DUET_WIRE_SEEDS")) std::sscanf(given, "%lu:%lu", &from, &count);
  return {from, count};
}

class WireSimulation : public testing::TestWithParam<Protocol::Framing> {};
INSTANTIATE_TEST_SUITE_P(Framings, WireSimulation,
                         testing::Values(Protocol::Framing::content_length, Protocol::Framing::lines,
                                         Protocol::Framing::websocket));

TEST_P(WireSimulation, EveryCallHasOneOutcomeInOrderWithinTheBoundWhateverTheWireDoes) {
  const auto [from, count] = seeds();
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    WireRun run(seed, GetParam());
    const std::string fault = run.run();
    ASSERT_EQ(fault, "") << "DUET_WIRE_SEEDS=" << seed << ":1";
    steps += run.steps();
    messages += run.messages();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%lu seeds from %lu, %lu steps (%.0f/s), %lu requests handled\n", count, from, steps,
              static_cast<double>(steps) / took.count(), messages);
}

}  // namespace
}  // namespace duet::peer
