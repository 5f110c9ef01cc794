// Whatever comes in whatever order: each request is answered exactly once, and in order.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

/// Says things at random and knows what must come back.
class Talk {
 public:
  explicit Talk(std::size_t capacity) : c_(Protocol::json_lines(), capacity) {
    c_.add_late("drop_later", [this](const Request&, Reply<> reply) { dropped_.push_back(std::move(reply)); });
    c_.open();
  }

  void step(int kind, std::size_t number) {
    switch (kind) {
      case 0:
        return c_.send(ask("echo"));
      case 1:
        return c_.send(ask("late"));
      case 2:
        return c_.send(ask("drop_later"));
      case 3:
        return c_.send(notification("note", std::to_string(++notes_sent_).insert(0, "[") + "]"));
      case 4:
        return say_invalid();
      case 5:
        return say_batch(number);
      case 6:
        return say_cancel(number);
      case 7:
        return answer_one();
      case 8:
        return dropped_.clear();
      default:
        return c_.turn(static_cast<int>(number % 4));
    }
  }

  void finish() {
    int quiet = 0;
    for (int i = 0; i < 10'000 && quiet < 50; ++i) {
      answer_one();
      dropped_.clear();
      c_.turn(3);
      quiet = idle() && c_.far->sent_all() ? quiet + 1 : 0;
    }
  }

  /// The ids as they were answered.
  std::vector<std::string> answered() {
    std::vector<std::string> ids;
    for (const std::string& line : c_.heard()) {
      const boost::json::value answer = boost::json::parse(line);
      if (answer.is_object()) add_answer(answer, ids);
      if (answer.is_array()) {
        for (const auto& each : answer.as_array()) add_answer(each, ids);
      }
    }
    return ids;
  }
  const std::vector<std::string>& asked() const { return asked_; }
  bool idle() const { return c_.connection->load() == 0 && !c_.connection->conversation().owes_answer(); }
  bool notes_are_in_order() const {
    return c_.notes.size() == notes_sent_ && std::is_sorted(c_.notes.begin(), c_.notes.end(), [](auto& a, auto& b) {
             return std::stoul(a.substr(1)) < std::stoul(b.substr(1));
           });
  }
  /// Requests that were answered as cancelled though nobody cancelled them.
  std::size_t wrongly_cancelled() const { return wrongly_cancelled_; }

 private:
  std::string ask(const char* method) {
    asked_.push_back(std::to_string(asked_.size()));
    return request(asked_.back(), method);
  }
  void say_invalid() {
    asked_.emplace_back("null");
    c_.send("{}");
  }
  void say_batch(std::size_t number) {
    std::string batch;
    for (std::size_t i = 0; i < number % 5 + 1; ++i) {
      static constexpr std::array methods{"echo", "late", "drop_later", "missing"};
      batch += (i == 0 ? "[" : ",") + ask(methods[(number / 5 + i) % methods.size()]);
    }
    c_.send(batch + "]");
  }
  void say_cancel(std::size_t number) {
    if (asked_.empty()) return;
    const std::string& id = asked_[asked_.size() - 1 - number % std::min<std::size_t>(asked_.size(), 6)];
    cancelled_.insert(id);
    c_.send(cancel(id));
  }
  void answer_one() {
    if (!c_.replies.empty()) c_.answer_late("true");
  }
  void add_answer(const boost::json::value& answer, std::vector<std::string>& ids) {
    ids.push_back(boost::json::serialize(answer.at("id")));
    const auto* error = answer.as_object().if_contains("error");
    if (error != nullptr && error->at("code").as_int64() == -32800 && !cancelled_.contains(ids.back())) {
      ++wrongly_cancelled_;
    }
  }

  TestConnection c_;
  std::vector<Reply<>> dropped_;
  std::vector<std::string> asked_;
  std::set<std::string> cancelled_;
  std::size_t notes_sent_ = 0;
  std::size_t wrongly_cancelled_ = 0;
};

RC_GTEST_PROP(Order, EveryRequestIsAnsweredOnceAndInItsPlace, ()) {
  Talk talk(*rc::gen::element<std::size_t>(7, 200, 65536));
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 12), rc::gen::inRange<std::size_t>(0, 100)));
  for (const auto& [kind, number] : steps) talk.step(kind, number);
  talk.finish();
  RC_ASSERT(talk.idle());
  RC_ASSERT(talk.answered() == talk.asked());
  RC_ASSERT(talk.notes_are_in_order());
  RC_ASSERT(talk.wrongly_cancelled() == 0U);
}

}  // namespace
}  // namespace duet::peer
