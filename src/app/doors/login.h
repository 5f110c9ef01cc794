#pragma once

#include <chrono>
#include <string_view>
#include <variant>

#include "app/doors/login_codes.h"
#include "app/doors/tokens.h"
#include "duet/base/clock.h"
#include "duet/base/log.h"

namespace duet::app {

/// Why a login fails, in terms of HTTP.
struct LoginRefused {
  int status = 401;
  std::string_view word;                  ///< `code`, `used`, `too-many` or `tokens`
  std::chrono::seconds retry_after = {};  ///< with 429
};

/// Makes a browser's token of a login code. A code that comes a second time ends the token that its first use made: one
/// of the two who had it should not have had it, and nobody knows which.
std::variant<Tokens::Made, LoginRefused> log_in(LoginCodes& codes, Tokens& tokens, base::Log& log,
                                                std::string_view code, base::UtcTime now);

}  // namespace duet::app
