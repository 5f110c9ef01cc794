#pragma once

#include <stdlib.h>
#include <time.h>

#include <optional>
#include <string>

#include "duet/base/clock.h"

namespace duet::automation {

/// Puts the whole process into a time zone, for one test.
class Zone {
 public:
  explicit Zone(const std::string& name) {
    if (const char* old = getenv("TZ")) before_ = old;
    set(name.c_str());
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;
  ~Zone() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static void set(const char* name) {
    name == nullptr ? unsetenv("TZ") : setenv("TZ", name, 1);
    tzset();
  }
  std::optional<std::string> before_;
};

/// `2026-03-29 03:00:00 +0200`
inline std::string local_text(base::UtcTime at) {
  const time_t when = std::chrono::system_clock::to_time_t(at);
  tm local{};
  localtime_r(&when, &local);
  std::string text(32, '\0');
  text.resize(strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S %z", &local));
  return text;
}

/// `2026-03-29T00:30:00Z`
inline base::UtcTime utc(const std::string& text) {
  tm parts{};
  strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace duet::automation
