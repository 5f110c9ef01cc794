#pragma once

#include <memory>
#include <utility>

namespace duet::base {

/// How an object gives others calls of itself that they may make when it is gone: those do nothing then.
///
/// A member of the object, and its last one, so that it ends first. For one thread only.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  /// The same call, for as long as this lives. It returns nothing.
  template <typename Call>
  auto bind(Call call) const {
    return [call = std::move(call), there = std::weak_ptr<const void>(there_)](auto&&... arguments) mutable {
      if (!there.expired()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  /// True until this ends; for a loop whose body may be the end of its owner.
  auto watch() const {
    return [there = std::weak_ptr<const void>(there_)] { return !there.expired(); };
  }

 private:
  std::shared_ptr<const char> there_ = std::make_shared<const char>();
};

}  // namespace duet::base
