#include "automation/event.h"

#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"
#include "task/text_or_bytes.h"

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

std::string lines_of(const boost::json::array& paths) {
  std::string lines;
  for (const boost::json::value& path : paths) {
    const std::string text = plain_text(path);
    if (text.find('\n') == text.npos) lines.append(text).append("\n");
  }
  return lines;
}

// No variable holds a NUL: it is written as printf's %b reads it.
std::string escaped_paths(const boost::json::array& paths) {
  std::string out;
  for (const boost::json::value& path : paths) {
    for (const char c : plain_text(path)) out.append(c == '\\' ? 2 : 1, c);
    out += "\\0000";
  }
  return out;
}

// Its texts as they can be written down: a name need not be UTF-8.
boost::json::value saved_value(const boost::json::value& value) {
  if (const boost::json::string* text = value.if_string()) return task::text_or_bytes(std::string(*text));
  if (!value.is_array()) return value;
  boost::json::array saved;
  for (const boost::json::value& each : value.get_array()) saved.push_back(saved_value(each));
  return saved;
}

// No list in a payload has numbers: they are the bytes of a text.
boost::json::value loaded_value(const boost::json::value& saved) {
  if (!saved.is_array()) return saved;
  const boost::json::array& list = saved.get_array();
  if (!list.empty() && list.front().is_number()) return boost::json::value(task::from_text_or_bytes(saved));
  boost::json::array loaded;
  for (const boost::json::value& each : list) loaded.push_back(loaded_value(each));
  return loaded;
}

// The payloads as engine.cpp makes them.
std::vector<std::string_view> members_of(std::string_view source) {
  if (source == "watch") return {"path", "paths"};
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

void add_paths(Event& event, const Event& other) {
  const boost::json::value* const more = other.payload.if_contains("paths");
  if (more == nullptr) return;
  boost::json::value& paths = event.payload["paths"];
  if (!paths.is_array()) paths.emplace_array();
  std::set<std::string, std::less<>> known;
  std::size_t bytes = 0;
  for (const boost::json::value& path : paths.get_array()) bytes += known.emplace(path.as_string()).first->size() + 1;
  for (const boost::json::value& path : more->as_array()) {
    if (known.contains(std::string_view(path.as_string()))) continue;
    bytes += path.as_string().size() + 1;
    if (known.size() >= most_paths || bytes > most_path_bytes) return;
    known.emplace(path.as_string());
    paths.get_array().push_back(path);
  }
}

void prefer_what_is_there(Event& event, const Event& other) {
  constexpr std::string_view gone = "file.delete";
  const boost::json::value* const path = other.payload.if_contains("path");
  if (event.type != gone || other.type == gone || path == nullptr) return;
  event.type = other.type;
  event.payload["path"] = *path;
}

boost::json::object save_event(const Event& event) {
  boost::json::object payload;
  for (const auto& [name, value] : event.payload) payload[name] = saved_value(value);
  boost::json::object saved{{"source", event.source},
                            {"type", event.type},
                            {"payload", std::move(payload)},
                            {"depth", event.depth},
                            {"cause", event.cause}};
  if (!event.occasion.empty()) saved["occasion"] = event.occasion;
  return saved;
}

Event load_event(const boost::json::object& saved) {
  boost::json::object payload;
  for (const auto& [name, value] : saved.at("payload").as_object()) payload[name] = loaded_value(value);
  const boost::json::value* const occasion = saved.if_contains("occasion");
  return {.source = std::string(saved.at("source").as_string()),
          .type = std::string(saved.at("type").as_string()),
          .payload = std::move(payload),
          .depth = saved.at("depth").to_number<unsigned>(),
          .cause = std::string(saved.at("cause").as_string()),
          .occasion = occasion == nullptr ? std::string() : std::string(occasion->as_string())};
}

std::string plain_text(const boost::json::value& value) {
  if (value.is_null()) return {};
  if (const boost::json::string* text = value.if_string()) return std::string(*text);
  return rpc::to_text(value);
}

process::Environment environment_of(const Event& event) {
  process::Environment environment{{"DUET_SOURCE", event.source}, {"DUET_TYPE", event.type}};
  for (const auto& [name, value] : event.payload) {
    environment[variable_name(name)] = value.is_array() ? lines_of(value.get_array()) : plain_text(value);
    if (value.is_array()) environment[variable_name(name) + "_0"] = escaped_paths(value.get_array());
  }
  return environment;
}

}  // namespace duet::automation
