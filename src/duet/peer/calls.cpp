#include "duet/peer/calls.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>
#include <vector>

#include "duet/rpc/json_text.h"

namespace duet::peer {

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
  }
  return "disconnected";
}

Calls::~Calls() = default;

std::uint64_t Calls::add(base::Duration patience, Callback callback) {
  const std::uint64_t id = ++last_id_;
  auto timer = loop_.after(patience, [this, id] { fail(id, Outcome::Cause::timed_out); });
  calls_.emplace(id, Call{std::move(callback), std::move(timer)});
  return id;
}

bool Calls::settle(const rpc::Message& response) {
  std::uint64_t id = 0;
  const char* end = response.id.data() + response.id.size();
  const auto [at, error] = std::from_chars(response.id.data(), end, id);
  if (error != std::errc{} || at != end || id == 0 || id > last_id_) return false;
  // Some servers send both members and leave the other one null.
  const bool answered = response.error.empty() || (response.error == "null" && !response.result.empty());
  if (answered) {
    finish(id, {.cause = Outcome::Cause::answered, .result = std::string(response.result)});
  } else {
    finish(id, {.cause = Outcome::Cause::refused, .error = rpc::decode_error(response.error)});
  }
  return true;
}

void Calls::fail(std::uint64_t id, Outcome::Cause cause) { finish(id, {.cause = cause}); }

void Calls::finish(std::uint64_t id, Outcome outcome) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // it has had its outcome; a late answer changes nothing
  const Call call = std::move(found->second);
  calls_.erase(found);
  tell(call.callback, std::move(outcome));
}

// Those that are pending now: a callback may make a new call.
void Calls::fail_all(Outcome::Cause cause) {
  std::vector<std::uint64_t> ids;
  ids.reserve(calls_.size());
  for (const auto& [id, call] : calls_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) fail(id, cause);
}

void Calls::tell(const Callback& callback, Outcome outcome) {
  try {
    callback(std::move(outcome));
  } catch (const std::exception& fault) {
    log_.error("Callback failed", {{"what", fault.what()}});
  } catch (...) {
    log_.error("Callback failed");
  }
}

}  // namespace duet::peer
