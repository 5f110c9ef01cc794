#include "app/doors/login.h"

#include <utility>

namespace duet::app {

std::variant<Tokens::Made, LoginRefused> log_in(LoginCodes& codes, Tokens& tokens, base::Log& log,
                                                std::string_view code, base::UtcTime now) {
  const LoginCodes::Verdict verdict = codes.look_at(code, now);
  if (const auto* many = std::get_if<LoginCodes::TooMany>(&verdict))
    return LoginRefused{429, "too-many", many->retry_after};
  if (std::holds_alternative<LoginCodes::Wrong>(verdict)) return LoginRefused{401, "code"};
  if (const auto* used = std::get_if<LoginCodes::Used>(&verdict)) {
    log.warn("a login code came a second time; the token that it made has ended", {{"token", used->token}});
    [[maybe_unused]] const auto ended = tokens.revoke(used->token);  // it may have ended before
    return LoginRefused{401, "used"};
  }
  auto made = tokens.create_for_browser(std::get<LoginCodes::Good>(verdict).role, now);
  if (!made) {
    log.error("a login failed", {{"reason", made.error().message()}});
    return LoginRefused{503, "tokens"};
  }
  codes.use(code, made->admission->name);
  log.info("a browser has logged in", {{"token", made->admission->name}, {"role", made->admission->role}});
  return std::move(*made);
}

}  // namespace duet::app
