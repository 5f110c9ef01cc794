#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <tl/expected.hpp>

#include "app/mcp/tool_result.h"
#include "app/mcp/tool_table.h"

namespace duet::app::mcp {

/// The arguments of a call, checked against the tool's schema: every one is known, of its type and in its range. What
/// models tend to write differently is put right: `"5"` is 5, `"true"` is true, one text is a list of one. Nothing is
/// dropped or clamped.
class Arguments {
 public:
  static tl::expected<Arguments, ToolError> read(const Tool& tool, const boost::json::object& schema,
                                                 const boost::json::object& given);

  bool has(std::string_view name) const { return values_.contains(name); }
  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  std::int64_t number(std::string_view name, std::int64_t otherwise) const { return number(name).value_or(otherwise); }
  std::vector<std::string> texts(std::string_view name) const;
  std::size_t max_bytes() const { return static_cast<std::size_t>(number("max_bytes", usual_max_bytes)); }
  const boost::json::object& values() const { return values_; }
  /// What tells this call from others, whichever part of its answer is asked for: a cursor is good for the same one
  /// only.
  std::string identity() const;

 private:
  boost::json::object values_;
  std::string tool_;
};

}  // namespace duet::app::mcp
