// A conversation: bytes, times and calls come from the input. However the bytes are split, the same is written, called
// and told; every call has one outcome at most, and exactly one at the end; what is held stays within its bound.
//
// The first byte chooses the protocol and the splits. A byte 1 and a letter are something that we do; all other bytes
// come from the peer.

#include "duet/peer/conversation.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "require.h"

namespace {

using namespace std::chrono_literals;
using duet::peer::Conversation;
using duet::peer::ConversationEvents;
using duet::peer::LostMessage;
using duet::peer::Methods;
using duet::peer::Outcome;
using duet::peer::Protocol;
using duet::peer::Reply;
using duet::rpc::Json;

constexpr std::size_t bound = 2000;
constexpr std::size_t largest_message = 300;

Protocol protocol_of(std::uint8_t choice) {
  Protocol protocol = choice % 4 == 0   ? Protocol::lsp_server()
                      : choice % 4 == 1 ? Protocol::json_lines()
                      : choice % 4 == 2 ? Protocol::lsp_client()
                                        : Protocol::json_lines_client();
  protocol.max_message = largest_message;
  protocol.max_waiting = bound;
  return protocol;
}

class Run {
 public:
  explicit Run(std::uint8_t choice) {
    methods_.add("echo", [](const Json& params) { return params; });
    methods_.add("throw", []() -> Json { throw 42; });
    methods_.add("late", [this](Reply<> reply) { replies_.push_back(std::move(reply)); });
    methods_.add("pipelined", [this](Reply<> reply) { replies_.push_back(std::move(reply)); }).pipelined();
    ConversationEvents events;
    events.on_lost = [this](const LostMessage& lost) { note("lost", std::string(lost.reason)); };
    events.on_notification = [this](std::string_view method, std::string_view params) {
      note("notification", std::string(method) + std::string(params));
    };
    talk_ = std::make_unique<Conversation>(protocol_of(choice), methods_, events);
  }

  void receive(std::string_view bytes) {
    talk_->receive(bytes, now_);
    check_load();
  }

  void act(char action) {
    switch (action) {
      case 'c':
        return call();
      case 'x':
        if (talk_->cancel(calls_)) note("withdrawn", "");
        return;
      case 'n':
        talk_->notify("n", Json::view("[1]"));
        return;
      case 'a':
      case 'd':
        return answer(action == 'a');
      case 't':
        return pass(1s);
      case 'T':
        return pass(40s);
      case 'w':
        return write(1 + talk_->output().size() / 2);
      case 'W':
        return write(std::string::npos);
      case 'e':
        talk_->end_of_input(now_);
        return;
      case 's':
        talk_->stop();
        return;
      default:
        talk_->refuse_partial_message();
    }
  }

  /// All that could be seen.
  std::string finish() {
    talk_->end_of_input(now_);
    write(std::string::npos);
    pass(1h);
    talk_->close();
    talk_->resume();
    require(outcomes_ + talk_->pending_calls() <= calls_, "no call has two outcomes");
    require(talk_->pending_calls() == 0, "every call has its outcome");
    return seen_;
  }

 private:
  void call() {
    ++calls_;
    talk_->call("ask", Json::view("[1]"), 10s, [this](const Outcome& outcome) {
      ++outcomes_;
      note(name_of(outcome.cause), std::to_string(outcome.call) + outcome.result + (outcome.was_sent ? "" : " unsent"));
    });
  }

  void answer(bool properly) {
    if (replies_.empty()) return;
    if (properly) replies_.front().ok(true);
    replies_.pop_front();
  }

  void pass(std::chrono::seconds time) {
    now_ += time;
    for (int i = 0; talk_->deadline().value_or(duet::base::TimePoint::max()) <= now_; ++i) {
      require(i < 5000, "its deadline passes");
      talk_->tick(now_);
    }
    check_load();
  }

  void write(std::size_t most) {
    for (std::string_view bytes = talk_->output(); !bytes.empty() && most > 0; bytes = talk_->output()) {
      const std::string_view portion = bytes.substr(0, most);
      seen_ += portion;
      most -= portion.size();
      talk_->written(portion.size());
    }
  }

  void note(std::string_view what, const std::string& detail) {
    seen_.append("\n<").append(what).append(" ").append(detail).append(">\n");
  }

  // While it wants no input, none is to be given; the fuzzer gives it all the same, so all that came may wait.
  void check_load() {
    if (talk_->wants_input()) {
      require(talk_->load() <= 2 * bound + 4 * largest_message + calls_ * 200, "what is held is within the bound");
    }
  }

  Methods methods_;
  std::deque<Reply<>> replies_;
  std::string seen_;
  std::size_t calls_ = 0;
  std::size_t outcomes_ = 0;
  duet::base::TimePoint now_{1h};
  std::unique_ptr<Conversation> talk_;
};

std::string run(std::string_view script, std::uint8_t choice, std::size_t largest) {
  std::minstd_rand random(choice);
  Run run(choice);
  while (!script.empty()) {
    if (script.front() == '\1' && script.size() > 1) {
      run.act(script[1]);
      script.remove_prefix(2);
      continue;
    }
    const std::string_view bytes = script.substr(0, std::max<std::size_t>(script.find('\1', 1), 1));
    const std::size_t count = std::min<std::size_t>(bytes.size(), largest == 0 ? bytes.size() : 1 + random() % largest);
    run.receive(bytes.substr(0, count));
    script.remove_prefix(count);
  }
  return run.finish();
}

// Which call a broken header hits is guessed from the text around it. That text may reach further if more came at once,
// and what follows differs with the call that has ended. Without such a call all must be the same.
bool is_guessed(std::uint8_t choice, std::string_view seen) {
  const bool has_headers = choice % 4 == 2;
  return has_headers && seen.find("<unreadable") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view script(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = run(script, data[0], 0);
  for (const std::size_t largest : {std::size_t{1}, std::size_t{40}}) {
    const std::string split = run(script, data[0], largest);
    if (is_guessed(data[0], whole) || is_guessed(data[0], split)) continue;
    require(split == whole, "in portions it is the same");
  }
  return 0;
}
