#include "automation/event.h"

#include <cctype>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

constexpr std::string_view payload_prefix = "payload.";

// `exitCode` as `DUET_EXIT_CODE`.
std::string variable_name(std::string_view member) {
  if (member == "taskId") return "DUET_EVENT_TASK_ID";  // every task finds its own id in DUET_TASK_ID
  std::string name = "DUET_";
  for (const char c : member) {
    if (std::isupper(static_cast<unsigned char>(c))) name += '_';
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// The payloads as engine.cpp makes them.
std::vector<std::string_view> members_of(std::string_view source) {
  if (source == "watch") return {"path"};
  if (source == "schedule") return {"time"};
  if (source == "task") return {"taskId", "agent", "state", "exitCode", "signal"};
  return {};
}

}  // namespace

std::vector<std::string> fields_of_source(std::string_view source) {
  std::vector<std::string> fields{"source", "type"};
  for (const std::string_view member : members_of(source)) {
    fields.push_back(std::string(payload_prefix).append(member));
  }
  return fields;
}

std::optional<boost::json::value> field_of(const Event& event, std::string_view field) {
  if (field == "source") return boost::json::value(event.source);
  if (field == "type") return boost::json::value(event.type);
  if (!field.starts_with(payload_prefix)) return std::nullopt;
  const boost::json::value* found = event.payload.if_contains(field.substr(payload_prefix.size()));
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::string plain_text(const boost::json::value& value) {
  if (value.is_null()) return {};
  if (const boost::json::string* text = value.if_string()) return std::string(*text);
  return rpc::to_text(value);
}

process::Environment environment_of(const Event& event) {
  process::Environment environment{{"DUET_SOURCE", event.source}, {"DUET_TYPE", event.type}};
  for (const auto& [name, value] : event.payload) environment[variable_name(name)] = plain_text(value);
  return environment;
}

}  // namespace duet::automation
