#pragma once

#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::base {

/// What a function returned, or what it threw.
template <typename Value>
class Result {
 public:
  template <typename Function>
  static Result of(Function& function) {
    try {
      if constexpr (std::is_void_v<Value>) {
        function();
        return Result(Outcome(std::in_place_index<0>));
      } else {
        return Result(Outcome(std::in_place_index<0>, function()));
      }
    } catch (...) {
      return Result(Outcome(std::in_place_index<1>, std::current_exception()));
    }
  }

  bool has_value() const { return outcome_.index() == 0; }
  /// Null if there is a value.
  std::exception_ptr exception() const { return has_value() ? nullptr : std::get<1>(outcome_); }

  /// The value, moved out; throws what the function threw.
  Value get() {
    if (!has_value()) std::rethrow_exception(std::get<1>(outcome_));
    if constexpr (!std::is_void_v<Value>) return std::move(std::get<0>(outcome_));
  }

 private:
  using Kept = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;
  using Outcome = std::variant<Kept, std::exception_ptr>;

  explicit Result(Outcome outcome) : outcome_(std::move(outcome)) {}

  Outcome outcome_;
};

}  // namespace duet::base
