#include "duet/peer/calls.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

namespace duet::peer {
namespace {

// A patience too long to be counted has no end.
base::TimePoint deadline_of(base::TimePoint now, base::Duration patience) {
  return patience < base::TimePoint::max() - now ? now + patience : base::TimePoint::max();
}

}  // namespace

std::string_view name_of(Outcome::Cause cause) {
  switch (cause) {
    case Outcome::Cause::answered:
      return "answered";
    case Outcome::Cause::refused:
      return "refused";
    case Outcome::Cause::timed_out:
      return "timed out";
    case Outcome::Cause::disconnected:
      return "disconnected";
    case Outcome::Cause::overloaded:
      return "overloaded";
    case Outcome::Cause::unreadable:
      return "unreadable";
  }
  return "disconnected";
}

CallId read_call_id(std::string_view raw_id) {
  CallId id = 0;
  const char* const end = raw_id.data() + raw_id.size();
  const auto [at, error] = std::from_chars(raw_id.data(), end, id);
  return error == std::errc{} && at == end ? id : 0;
}

CallId Calls::add(base::Duration patience, CallCallback callback) {
  const CallId id = ++last_id_;
  calls_.emplace(id, Call{std::move(callback), patience, base::TimePoint::max()});
  without_clock_.push_back(id);
  return id;
}

bool Calls::handle_response(const rpc::Message& response) {
  const CallId id = read_call_id(response.id);
  if (id == 0 || id > last_id_) return false;
  // Some servers send both members and leave the other one null.
  const bool answered = response.error.empty() || (response.error == "null" && !response.result.empty());
  if (answered) {
    end(id, {.cause = Outcome::Cause::answered, .result = std::string(response.result)});
  } else {
    end(id, {.cause = Outcome::Cause::refused, .error = rpc::decode_error(response.error)});
  }
  return true;
}

bool Calls::forget(CallId id) {
  const bool was_there = calls_.erase(id) > 0;
  if (calls_.empty()) without_clock_.clear();
  return was_there;
}

void Calls::end(CallId id, Outcome outcome) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Call call = std::move(found->second);
  forget(id);
  outcome.call = id;
  tell(call.callback, std::move(outcome));
}

// Those that are pending now: a callback may make a new call.
void Calls::end_all(Outcome::Cause cause, const std::function<bool(CallId)>& was_sent) {
  std::vector<CallId> ids;
  ids.reserve(calls_.size());
  for (const auto& [id, call] : calls_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  std::vector<bool> sent;
  sent.reserve(ids.size());
  for (const CallId id : ids) sent.push_back(was_sent(id));
  for (std::size_t i = 0; i < ids.size(); ++i) end(ids[i], {.cause = cause, .was_sent = sent[i]});
}

std::optional<CallId> Calls::owner_of(std::string_view raw_id) const {
  if (raw_id.empty()) return calls_.size() == 1 ? std::optional(calls_.begin()->first) : std::nullopt;
  const CallId id = read_call_id(raw_id);
  return calls_.contains(id) ? std::optional(id) : std::nullopt;
}

void Calls::start_clocks(base::TimePoint now) {
  for (const CallId id : std::exchange(without_clock_, {})) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) continue;
    found->second.deadline = deadline_of(now, found->second.patience);
    earliest_ = std::min(earliest_, found->second.deadline);
  }
}

std::optional<base::TimePoint> Calls::deadline() const {
  if (calls_.empty()) return std::nullopt;
  if (!without_clock_.empty()) return base::TimePoint();
  return earliest_ == base::TimePoint::max() ? std::nullopt : std::optional(earliest_);
}

std::vector<CallId> Calls::due(base::TimePoint now) {
  std::vector<CallId> ids;
  if (now < earliest_) return ids;
  earliest_ = base::TimePoint::max();
  for (const auto& [id, call] : calls_) {
    if (call.deadline <= now) {
      ids.push_back(id);
    } else {
      earliest_ = std::min(earliest_, call.deadline);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

void Calls::tell(const CallCallback& callback, Outcome outcome) {
  try {
    callback(std::move(outcome));
  } catch (const std::exception& fault) {
    log_.error("Callback failed", {{"what", fault.what()}});
  } catch (...) {
    log_.error("Callback failed");
  }
}

}  // namespace duet::peer
