#include "app/doors/mcp_post.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "duet/framing/http_checks.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/message.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

// What the head itself is wrong about, or the request as a whole. Other errors are what a method answers.
constexpr std::array<std::pair<int, unsigned>, 7> statuses = {{
    {-32700, 400},
    {-32600, 400},
    {-32601, 404},
    {-32602, 400},
    {-32020, 400},
    {-32021, 400},
    {-32022, 400},
}};

std::optional<std::string> field_of(const framing::HttpHead& head, std::string_view name, bool& has_repeated) {
  has_repeated = has_repeated || head.fields.count(name) > 1;
  const std::optional<std::string_view> value = head.fields.find(name);
  return value ? std::optional(std::string(*value)) : std::nullopt;
}

std::optional<std::int64_t> error_code(std::string_view answer) {
  const rpc::Envelope message = rpc::scan_envelope(answer);
  if (message.shape != rpc::Envelope::Shape::object || !message.has(rpc::Envelope::error)) return std::nullopt;
  return rpc::parse_value(message.text(rpc::Envelope::error)).at("code").as_int64();
}

}  // namespace

McpPost mcp_post_of(const framing::HttpHead& head) {
  McpPost post{.takes_json = framing::accepts(head, "application/json"),
               .takes_stream = framing::accepts(head, "text/event-stream")};
  McpFields& fields = post.fields;
  fields.version = field_of(head, "mcp-protocol-version", fields.has_repeated);
  fields.method = field_of(head, "mcp-method", fields.has_repeated);
  fields.name = field_of(head, "mcp-name", fields.has_repeated);
  return post;
}

unsigned mcp_status(std::string_view answer) {
  const std::optional<std::int64_t> code = error_code(answer);
  const auto* const found = std::ranges::find(statuses, code, [](const auto& entry) { return entry.first; });
  return found != statuses.end() ? found->second : 200;
}

std::string mcp_refusal(const rpc::Error& error) {
  const std::string encoded = rpc::encode(error);
  std::string answer;
  rpc::encode_error_without_id(encoded).append_to(answer);
  return answer;
}

std::string mcp_event(std::string_view message) {
  std::string event = "event: message\ndata: ";
  return event.append(message).append("\n\n");
}

}  // namespace duet::app
