#include "app/client/event_printer.h"

#include <algorithm>
#include <utility>

#include "app/project/failure.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

constexpr std::size_t most_early = std::size_t{64} << 20U;

std::optional<std::uint64_t> seq_of(std::string_view params) {
  const boost::json::value parsed = rpc::parse_value(params);
  const boost::json::value* const seq = parsed.is_object() ? parsed.get_object().if_contains("seq") : nullptr;
  return seq == nullptr ? std::nullopt : std::optional(seq->to_number<std::uint64_t>());
}

}  // namespace

EventPrinter::EventPrinter(std::optional<std::int64_t> since, const std::vector<std::string>& kinds, Print print)
    : since_(since), print_(std::move(print)) {
  for (const std::string& kind : kinds) kinds_.emplace_back(kind);
}

void EventPrinter::begin_again() {
  if (next_ > 0) since_ = static_cast<std::int64_t>(next_);
  early_.clear();
}

std::vector<object> EventPrinter::begin_subscription() {
  subscribed_ = behind_ = false;
  early_bytes_ = 0;
  std::vector<object> all;
  if (!kinds_.empty()) {
    boost::json::array kinds = kinds_;
    kinds.emplace_back("daemonStopping");
    all.push_back({{"kinds", std::move(kinds)}});
  }
  if (since_) all.push_back({{"since", *since_}});
  if (all.empty()) all.emplace_back();
  return all;
}

std::string EventPrinter::subscribed(std::string_view text) {
  subscribed_ = true;
  const object answer = rpc::parse_value(text).as_object();
  const auto newest = answer.at("next").to_number<std::uint64_t>();
  live_from_ = newest;
  if (const std::string_view epoch = answer.at("epoch").as_string(); epoch != epoch_) {
    const bool is_first = epoch_.empty();
    epoch_ = epoch;
    if (!is_first) return begin_epoch();
  }
  next_ = since_ ? std::min<std::uint64_t>(static_cast<std::uint64_t>(*since_), newest) : newest;
  std::string note = note_of(answer, newest);
  next_ = std::max<std::uint64_t>(next_, 1);
  std::erase_if(early_, [this](const Notification& event) { return event.seq < next_; });
  print_early();
  return note;
}

// A number that is still to come is not one that was forgotten.
std::string EventPrinter::note_of(const object& answer, std::uint64_t newest) {
  if (since_ && static_cast<std::uint64_t>(*since_) > newest) {
    return "event " + std::to_string(*since_) + " has not happened yet; the next one is " + std::to_string(newest);
  }
  const boost::json::value* const oldest = answer.if_contains("oldest");
  if (oldest == nullptr || !since_) return {};
  next_ = std::max(next_, oldest->to_number<std::uint64_t>());
  return "not all events since " + std::to_string(*since_) + " are kept; the oldest is " + rpc::to_text(*oldest);
}

void EventPrinter::take(std::string_view method, std::string_view params) {
  Notification event{std::string(method), std::string(params), seq_of(params)};
  if (method == "event.daemonStopping") stopped_ = is_final(event);
  if (!subscribed_) return keep_early(std::move(event));
  if (method == "event.overflow") {
    print(event);
    since_ = static_cast<std::int64_t>(event.seq.value());
    behind_ = true;
    return;
  }
  print_if_wanted(event);
  if (!event.seq) return;
  next_ = *event.seq + 1;
  print_early();
}

std::string EventPrinter::begin_epoch() {
  since_ = 1;
  next_ = 1;
  subscribed_ = false;
  behind_ = true;
  return "the history of events was lost; it begins anew";
}

// Those that are replayed tell of other daemons.
bool EventPrinter::is_final(const Notification& event) const {
  const bool is_new = !event.seq || *event.seq >= live_from_;  // one of a shared queue has no number
  return is_new && !rpc::parse_value(event.params).as_object().contains("restarting");
}

// A daemon sends so much only if it does not answer.
void EventPrinter::keep_early(Notification event) {
  early_bytes_ += event.params.size();
  if (early_bytes_ > most_early) throw Failure("the daemon sends events, but does not answer events.subscribe");
  early_.push_back(std::move(event));
}

// Those of the early ones whose turn it is.
void EventPrinter::print_early() {
  for (; !early_.empty() && early_.front().seq <= next_; early_.pop_front()) {
    print_if_wanted(early_.front());
    next_ = std::max(next_, early_.front().seq.value_or(0) + 1);
  }
}

void EventPrinter::print_if_wanted(const Notification& event) const {
  const bool is_wanted = kinds_.empty() || std::ranges::any_of(kinds_, [&](const boost::json::value& wanted) {
                           const std::string_view name = wanted.as_string();
                           return event.method == name || event.method == "event." + std::string(name);
                         });
  if (is_wanted) print(event);
}

void EventPrinter::print(const Notification& event) const {
  print_(event.method, event.params, !event.seq || *event.seq >= live_from_);
}

}  // namespace duet::app
