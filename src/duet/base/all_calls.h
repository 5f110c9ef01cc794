#pragma once

#include <exception>

namespace duet::base {

/// Calls that must all be made, whatever one of them throws.
class AllCalls {
 public:
  template <typename Call>
  void make(const Call& call) {
    try {
      call();
    } catch (...) {
      if (!first_fault_) first_fault_ = std::current_exception();
    }
  }

  /// After the last one: throws what was thrown first.
  void check() const {
    if (first_fault_) std::rethrow_exception(first_fault_);
  }

 private:
  std::exception_ptr first_fault_;
};

/// Calls each of these functions, whatever one of them throws; throws that then.
template <typename Functions, typename... Arguments>
void call_all(const Functions& functions, const Arguments&... arguments) {
  AllCalls calls;
  for (const auto& function : functions) calls.make([&] { function(arguments...); });
  calls.check();
}

}  // namespace duet::base
