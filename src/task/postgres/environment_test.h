#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace duet::task::postgres {

/// A variable of the environment for as long as this lives; none: it is taken out.
class Environment {
 public:
  Environment(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* was = std::getenv(name_.c_str())) was_ = was;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(was_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> was_;
};

}  // namespace duet::task::postgres
