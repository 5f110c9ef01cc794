#include "duet/peer/calls.h"

#include <charconv>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

rpc::Error read_error(std::string_view object) {
  int code = rpc::code::internal_error;
  std::string message;
  std::string data;
  if (object.starts_with('{')) {
    rpc::for_each_member(object, [&](std::string_view name, std::string_view value) {
      if (name == "code") code = static_cast<int>(rpc::decode_integer(value).value_or(code));
      if (name == "message" && value.starts_with('"')) message = rpc::decode_string(value);
      if (name == "data") data = value;
      return true;
    });
  }
  return {code, std::move(message), std::move(data)};
}

}  // namespace

std::string_view name_of(Outcome::Cause cause) {
  switch (cause) {
    case Outcome::Cause::answered: return "answered";
    case Outcome::Cause::refused: return "refused";
    case Outcome::Cause::timed_out: return "timed out";
    case Outcome::Cause::disconnected: return "disconnected";
    case Outcome::Cause::overloaded: return "overloaded";
  }
  return "disconnected";
}

Calls::~Calls() {
  for (const auto& [id, call] : calls_) loop_.cancel(call.timer);
}

std::uint64_t Calls::add(base::Duration patience, Callback callback) {
  const std::uint64_t id = ++last_id_;
  const auto timer = loop_.at(loop_.now() + patience, [this, id] { fail(id, Outcome::Cause::timed_out); });
  calls_.emplace(id, Call{std::move(callback), timer});
  return id;
}

bool Calls::settle(const rpc::Message& response) {
  std::uint64_t id = 0;
  const char* end = response.id.data() + response.id.size();
  const auto [at, error] = std::from_chars(response.id.data(), end, id);
  if (error != std::errc{} || at != end || id == 0 || id > last_id_) return false;
  if (response.error.empty()) {
    finish(id, {.cause = Outcome::Cause::answered, .result = std::string(response.result)});
  } else {
    finish(id, {.cause = Outcome::Cause::refused, .error = read_error(response.error)});
  }
  return true;
}

void Calls::fail(std::uint64_t id, Outcome::Cause cause) { finish(id, {.cause = cause}); }

void Calls::finish(std::uint64_t id, Outcome outcome) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // it has had its outcome; a late answer changes nothing
  const Call call = std::move(found->second);
  calls_.erase(found);
  loop_.cancel(call.timer);
  call.callback(std::move(outcome));
}

void Calls::fail_all(Outcome::Cause cause) {
  while (!calls_.empty()) fail(calls_.begin()->first, cause);
}

}  // namespace duet::peer
