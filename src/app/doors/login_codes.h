#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "duet/base/clock.h"

namespace duet::app {

struct LoginLimits {
  std::size_t waiting = 8;  ///< a new code pushes out the oldest
  std::chrono::seconds life = std::chrono::minutes(5);
  std::size_t remembered = 64;  ///< used ones, so that a second use is noticed
  std::size_t wrong = 10;       ///< so many wrong ones, then nobody gets in until `window` is over
  std::chrono::seconds window = std::chrono::minutes(1);
};

/// The codes by which browsers log in, each good for one use. They are in memory only, as SHA-256. Pure: codes and the
/// time are arguments. For one thread.
class LoginCodes {
 public:
  struct Good {
    std::string role;
  };
  struct Wrong {};  ///< nobody knows it, or it has expired
  struct Used {
    std::string token;  ///< the name of the one that its first use made
  };
  struct TooMany {
    std::chrono::seconds retry_after;
  };
  using Verdict = std::variant<Good, Wrong, Used, TooMany>;

  explicit LoginCodes(LoginLimits limits = {}) : limits_(limits) {}

  /// Until when it is good.
  base::UtcTime add(std::string_view code, std::string role, base::UtcTime now);
  /// What a code that came is worth. A good one stays so until use() is called. A second use is told whatever else
  /// came.
  Verdict look_at(std::string_view code, base::UtcTime now);
  /// A good one has made this token.
  void use(std::string_view code, std::string token);
  /// None of those that wait is good any more.
  void forget_waiting();

 private:
  struct Code {
    std::string sha256;
    std::string role;
    base::UtcTime created = {};
    std::optional<std::string> token = {};  // it was used
  };

  Code* find(std::string_view code);
  std::size_t count(bool used) const;
  void forget_oldest(bool used);
  bool is_over(const Code& code, base::UtcTime now) const;
  std::optional<TooMany> too_many(base::UtcTime now) const;
  void count_wrong(base::UtcTime now);

  LoginLimits limits_;
  std::deque<Code> codes_;  // the oldest first
  base::UtcTime first_wrong_ = {};
  std::size_t wrong_ = 0;  // since then
};

}  // namespace duet::app
