#include "duet/base/activity.h"

#include <algorithm>
#include <array>

namespace duet::base {
namespace {

class Writer {
 public:
  explicit Writer(std::span<char> to) : to_(to) {}

  void put(std::string_view text) {
    const std::size_t count = std::min(text.size(), to_.size() - size_);
    std::copy_n(text.begin(), count, to_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += count;
  }
  std::size_t size() const { return size_; }

 private:
  std::span<char> to_;
  std::size_t size_ = 0;
};

// `4duet` and the like; empty: something else comes here.
std::string_view next_identifier(std::string_view& mangled) {
  std::size_t digits = 0;
  std::size_t length = 0;
  for (; digits < mangled.size() && mangled[digits] >= '0' && mangled[digits] <= '9' && length < mangled.size();
       ++digits) {
    length = length * 10 + static_cast<std::size_t>(mangled[digits] - '0');
  }
  const std::string_view identifier = mangled.substr(digits, length);
  mangled.remove_prefix(digits + identifier.size());
  return identifier;
}

// The names around a class or a lambda are enough to find it; demangling in full would want memory.
void put_names(Writer& out, const char* name) {
  std::string_view rest = name;
  if (rest.starts_with("St")) out.put("std::");
  rest.remove_prefix(std::min(rest.find_first_not_of("ZNKSt"), rest.size()));
  bool first = true;
  for (std::string_view word = next_identifier(rest); !word.empty(); word = next_identifier(rest)) {
    if (word.starts_with("_GLOBAL_") || (first && word == "duet")) continue;
    if (!first) out.put("::");
    out.put(word);
    first = false;
  }
  if (first) out.put(name);
}

}  // namespace

std::size_t write_text(const Activity& what, std::span<char> to) {
  Writer out(to);
  if (what.callback != nullptr) put_names(out, what.callback->name());
  if (what.callback != nullptr && !what.method.empty()) out.put(", ");
  out.put(what.method);
  return out.size();
}

std::string to_text(const Activity& what) {
  std::array<char, 256> room;
  return {room.data(), write_text(what, room)};
}

}  // namespace duet::base
