#pragma once

#include <cstdint>
#include <string_view>

namespace duet::framing {

/// Whether a text that comes in portions is UTF-8 (no overlong form, no surrogate, nothing above U+10FFFF). It keeps
/// nothing of the text.
class Utf8Check {
 public:
  /// False: it is not, whatever follows.
  bool add(std::string_view bytes);
  /// No character has only begun.
  bool is_whole() const { return left_ == 0; }

 private:
  bool begin(std::uint8_t lead);

  std::uint8_t left_ = 0;    // bytes that the character still needs
  std::uint8_t lowest_ = 0;  // what the next of them may be
  std::uint8_t highest_ = 0;
};

inline bool is_utf8(std::string_view text) {
  Utf8Check check;
  return check.add(text) && check.is_whole();
}

}  // namespace duet::framing
