#include "app/mcp/mirrored_fields.h"

#include <algorithm>
#include <array>
#include <string>

#include "app/mcp/revision.h"
#include "duet/base/base64.h"
#include "duet/rpc/message.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

constexpr int header_mismatch = -32020;

// Which param Mcp-Name repeats. Of tasks clients that know no tasks leave it out.
struct NamedParam {
  std::string_view method;
  std::string_view param;
  bool is_required;
};
constexpr std::array<NamedParam, 7> named_params = {{{"tools/call", "name", true},
                                                     {"resources/read", "uri", true},
                                                     {"prompts/get", "name", true},
                                                     {"tasks/get", "taskId", false},
                                                     {"tasks/result", "taskId", false},
                                                     {"tasks/update", "taskId", false},
                                                     {"tasks/cancel", "taskId", false}}};

// Nothing of the request is repeated in the message.
rpc::Error mismatch(std::string_view field, std::string_view how) {
  return {header_mismatch, "Header mismatch: " + std::string(field) + ' ' + std::string(how)};
}

rpc::Error differs(std::string_view field) { return mismatch(field, "is not what the body has"); }
rpc::Error is_missing(std::string_view field) { return mismatch(field, "is missing"); }

// What a header cannot hold as it is comes as =?base64?…?=.
std::optional<std::string> decoded(std::string_view text) {
  constexpr std::string_view begin = "=?base64?";
  constexpr std::string_view end = "?=";
  const bool is_encoded = text.size() >= begin.size() + end.size() && text.starts_with(begin) && text.ends_with(end);
  if (!is_encoded) return std::string(text);
  return base::from_base64(text.substr(begin.size(), text.size() - begin.size() - end.size()));
}

std::optional<rpc::Error> fault_of_name(const std::optional<std::string>& given, std::string_view method,
                                        const object& params, bool is_modern) {
  const auto* const named = std::ranges::find(named_params, method, &NamedParam::method);
  if (named == named_params.end()) return std::nullopt;
  const value* const param = params.if_contains(named->param);
  const bool has_param = param != nullptr && param->is_string();
  if (!given) {
    const bool is_needed = is_modern && named->is_required && has_param;
    return is_needed ? std::optional(is_missing("Mcp-Name")) : std::nullopt;
  }
  const std::optional<std::string> name = decoded(*given);
  const bool is_same = name && has_param && *name == std::string_view(param->get_string());
  return is_same ? std::nullopt : std::optional(differs("Mcp-Name"));
}

std::optional<rpc::Error> fault_of_version(const McpFields& fields, std::optional<std::string_view> version) {
  if (version) {
    if (!fields.version) return is_missing("MCP-Protocol-Version");
    return *fields.version == *version ? std::nullopt : std::optional(differs("MCP-Protocol-Version"));
  }
  const bool is_spoken = !fields.version || std::ranges::find(revisions, *fields.version) != revisions.end();
  return is_spoken ? std::nullopt : std::optional(unsupported_revision(*fields.version));
}

std::optional<std::string_view> version_in(const value& params) {
  const object* const members = params.if_object();
  const value* const meta = members != nullptr ? members->if_contains("_meta") : nullptr;
  const object* const about = meta != nullptr ? meta->if_object() : nullptr;
  const value* const version = about != nullptr ? about->if_contains(version_key) : nullptr;
  const bool is_there = version != nullptr && version->is_string();
  return is_there ? std::optional(std::string_view(version->get_string())) : std::nullopt;
}

}  // namespace

std::optional<rpc::Error> fault_of_fields(const McpFields& fields, std::string_view method, const object& params,
                                          std::optional<std::string_view> version) {
  if (fields.has_repeated) return mismatch("a field", "is there twice");
  if (auto fault = fault_of_version(fields, version)) return fault;
  const bool is_modern = version == modern_revision;
  if (version && !is_modern) return std::nullopt;  // whatever that one repeats: it is refused for itself
  if (!fields.method && is_modern) return is_missing("Mcp-Method");
  if (fields.method && *fields.method != method) return differs("Mcp-Method");
  return fault_of_name(fields.name, method, params, is_modern);
}

std::optional<rpc::Error> fault_of_notification(const McpFields& fields, std::string_view text) {
  const bool repeats_nothing = !fields.version && !fields.method && !fields.has_repeated;
  if (repeats_nothing) return std::nullopt;
  const rpc::Message message = rpc::decode(text, rpc::Batches::refused);
  if (message.kind != rpc::Message::Kind::notification) return std::nullopt;
  if (fields.has_repeated) return mismatch("a field", "is there twice");
  const value params = message.params.empty() ? value() : rpc::parse_value(message.params);
  const std::optional<std::string_view> version = version_in(params);
  if (fields.version) {
    if (auto fault = fault_of_version(fields, version)) return fault;
  }
  if (fields.method && *fields.method != message.method) return differs("Mcp-Method");
  return std::nullopt;
}

}  // namespace duet::app::mcp
