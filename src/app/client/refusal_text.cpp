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
constexpr int unknown_task_code = -32000;

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

std::string all_of(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  }
  return text;
}

// `{"param":"key","taskId":"task-3","differs":["cwd"]}`
std::optional<std::string> used_key(const object& data) {
  const std::vector<std::string_view> differs = names_in(data, "differs");
  const value* const param = data.if_contains("param");
  const value* const task = data.if_contains("taskId");
  if (task == nullptr || param == nullptr || *param != "key") return std::nullopt;
  std::string text = "the key belongs to " + text_of(*task) + " already";
  if (!differs.empty()) text += ", where " + all_of(differs) + (differs.size() == 1 ? " is" : " are") + " different";
  return text;
}

// `{"method":"task.submit","needs":"own","role":"observe"}`
std::optional<std::string> small_role(const object& data) {
  const value* const needs = data.if_contains("needs");
  const value* const role = data.if_contains("role");
  if (needs == nullptr || role == nullptr) return std::nullopt;
  if (*needs == "unix") return "it is for the daemon's own machine, at its Unix socket";
  const std::string has = role->is_null() ? "no role" : text_of(*role);
  return "needs " + text_of(*needs) + ", this certificate has " + has;
}

std::string cut(const std::string& text) {
  const std::string_view shown = rpc::first_characters(text, longest_data);
  return std::string(shown) + (shown.size() < text.size() ? "..." : "");
}

std::string explained(const std::string& data) {
  if (data.empty()) return {};
  const value parsed = rpc::parse_value(data);
  if (!parsed.is_object()) return cut(rpc::to_text(parsed));
  if (const std::optional<std::string> agent = unknown_agent(parsed.get_object())) return *agent;
  if (const std::optional<std::string> key = used_key(parsed.get_object())) return *key;
  if (const std::optional<std::string> role = small_role(parsed.get_object())) return cut(*role);
  return cut(members_of(parsed.get_object()));
}

}  // namespace

std::string refusal_text(std::string_view method, const rpc::Error& error) {
  std::string text = std::string(method) + ": " + error.message() + " (" + std::to_string(error.code()) + ")";
  if (const std::string details = explained(error.data()); !details.empty()) text += ": " + details;
  if (error.code() == rpc::code::method_not_found) text += "; listMethods tells what there is";
  return text;
}

bool is_unknown_task(const peer::Outcome& outcome) {
  return outcome.error && outcome.error->code() == unknown_task_code;
}

}  // namespace duet::app
