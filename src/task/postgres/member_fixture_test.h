#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/transport/loop.h"
#include "task/postgres/fake_line_test.h"
#include "task/postgres/membership.h"

namespace duet::task::postgres {

using namespace std::chrono_literals;

/// A worker whose database is the test, with clocks that move when they are told to.
class MemberTest : public testing::Test {
 protected:
  MemberTest() { make(); }

  void make(bool runs = true, std::chrono::milliseconds lease = 90s) {
    Membership::Calls calls;
    calls.offer = [] {
      return WorkerOffer{.slots = 2, .labels = {"gpu"}, .accepts = {"claude"}, .agents = {"claude"}};
    };
    calls.joined = [this](const std::vector<OwnAttempt>& own) {
      joined.push_back(own.size());
      if (on_joined) on_joined(own);
    };
    calls.given_up = [this] { ++times_given_up; };
    calls.beaten = [this](const Membership::Calls::Beat& beat) {
      beats.push_back(beat);
      if (on_beaten) on_beaten(beat);
    };
    calls.remembered = [this] { return remembered ? remembered() : std::string("[]"); };
    calls.recovered = [this](const Membership::Calls::Recovery& recovery) {
      fenced = recovery.fenced;
      if (on_recovered) on_recovered(recovery);
    };
    calls.is_quiet = [] { return true; };
    calls.look = [this] { ++looks; };
    calls.has_room = [this] { return has_room; };
    calls.removed = [] {};
    calls.numbered = [this] { ++numbered; };
    calls.extend = [this](base::Duration deadline, base::Duration /*lease*/) { lease_until = deadline; };
    calls.problem = [this](const std::string& text) { problem = text; };
    calls.read_memory = [this] { return memory; };
    calls.write_memory = [this](const std::string& text) {
      if (line.has_no_memory) throw std::bad_alloc();
      memory = text;
      return true;
    };
    ClusterSettings settings;
    settings.store = "postgresql://here";
    settings.project = "site";
    settings.name = "one";
    settings.lease = lease;
    settings.run = runs;
    membership.emplace(loop, log, line, settings,
                       Membership::Options{.place = "here", .version = "1", .boottime = [this] { return boot; }},
                       std::move(calls));
  }

  static std::string hello(int server_timeline = 1, const std::string& more = {}) {
    return R"({"version":1,"oldest":1,"project":"site","queue":"q","system":"5","timeline":)" +
           std::to_string(server_timeline) + R"(,"serverTimeline":)" + std::to_string(server_timeline) +
           R"(,"epoch":"e","nextSeq":3,"newestEventMs":1000,"recovery":false,"adopted":true)" + more + "}";
  }
  /// None: the server is taken.
  std::optional<std::string> greet(const std::string& answer) {
    std::optional<std::string> refusal = "no verdict";
    membership->greet(
        Line::Way::work,
        [this](std::string_view function, std::vector<Argument> arguments, Line::Done done) {
          line.call(Line::Way::work, function, std::move(arguments), std::move(done));
        },
        [&refusal](std::optional<std::string> why) { refusal = std::move(why); });
    line.answer("hello_v1", answer);
    if (line.has("renew_v1")) line.answer("renew_v1", R"({"renewed":true,"epoch":"f","nextSeq":1000003})");
    return refusal;
  }
  void join() {
    EXPECT_EQ(greet(hello()), std::nullopt);
    membership->line_is_up();
    line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":false,"running":[]})");
    answer_beat();
    turn();
  }
  void refuse_join(const std::string& why) {
    EXPECT_EQ(greet(hello()), std::nullopt);
    membership->line_is_up();
    line.take("attach_v1").done(tl::unexpected(Fault{Fault::Kind::refused, "DU003", why}));
  }
  /// Another server takes over, and the lines lead to it.
  void fail_over() {
    EXPECT_EQ(greet(hello(2)), std::nullopt);
    membership->line_is_up();
  }
  static std::string beat_text(const std::string& workers = "[]") {
    return R"({"cancels":[],"workers":)" + workers +
           R"(,"mine":[],"shortestLease":90000,"epoch":"e","timeline":1,"serverTimeline":1,"agents":["claude","other"]})";
  }
  void answer_beat(const std::string& workers = "[]") { line.answer("beat_v1", beat_text(workers)); }
  void turn() { loop.turn(loop.now()); }
  /// On both clocks.
  void advance(base::Duration time) {
    clock.advance(time);
    boot += time;
    turn();
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};
  FakeLine line;
  base::Duration boot = 1000s;
  std::string memory;
  std::string problem;
  std::function<void(const std::vector<OwnAttempt>&)> on_joined;
  std::function<void(const Membership::Calls::Beat&)> on_beaten;
  std::function<void(const Membership::Calls::Recovery&)> on_recovered;
  std::function<std::string()> remembered;
  std::vector<std::size_t> joined;
  std::vector<Membership::Calls::Beat> beats;
  std::vector<std::int64_t> fenced;
  base::Duration lease_until = {};
  int looks = 0;
  int times_given_up = 0;
  bool has_room = false;
  int numbered = 0;
  std::optional<Membership> membership;
};

}  // namespace duet::task::postgres
