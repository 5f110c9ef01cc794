#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace duet::task {

/// Numbers and texts as bytes, for another process of this program on the same machine.
class Packer {
 public:
  void put(std::uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void put(std::string_view text) {
    put(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes out what Packer put in. Of bytes that are something else it makes zeros and empty texts, and is not good.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  bool good() const { return good_; }
  bool is_complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace duet::task
