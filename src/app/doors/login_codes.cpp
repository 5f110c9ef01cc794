#include "app/doors/login_codes.h"

#include <algorithm>
#include <utility>

#include "app/doors/secrets.h"
#include "app/words/sha256.h"

namespace duet::app {

base::UtcTime LoginCodes::add(std::string_view code, std::string role, base::UtcTime now) {
  std::erase_if(codes_, [&](const Code& each) { return !each.token && is_over(each, now); });
  while (count(false) >= limits_.waiting) forget_oldest(false);
  codes_.push_back({.sha256 = sha256(code), .role = std::move(role), .created = now});
  return now + limits_.life;
}

LoginCodes::Verdict LoginCodes::look_at(std::string_view code, base::UtcTime now) {
  const Code* const found = find(code);
  if (found != nullptr && found->token) return Used{*found->token};
  if (const auto refused = too_many(now)) return *refused;
  if (found != nullptr && !is_over(*found, now)) return Good{found->role};
  count_wrong(now);
  return Wrong{};
}

void LoginCodes::use(std::string_view code, std::string token) {
  Code* const found = find(code);
  if (found == nullptr) return;
  found->token = std::move(token);
  while (count(true) > limits_.remembered) forget_oldest(true);
}

void LoginCodes::forget_waiting() {
  std::erase_if(codes_, [](const Code& code) { return !code.token; });
}

// All of them are compared, so that the time tells nothing.
LoginCodes::Code* LoginCodes::find(std::string_view code) {
  const std::string digest = sha256(code);
  Code* found = nullptr;
  for (Code& each : codes_) {
    if (is_same_secret(each.sha256, digest)) found = &each;
  }
  return found;
}

std::size_t LoginCodes::count(bool used) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(codes_, [=](const Code& code) { return code.token.has_value() == used; }));
}

void LoginCodes::forget_oldest(bool used) {
  const auto oldest = std::ranges::find_if(codes_, [=](const Code& code) { return code.token.has_value() == used; });
  if (oldest != codes_.end()) codes_.erase(oldest);
}

// A clock that was set back makes none of them good for longer.
bool LoginCodes::is_over(const Code& code, base::UtcTime now) const {
  return now < code.created || now - code.created >= limits_.life;
}

std::optional<LoginCodes::TooMany> LoginCodes::too_many(base::UtcTime now) const {
  const auto passed = now - first_wrong_;
  if (wrong_ < limits_.wrong || passed < passed.zero() || passed >= limits_.window) return std::nullopt;
  return TooMany{std::chrono::ceil<std::chrono::seconds>(limits_.window - passed)};
}

void LoginCodes::count_wrong(base::UtcTime now) {
  const bool is_first = wrong_ == 0 || now < first_wrong_ || now - first_wrong_ >= limits_.window;
  if (is_first) {
    first_wrong_ = now;
    wrong_ = 0;
  }
  ++wrong_;
}

}  // namespace duet::app
