#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include <boost/mp11/algorithm.hpp>

#include "duet/rpc/types.h"

namespace duet::rpc {

/// A default-initialised object in storage that was full of one byte before. What its type does not initialise still
/// has that byte.
template <typename Struct>
class Stained {
 public:
  explicit Stained(int byte) {
    std::memset(storage_, byte, sizeof storage_);
    hide();
    object_ = new (storage_) Struct;
    hide();
  }
  Stained(const Stained&) = delete;
  Stained& operator=(const Stained&) = delete;
  ~Stained() { std::destroy_at(object_); }

  const Struct& operator*() const { return *object_; }

 private:
  // For the optimiser a new object has no past. This keeps it from knowing what is in the storage.
  void hide() { asm volatile("" : : "r"(storage_) : "memory"); }

  alignas(Struct) unsigned char storage_[sizeof(Struct)];
  Struct* object_;
};

/// Whether a member of a struct may be absent in JSON: an optional, a number, boolean or enum that has an initialiser,
/// or a text, list or map that is not empty by default. Two objects in differently stained storage tell which numbers
/// have an initialiser: those are equal.
template <typename Member>
bool may_be_absent(const Member& one, const Member& other) {
  if constexpr (OptionalType<Member>) {
    return true;
  } else if constexpr (std::is_scalar_v<Member>) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bytes are meant
    return std::memcmp(&one, &other, sizeof one) == 0;
  } else if constexpr (requires { one.empty(); }) {
    return !one.empty();
  } else {
    return false;
  }
}

/// A struct without constructors of its own. Only of such a one does the compiler leave alone what has no initialiser.
template <typename Struct>
concept PlainStruct = StructType<Struct> && std::is_aggregate_v<Struct> && std::is_default_constructible_v<Struct>;

/// May each member of a described struct be absent? In their order. It is found out once for each struct.
template <StructType Struct>
const std::array<bool, member_count<Struct>>& absent_members() {
  static const auto found = [] {
    std::array<bool, member_count<Struct>> absent{};
    std::size_t at = 0;
    if constexpr (PlainStruct<Struct>) {
      const Stained<Struct> zeros(0x00);
      const Stained<Struct> ones(0xFF);
      boost::mp11::mp_for_each<MembersOf<Struct>>(
          [&](auto member) { absent[at++] = may_be_absent((*zeros).*member.pointer, (*ones).*member.pointer); });
    } else {
      boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
        absent[at++] = OptionalType<std::remove_cvref_t<decltype(std::declval<Struct&>().*member.pointer)>>;
      });
    }
    return absent;
  }();
  return found;
}

}  // namespace duet::rpc
