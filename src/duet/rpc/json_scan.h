#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "duet/api.h"

namespace duet::rpc {

/// The deepest nesting a message may have; its own object is level 1.
inline constexpr std::size_t max_depth = 512;

/// What one pass over a JSON text tells: whether it is valid (RFC 8259, UTF-8 included, at any
/// depth), and, if it is an object, the raw texts of the members that make a JSON-RPC message.
/// Slices point into the text. Member names count however they are spelt (`"\u0069d"` is `id`).
struct Envelope {
  enum class Shape : std::uint8_t { invalid, object, array, scalar };
  enum Member : std::uint8_t { jsonrpc, id, method, params, result, error, member_count };

  Shape shape = Shape::invalid;
  bool too_deep = false;          ///< deeper than max_depth
  bool id_of_wrong_type = false;  ///< some `id` is an object, an array or a boolean
  bool method_is_plain = false;   ///< known to be spelt without escapes
  std::uint8_t present = 0;       ///< a bit for each member
  std::uint8_t doubled = 0;       ///< a bit for each member that stands there twice

  bool has(Member which) const { return (present >> which & 1U) != 0; }
  bool is_doubled(Member which) const { return (doubled >> which & 1U) != 0; }
  /// The raw text of a member's value; of the first one, if it is doubled. Empty when it is absent.
  std::string_view text(Member which) const {
    return has(which) ? std::string_view(begin_[which], size_[which]) : std::string_view();
  }
  void set(Member which, const char* begin, const char* end) {
    present = static_cast<std::uint8_t>(present | 1U << which);
    begin_[which] = begin;
    size_[which] = static_cast<std::size_t>(end - begin);
  }

 private:
  // Left alone until they are set: clearing them would be a tenth of what a small message costs.
  const char* begin_[member_count];
  std::size_t size_[member_count];
};

/// Time is linear in the text; memory is one bit for each level of nesting. Never throws on bad input.
DUET_API Envelope scan_envelope(std::string_view text);

/// True when `text` is one valid JSON value with nothing but white space around it.
DUET_API bool is_valid_json(std::string_view text);

/// Walks what is known to be a valid array or object. The callback returns false to stop early. Names are decoded, and
/// may not be kept.
DUET_API void for_each_element(std::string_view array, const std::function<bool(std::string_view value)>& visit);
DUET_API void for_each_member(std::string_view object,
                              const std::function<bool(std::string_view name, std::string_view value)>& visit);

}  // namespace duet::rpc
