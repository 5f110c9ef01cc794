#pragma once

#include <deque>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "task/postgres/line.h"

namespace duet::task::postgres {

/// A line whose database is the test: it sees what is called, and answers when it likes.
class FakeLine final : public Line {
 public:
  struct Call {
    Way way;
    std::string function;
    std::vector<Argument> arguments;
    Done done;
  };

  void start(Events started) override { events = std::move(started); }
  void call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) override {
    if (has_no_memory) throw std::bad_alloc();
    calls.push_back({way, std::string(function), std::move(arguments), std::move(done)});
  }
  void listen(const std::string& channel) override { channels.insert(channel); }
  void unlisten(const std::string& channel) override { channels.erase(channel); }
  bool is_up(Way /*way*/) const override { return up; }
  void reconnect(Way /*way*/, const std::string& why) override { reconnects.push_back(why); }
  Standing standing() const override {
    Standing standing;
    standing.server = "tester@here";
    standing.listens = listens;
    standing.waited = waited;
    return standing;
  }

  /// The first call of that function that waits, which waits no more. A test fails by exception if there is none.
  Call take(std::string_view function) {
    for (auto at = calls.begin(); at != calls.end(); ++at) {
      if (at->function != function) continue;
      Call call = std::move(*at);
      calls.erase(at);
      return call;
    }
    std::string there;
    for (const Call& call : calls) there += " " + call.function;
    throw std::out_of_range("no call of " + std::string(function) + " but:" + there);
  }
  bool has(std::string_view function) const {
    for (const Call& call : calls) {
      if (call.function == function) return true;
    }
    return false;
  }
  /// Answers it with JSON text.
  void answer(std::string_view function, const std::string& json) {
    take(function).done(Result({std::string(function)}, {{json}}));
  }
  void fail(std::string_view function, Fault::Kind kind, const std::string& sqlstate = {}) {
    take(function).done(tl::unexpected(Fault{kind, sqlstate, "the test says no"}));
  }

  /// That call is never answered, and whoever made it hears nothing.
  void lose(std::string_view function) { take(function); }

  bool up = true;
  bool has_no_memory = false;
  bool listens = true;
  base::Duration waited = {};
  Events events;
  std::deque<Call> calls;
  std::set<std::string> channels;
  std::vector<std::string> reconnects;
};

}  // namespace duet::task::postgres
