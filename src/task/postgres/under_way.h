#pragma once

#include <memory>
#include <utility>

namespace duet::task::postgres {

/// Whether something is under way: a call that was made with until(), and has not been answered.
///
/// It is over when that call is made, but also when it is let go of. So nothing stays under way that could not be asked
/// for, that nobody will answer, or whose answer could not be taken. For one thread only; it outlives the calls.
class UnderWay {
 public:
  explicit operator bool() const { return !token_.expired(); }

  /// The same call, which is the end of it.
  template <typename Call>
  auto until(Call call) {
    auto token = std::make_shared<const char>();
    token_ = token;
    return [this, token = std::move(token), call = std::move(call)](auto&&... arguments) mutable {
      token_.reset();
      call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::weak_ptr<const char> token_;
};

}  // namespace duet::task::postgres
