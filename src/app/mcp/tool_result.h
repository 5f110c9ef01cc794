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

  static ToolResult of(const ToolError& error);
  /// The members of a `CallToolResult`, as JSON without braces.
  std::string members() const;
};

/// Text that is shown to a model on one line: line ends become blanks, and no more than `most` characters are left.
std::string one_line(std::string_view text, std::size_t most);
/// A member as text: a string as it is, other values as JSON; empty if it is not there or null.
std::string member_text(const boost::json::object& from, std::string_view name);
/// `4,096`
std::string grouped(std::uint64_t number);

}  // namespace duet::app::mcp
