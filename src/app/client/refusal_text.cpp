#include "app/client/refusal_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/words/number.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::size_t longest_data = 300;  // characters

std::string text_of(const value& value) {
  return value.is_string() ? std::string(value.get_string()) : rpc::to_text(value);
}

// Names in a row; nothing if it is something else.
std::vector<std::string_view> names_in(const object& data, std::string_view member) {
  std::vector<std::string_view> names;
  const value* const list = data.if_contains(member);
  if (list == nullptr || !list->is_array()) return names;
  for (const value& name : list->get_array()) {
    if (name.is_string()) names.emplace_back(name.get_string());
  }
  return names;
}

// `{"param":"kinds","expected":"array"}` as `param kinds, expected array`.
std::string members_of(const object& data) {
  std::string text;
  for (const auto& [name, member] : data) {
    if (!text.empty()) text += ", ";
    const std::vector<std::string_view> names = names_in(data, name);
    text.append(name).append(" ").append(names.empty() ? text_of(member) : one_of(names));
  }
  return text;
}

std::optional<std::string> unknown_agent(const object& data) {
  const std::vector<std::string_view> agents = names_in(data, "accepted");
  const value* const param = data.if_contains("param");
  const value* const received = data.if_contains("received");
  if (agents.empty() || received == nullptr || param == nullptr || *param != "agent") return std::nullopt;
  return "there is no agent '" + text_of(*received) + "': it must be " + one_of(agents);
}

std::string cut(const std::string& text) {
  const std::string_view shown = rpc::first_characters(text, longest_data);
  return std::string(shown) + (shown.size() < text.size() ? "..." : "");
}

std::string explained(const std::string& data) {
  if (data.empty()) return {};
  const value parsed = rpc::parse_value(data);
  if (!parsed.is_object()) return cut(rpc::to_text(parsed));
  const std::optional<std::string> agent = unknown_agent(parsed.get_object());
  return agent ? *agent : cut(members_of(parsed.get_object()));
}

}  // namespace

std::string refusal_text(std::string_view method, const rpc::Error& error) {
  std::string text = std::string(method) + ": " + error.message() + " (" + std::to_string(error.code()) + ")";
  if (const std::string details = explained(error.data()); !details.empty()) text += ": " + details;
  if (error.code() == rpc::code::method_not_found) text += "; listMethods tells what there is";
  return text;
}

}  // namespace duet::app
