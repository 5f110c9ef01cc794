#include "app/mcp/revision.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/mirrored_fields.h"
#include "app/words/program_name.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "duet/version.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::string_view capabilities_key = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view server_info_key = "io.modelcontextprotocol/serverInfo";
constexpr int unsupported_version = -32022;
constexpr int missing_capability = -32021;
constexpr std::size_t longest_token = 1024;  // it is in every message about the progress

const object* object_member(const object& of, std::string_view name) {
  const value* const found = of.if_contains(name);
  return found != nullptr ? found->if_object() : nullptr;
}

std::string_view text_of_member(std::string_view of, std::string_view name) {
  std::string_view found;
  rpc::for_each_member(of, [&](std::string_view each, std::string_view text) {
    if (each == name) found = text;
    return true;
  });
  return found;
}

// A token is a text or a number; another one asks for nothing.
std::string token_in(const object* meta, std::string_view params) {
  const value* const token = meta != nullptr ? meta->if_contains("progressToken") : nullptr;
  const bool is_token = token != nullptr && (token->is_string() || token->is_number());
  return is_token ? std::string(text_of_member(text_of_member(params, "_meta"), "progressToken")) : std::string();
}

bool declares_tasks(const object& capabilities) {
  const object* const extensions = object_member(capabilities, "extensions");
  return extensions != nullptr && extensions->contains(tasks_extension);
}

tl::expected<Envelope, rpc::Error> read_modern(const object& meta, Envelope envelope) {
  const value& version = meta.at(version_key);
  if (!version.is_string()) return tl::unexpected(bad_params("the protocol version must be a string"));
  if (version.get_string() != modern_revision) return tl::unexpected(unsupported_revision(version.get_string()));
  const object* const capabilities = object_member(meta, capabilities_key);
  if (capabilities == nullptr) {
    return tl::unexpected(bad_params("_meta[\"" + std::string(capabilities_key) + "\"] must be an object"));
  }
  envelope.is_modern = true;
  envelope.revision = modern_revision;
  envelope.has_tasks = declares_tasks(*capabilities);
  return envelope;
}

// Whether the head goes with the body, and does not promise a modern request that is none.
std::optional<rpc::Error> fault_of_head(const McpFields& fields, std::string_view method, const object& params,
                                        const object* meta) {
  const value* const version = meta != nullptr ? meta->if_contains(version_key) : nullptr;
  if (version != nullptr && version->is_string()) {
    return fault_of_fields(fields, method, params, std::string_view(version->get_string()));
  }
  const bool is_promised = version == nullptr && fields.version == modern_revision && method != "initialize";
  if (is_promised) return bad_params("_meta[\"" + std::string(version_key) + "\"] is missing");
  return fault_of_fields(fields, method, params, std::nullopt);
}

rpc::Error before_initialize() {
  return bad_params("send initialize first, or _meta[\"" + std::string(version_key) + "\"] with each request");
}

}  // namespace

rpc::Error bad_params(std::string message) {
  return {rpc::code::invalid_params, "Invalid params: " + std::move(message)};
}

rpc::Error missing_tasks_capability() {
  const object data{{"requiredCapabilities", {{"extensions", {{tasks_extension, object()}}}}}};
  return {missing_capability, "Missing required client capability", rpc::Json(data)};
}

rpc::Error unsupported_revision(std::string_view requested) {
  boost::json::array supported(revisions.begin(), revisions.end());
  const object data{{"supported", std::move(supported)}, {"requested", rpc::first_characters(requested, 64)}};
  return {unsupported_version, "Unsupported protocol version", rpc::Json(data)};
}

tl::expected<Envelope, rpc::Error> read_envelope(std::string_view method, std::string_view params,
                                                 std::optional<std::string_view> initialized, const McpFields* fields) {
  Envelope envelope;
  if (!params.empty()) {
    value parsed = rpc::parse_value(params);
    if (!parsed.is_object()) return tl::unexpected(bad_params("they must be an object"));
    envelope.params = std::move(parsed.get_object());
  }
  const object* const meta = object_member(envelope.params, "_meta");
  envelope.progress_token = token_in(meta, params);
  if (fields != nullptr) {
    if (const auto fault = fault_of_head(*fields, method, envelope.params, meta)) return tl::unexpected(*fault);
  }
  if (envelope.progress_token.size() > longest_token)
    return tl::unexpected(bad_params("a progressToken has at most 1,024 bytes"));
  if (meta != nullptr && meta->contains(version_key)) {
    const object kept = *meta;
    return read_modern(kept, std::move(envelope));
  }
  if (!initialized && method != "initialize" && method != "ping") return tl::unexpected(before_initialize());
  envelope.revision = initialized.value_or(newest_legacy);
  envelope.has_tasks = envelope.revision == newest_legacy && envelope.params.contains("task");
  return envelope;
}

std::string_view agreed_revision(std::string_view asked) {
  const auto* const found = std::find(revisions.begin() + 1, revisions.end(), asked);
  return found != revisions.end() ? *found : newest_legacy;
}

object server_info() { return {{"name", program_name}, {"version", kVersion}}; }

std::string members_of(const object& object) {
  std::string text = rpc::to_text(object);
  return text.substr(1, text.size() - 2);
}

rpc::Json progress_text(const Envelope& envelope, const object& members) {
  return rpc::Json::trusted(R"({"progressToken":)" + envelope.progress_token + ',' + members_of(members) + '}');
}

rpc::Json result_text(const Envelope& envelope, std::string_view members, std::string_view result_type) {
  std::string text = "{";
  text += members;
  if (envelope.is_modern) {
    if (!members.empty()) text += ',';
    text += members_of({{"resultType", result_type}, {"_meta", {{server_info_key, server_info()}}}});
  }
  return rpc::Json::trusted(text += '}');
}

rpc::Json cacheable_text(const Envelope& envelope, std::string_view members, std::int64_t ttl) {
  if (!envelope.is_modern) return result_text(envelope, members);
  std::string text(members);
  if (!text.empty()) text += ',';
  return result_text(envelope, text + members_of({{"ttlMs", ttl}, {"cacheScope", "private"}}));
}

}  // namespace duet::app::mcp
