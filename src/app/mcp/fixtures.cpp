#include "app/mcp/fixtures.h"

#ifdef DUET_TEST_METHODS

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "app/mcp/mcp_tasks.h"
#include "app/mcp/resources.h"
#include "app/mcp/task_requests.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::string_view no_arguments = R"({"type":"object","properties":{}})";
constexpr std::string_view broken_prompt = "sleep 0.2; echo it breaks";  // of the task that ends in an error of ours
constexpr std::string_view red_pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

// What a tool answers at once: the members of its result. One without is handled by its name.
struct FixtureTool {
  std::string_view name;
  std::string_view result = {};
  std::string_view schema = no_arguments;
};

constexpr std::array fixture_tools = std::to_array<FixtureTool>({
    {"test_simple_text", R"("content":[{"type":"text","text":"This is a simple text response for testing."}])"},
    {"test_image_content",
     R"("content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="}])"},
    {"test_audio_content",
     R"("content":[{"type":"audio","mimeType":"audio/wav","data":"UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="}])"},
    {"test_embedded_resource",
     R"("content":[{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}])"},
    {"test_multiple_content_types",
     R"("content":[{"type":"text","text":"Multiple content types test:"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="},{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}])"},
    {"test_error_handling",
     R"("content":[{"type":"text","text":"This tool intentionally returns an error for testing"}],"isError":true)"},
    {"test_streaming_elicitation", R"("content":[{"type":"text","text":"Nothing was asked."}])"},
    {"test_logging_tool", R"("content":[{"type":"text","text":"Nothing was logged."}])"},
    {"test_missing_capability"},
    {"test_tool_with_progress"},
    {"json_schema_2020_12_tool", R"("content":[{"type":"text","text":"Done."}])",
     R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false})"},
    {"greet", {}, R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})"},
    {"slow_compute", {}, R"({"type":"object","properties":{"seconds":{"type":"integer"},"label":{"type":"string"}}})"},
    {"failing_job"},
    {"protocol_error_job"},
    {"confirm_delete", {}, R"({"type":"object","properties":{"filename":{"type":"string"}}})"},
});

constexpr std::string_view fixture_resources =
    R"({"uri":"test://static-text","name":"static-text","mimeType":"text/plain"},)"
    R"({"uri":"test://static-binary","name":"static-binary","mimeType":"image/png"},)"
    R"({"uri":"test://watched-resource","name":"watched-resource","mimeType":"text/plain"}])";
constexpr std::string_view fixture_templates =
    R"({"uriTemplate":"test://template/{id}/data","name":"template","mimeType":"application/json"}])";

std::string_view text_in(const object& from, std::string_view name) {
  const value* const found = from.if_contains(name);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

const object& object_in(const object& from, std::string_view name) {
  static const object nothing;
  const value* const found = from.if_contains(name);
  return found != nullptr && found->is_object() ? found->get_object() : nothing;
}

// A list with more at its end; both are JSON.
std::string extended(std::string_view list, std::string_view more) {
  return std::string(list.substr(0, list.size() - 1)) + ',' + std::string(more);
}

std::string definitions() {
  std::string text;
  for (const FixtureTool& tool : fixture_tools) {
    text += (text.empty() ? R"({"name":")" : R"(,{"name":")") + std::string(tool.name) +
            R"(","description":"Fixture of the conformance suite","inputSchema":)" + std::string(tool.schema) + '}';
  }
  return text += ']';
}

std::string text_content(std::string_view text) {
  return R"("content":[{"type":"text","text":)" + rpc::quoted(text) + "}]";
}

// What the shell is to do for a tool that is a task; empty for other tools.
std::string prompt_of(std::string_view tool, const object& arguments) {
  if (tool == "failing_job") return "sleep 1; exit 1";
  if (tool == "protocol_error_job") return std::string(broken_prompt);
  if (tool == "confirm_delete") return "echo nobody is asked here";
  if (tool != "slow_compute") return {};
  const value* const seconds = arguments.if_contains("seconds");
  const std::int64_t wait = seconds != nullptr && seconds->is_int64() ? seconds->get_int64() : 1;
  return "sleep " + std::to_string(wait) + "; echo computed";
}

std::optional<std::string> contents_of_fixture(std::string_view uri) {
  constexpr std::string_view before = "test://template/";
  constexpr std::string_view behind = "/data";
  const std::string head = R"("contents":[{"uri":)" + rpc::quoted(uri);
  if (uri == "test://static-binary") {
    return head + R"(,"mimeType":"image/png","blob":")" + std::string(red_pixel) + "\"}]";
  }
  if (uri == "test://static-text" || uri == "test://watched-resource") {
    return head + R"(,"mimeType":"text/plain","text":"This is the content of the static text resource."}])";
  }
  if (!uri.starts_with(before) || !uri.ends_with(behind)) return std::nullopt;
  const std::string_view id = uri.substr(before.size(), uri.size() - before.size() - behind.size());
  const object data{{"id", id}, {"templateTest", true}};
  return head + R"(,"mimeType":"application/json","text":)" + rpc::quoted(rpc::to_text(data)) + "}]";
}

rpc::Error missing_sampling() {
  constexpr int missing_capability = -32021;
  const object data{{"requiredCapabilities", {{"sampling", object()}}}};
  return {missing_capability, "Missing required client capability", rpc::Json(data)};
}

}  // namespace

Fixtures::Fixtures(Services& services) : services_(services) {
  const char* const wish = std::getenv("DUET_RPC_MCP_FIXTURES");
  are_wanted_ = wish != nullptr && std::string_view(wish) == "1";
}

bool Fixtures::take(std::string_view method, const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply) {
  if (!are_wanted_) return false;
  if (method == "tools/call") return call(client, envelope, reply);
  if (method == "tasks/get") return get_task(client, envelope, reply);
  if (method.starts_with("resources/") && !method.ends_with("/list")) return read(method, envelope, reply);
  return list(method, envelope, reply);
}

bool Fixtures::list(std::string_view method, const Envelope& envelope, peer::Reply<>& reply) const {
  constexpr std::int64_t kept_for_a_second = 1000;
  std::string members;
  if (method == "tools/list") members = "\"tools\":" + extended(services_.tools.text(false), definitions());
  if (method == "resources/list") members = extended(resource_list(), fixture_resources);
  if (method == "resources/templates/list") members = extended(template_list(), fixture_templates);
  if (members.empty()) return false;
  reply.ok(cacheable_text(envelope, members, kept_for_a_second));
  return true;
}

bool Fixtures::call(const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply) {
  const std::string name(text_in(envelope.params, "name"));
  const auto* const tool = std::ranges::find(fixture_tools, name, &FixtureTool::name);
  if (tool == fixture_tools.end()) return false;
  const object arguments = object_in(envelope.params, "arguments");
  const std::string prompt = prompt_of(name, arguments);
  const bool must_be_task = name == "failing_job" || name == "protocol_error_job";
  if (must_be_task && !envelope.has_tasks) {
    reply.fail(missing_tasks_capability());
  } else if (!prompt.empty()) {
    envelope.params["name"] = "task_run";
    envelope.params["arguments"] = object{{"prompt", prompt}, {"agent", "shell"}, {"wait_seconds", 50}};
    return false;
  } else if (name == "test_missing_capability") {
    reply.fail(missing_sampling());
  } else if (name == "test_tool_with_progress") {
    tell_progress(client, envelope, peer::shared(std::move(reply)), 0);
  } else if (name == "greet") {
    reply.ok(result_text(envelope, text_content("Hello, " + std::string(text_in(arguments, "name")) + "!")));
  } else {
    reply.ok(result_text(envelope, tool->result));
  }
  return true;
}

bool Fixtures::read(std::string_view method, const Envelope& envelope, peer::Reply<>& reply) const {
  const std::optional<std::string> contents = contents_of_fixture(text_in(envelope.params, "uri"));
  if (!contents) return false;
  if (method == "resources/read") {
    reply.ok(cacheable_text(envelope, *contents, 0));
  } else if (!envelope.is_modern) {
    reply.ok(result_text(envelope, ""));  // it never changes, so that a subscription has nothing to tell
  } else {
    return false;
  }
  return true;
}

// The door itself never says that a task broke as a request does. The suite has one that must. Its state comes from one
// look: with a second look it could have ended between the two, and would be told as any other task.
bool Fixtures::get_task(const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply) {
  const tl::expected<std::string, rpc::Error> handle = handle_in(envelope);
  if (!envelope.is_modern || !handle) return false;
  const auto call = std::make_shared<Call>(services_, Call::Kind::request, client, std::move(envelope),
                                           peer::Reply<>(std::move(reply)));
  call->begin();
  call->ask(call->home(), {{"task.get", {{"handle", *handle}}}}, {.keeps_refusals = true},
            [call, handle = *handle](const Call::Parts& parts) {
              const bool breaks = parts[0] && text_in(parts[0]->as_object(), "prompt") == broken_prompt;
              if (!breaks) return answer_task(call, handle);
              const GivenTask task{.handle = handle, .view = {.record = parts[0]->as_object()}};
              object out = modern_task(task, call->services().loop.clock().utc());
              if (has_ended(parts[0]->as_object())) {
                out["status"] = "failed";
                out["error"] = object{{"code", rpc::code::internal_error}, {"message", "Internal error"}};
              }
              call->answer(result_text(call->envelope(), members_of(out)));
            });
  return true;
}

void Fixtures::tell_progress(const ClientPointer& client, const Envelope& envelope, const SharedReply& reply,
                             int percent) {
  constexpr std::chrono::milliseconds between{50};
  if (!envelope.progress_token.empty()) {
    client->tell("notifications/progress", progress_text(envelope, {{"progress", percent}, {"total", 100}}));
  }
  if (percent == 100) return reply->ok(result_text(envelope, text_content("All steps are done.")));
  timers_.push_back(services_.loop.after(
      between, [this, client, envelope, reply, percent] { tell_progress(client, envelope, reply, percent + 50); }));
}

}  // namespace duet::app::mcp

#endif
