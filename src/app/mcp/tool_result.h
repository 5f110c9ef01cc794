#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/object.hpp>

namespace duet::app::mcp {

/// What a model can mend: a code, what is wrong, and what to try, with the real names in it.
struct ToolError {
  std::string code;
  std::string problem;  ///< a sentence without its full stop
  std::string remedy;   ///< the same
};

ToolError bad_argument(std::string problem, std::string remedy);

/// What a tool answers: a text and the same as JSON, either of which is enough alone.
struct ToolResult {
  std::string text;
  std::optional<boost::json::object> structured = {};
  bool is_error = false;

  static constexpr std::size_t no_bound = static_cast<std::size_t>(-1);

  /// What is too long of the error for `max_bytes` is cut.
  static ToolResult of(const ToolError& error, std::size_t max_bytes = no_bound);
  /// The members of a `CallToolResult`, as JSON without braces. If one of its forms is longer than `max_bytes`, they
  /// are those of an error that says how long.
  std::string members(std::size_t max_bytes = no_bound) const;
};

/// Text that is shown to a model on one line: line ends become blanks, and no more than `most` characters are left.
std::string one_line(std::string_view text, std::size_t most);
/// No more than `most` bytes of a text, which are at least 3; `…` stands for what is missing.
std::string shortened(std::string_view text, std::size_t most);
/// A member as text: a string as it is, other values as JSON; empty if it is not there or null.
std::string member_text(const boost::json::object& from, std::string_view name);
/// `4,096`
std::string grouped(std::uint64_t number);

}  // namespace duet::app::mcp
