#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/base/utc_text.h"

namespace duet::base {

/// `trace` is no level that one chooses: who asked for a trace in some other way gets it at any level.
enum class Level : unsigned char { debug, info, warn, error, trace };

/// Those that one may choose.
inline constexpr std::array<std::string_view, 4> level_names{"debug", "info", "warn", "error"};

DUET_API std::string_view level_name(Level level);
/// One of level_names, in any case.
DUET_API std::optional<Level> parse_level(std::string_view name);

/// A JSON value as it stood in a message, e.g. an id. Empty: there was none, and the field is left out.
struct JsonText {
  std::string_view json;
};
/// A JSON text that is not cut. For traces.
struct WholeJson {
  std::string_view json;
};

/// One `key=value` of a log line. It only points at its text, so it lives no longer than the logging call.
///
/// Text is quoted and JSON-escaped; JSON stands as it is. Either way what reaches the log has at most
/// `max_field_chars` characters (then `...` follows), is valid UTF-8 and holds no control characters, line separators
/// or direction marks. Keys are literals of the program and are not escaped.
class DUET_API Field {
 public:
  static constexpr std::size_t max_field_chars = 200;

  Field(std::string_view key, std::string_view text) : key_(key), text_(text), kind_(Kind::text) {}
  Field(std::string_view key, JsonText json) : key_(key), text_(json.json), kind_(Kind::json) {}
  Field(std::string_view key, WholeJson json) : key_(key), text_(json.json), kind_(Kind::whole_json) {}
  Field(std::string_view key, std::same_as<bool> auto flag)
      : key_(key), text_(flag ? "true" : "false"), kind_(Kind::json) {}
  Field(std::string_view key, std::signed_integral auto number)
      : key_(key), bits_(static_cast<std::uint64_t>(static_cast<std::int64_t>(number))), kind_(Kind::signed_number) {}
  Field(std::string_view key, std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>)
      : key_(key), bits_(number), kind_(Kind::unsigned_number) {}

 private:
  friend class LineFormat;
  enum class Kind : unsigned char { text, json, whole_json, signed_number, unsigned_number };

  std::string_view key_;
  std::string_view text_;
  std::uint64_t bits_ = 0;
  Kind kind_;
};

using Fields = std::initializer_list<Field>;

/// Makes the text of a log line, newline included:
///
///     2026-11-15T09:30:00.123Z warn  Method not found method="frobnicate" id=7
///
/// Whatever message and fields hold, the result is one line. A message is cut to `max_message_chars` characters.
/// Pure but for a cache of the current second's text; no locale, no time zone. One thread at a time.
class DUET_API LineFormat {
 public:
  static constexpr std::size_t max_message_chars = 1000;

  explicit LineFormat(bool coloured = false) : coloured_(coloured) {}

  void append(std::string& out, std::chrono::system_clock::time_point time, Level level, std::string_view message,
              Fields fields);

 private:
  static void append_field(std::string& out, const Field& field);

  bool coloured_;
  UtcText time_;
};

/// The level of a line that LineFormat made without colours; `error` if it has none that one could choose.
DUET_API Level level_of_line(std::string_view line);

}  // namespace duet::base
