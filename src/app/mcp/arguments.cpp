#include "app/mcp/arguments.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <boost/json/array.hpp>

#include "app/words/near_miss.h"
#include "app/words/number.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

using Checked = tl::expected<value, ToolError>;

constexpr std::size_t most_shown = 60;

std::string shown(const value& given) { return one_line(rpc::to_text(given), most_shown); }

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view near = near_miss(word, candidates);
  return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
}

std::vector<std::string_view> names_in(const object& properties) {
  std::vector<std::string_view> names;
  for (const auto& property : properties) names.push_back(property.key());
  return names;
}

std::vector<std::string_view> words_in(const array& words) {
  std::vector<std::string_view> list;
  for (const value& word : words) list.push_back(word.get_string());
  return list;
}

ToolError wrong(std::string_view name, const value& given, const std::string& wanted) {
  return bad_argument("'" + std::string(name) + "' is " + shown(given), "give " + wanted);
}

std::optional<std::int64_t> whole_number(const value& given) {
  if (given.is_int64()) return given.get_int64();
  if (given.is_string()) return parse_number(given.get_string());
  if (!given.is_double()) return std::nullopt;
  constexpr double most = 9007199254740992.0;
  const double number = given.get_double();
  const bool is_whole = std::trunc(number) == number && std::abs(number) <= most;
  return is_whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

std::string range_of(const object& property) {
  const value* const least = property.if_contains("minimum");
  const value* const most = property.if_contains("maximum");
  if (least != nullptr && most != nullptr) return "a whole number from " + shown(*least) + " to " + shown(*most);
  return least != nullptr ? "a whole number from " + shown(*least) + " on" : "a whole number";
}

Checked check_integer(std::string_view name, const object& property, const value& given) {
  const std::optional<std::int64_t> number = whole_number(given);
  const value* const least = property.if_contains("minimum");
  const value* const most = property.if_contains("maximum");
  const bool fits = number && (least == nullptr || *number >= least->to_number<std::int64_t>()) &&
                    (most == nullptr || *number <= most->to_number<std::int64_t>());
  if (!fits) return tl::unexpected(wrong(name, given, range_of(property)));
  return value(*number);
}

Checked check_boolean(std::string_view name, const value& given) {
  if (given.is_bool()) return given;
  if (given.is_string() && given.get_string() == "true") return value(true);
  if (given.is_string() && given.get_string() == "false") return value(false);
  return tl::unexpected(wrong(name, given, "true or false"));
}

Checked check_string(std::string_view name, const object& property, const value& given) {
  if (!given.is_string()) return tl::unexpected(wrong(name, given, "a text"));
  const std::string_view text = given.get_string();
  if (text.find('\0') != text.npos) return tl::unexpected(wrong(name, given, "a text without NUL"));
  const value* const words = property.if_contains("enum");
  if (words == nullptr) return given;
  const std::vector<std::string_view> accepted = words_in(words->get_array());
  if (std::ranges::find(accepted, text) != accepted.end()) return given;
  return tl::unexpected(wrong(name, given, one_of(accepted) + suggestion(text, accepted)));
}

// A list that was spelt as text, as some models do.
std::optional<array> list_in(std::string_view text) {
  if (!text.starts_with('[') || !rpc::is_valid_json(text)) return std::nullopt;
  try {
    value list = rpc::parse_value(text);
    return list.is_array() ? std::optional(std::move(list.get_array())) : std::nullopt;
  } catch (const std::length_error&) {  // nested deeper than any message: no list of texts
    return array{nullptr};
  }
}

Checked check_array(std::string_view name, const value& given) {
  array list;
  if (given.is_array()) {
    list = given.get_array();
  } else if (given.is_string()) {
    list = list_in(given.get_string()).value_or(array{given});
  } else {
    return tl::unexpected(wrong(name, given, "a list of texts"));
  }
  for (const value& element : list) {
    const Checked checked = check_string(name, {}, element);
    if (!checked) return tl::unexpected(wrong(name, given, "a list of texts"));
  }
  return value(std::move(list));
}

Checked check(std::string_view name, const object& property, const value& given) {
  const std::string_view type = property.at("type").get_string();
  if (type == "integer") return check_integer(name, property, given);
  if (type == "boolean") return check_boolean(name, given);
  if (type == "array") return check_array(name, given);
  return check_string(name, property, given);
}

}  // namespace

tl::expected<Arguments, ToolError> Arguments::read(const Tool& tool, const object& schema, const object& given) {
  const object& properties = schema.at("properties").get_object();
  Arguments arguments;
  arguments.tool_ = tool.name;
  for (const auto& member : given) {
    const value* const property = properties.if_contains(member.key());
    if (property == nullptr) {
      const std::vector<std::string_view> names = names_in(properties);
      const std::string word(rpc::first_characters(member.key(), most_shown));
      return tl::unexpected(bad_argument(std::string(tool.name) + " has no argument '" + word + "'",
                                         one_of(names) + suggestion(member.key(), names)));
    }
    Checked checked = check(member.key(), property->get_object(), member.value());
    if (!checked) return tl::unexpected(checked.error());
    arguments.values_[member.key()] = std::move(*checked);
  }
  if (const value* const required = schema.if_contains("required")) {
    for (const value& name : required->get_array()) {
      if (arguments.has(name.get_string())) continue;
      const std::string missing(name.get_string());
      return tl::unexpected(bad_argument("'" + missing + "' is missing", "give " + missing));
    }
  }
  return arguments;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const value* const found = values_.if_contains(name);
  return found != nullptr ? std::optional(std::string(found->get_string())) : std::nullopt;
}

std::optional<std::int64_t> Arguments::number(std::string_view name) const {
  const value* const found = values_.if_contains(name);
  return found != nullptr ? std::optional(found->get_int64()) : std::nullopt;
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  std::vector<std::string> list;
  const value* const found = values_.if_contains(name);
  if (found == nullptr) return list;
  for (const value& element : found->get_array()) list.emplace_back(element.get_string());
  return list;
}

std::string Arguments::identity() const {
  std::vector<std::string> parts;
  for (const auto& member : values_) {
    const bool is_page = member.key() == "cursor" || member.key() == "max_bytes" || member.key() == "wait_seconds";
    if (!is_page) parts.push_back(std::string(member.key()) + '=' + rpc::to_text(member.value()));
  }
  std::ranges::sort(parts);
  std::string identity = tool_;
  for (const std::string& part : parts) identity += '\n' + part;
  return identity;
}

}  // namespace duet::app::mcp
