#include "app/mcp/resources.h"

#include <algorithm>

#include "duet/rpc/json_text.h"

namespace duet::app::mcp {
namespace {

bool is_task_name(std::string_view text) {
  constexpr std::size_t longest = 64;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return text.starts_with("task-") && text.size() <= longest && std::ranges::all_of(text, is_plain);
}

}  // namespace

std::optional<ResourceName> parse_resource(std::string_view uri) {
  using Kind = ResourceName::Kind;
  constexpr std::string_view tasks = "duet://tasks/";
  constexpr std::string_view output = "/output";
  if (uri == "duet://status") return ResourceName{Kind::status};
  if (uri == "duet://tasks") return ResourceName{Kind::tasks};
  if (!uri.starts_with(tasks)) return std::nullopt;
  std::string_view name = uri.substr(tasks.size());
  const Kind kind = name.ends_with(output) ? Kind::output : Kind::task;
  if (kind == Kind::output) name.remove_suffix(output.size());
  if (!is_task_name(name)) return std::nullopt;
  return ResourceName{kind, std::string(name)};
}

std::string_view resource_list() {
  return R"("resources":[{"uri":"duet://status","name":"status","title":"Project status",)"
         R"("description":"The project's daemon, agents, language servers, tasks by state, and what waits for approval",)"
         R"("mimeType":"application/json"},{"uri":"duet://tasks","name":"tasks","title":"Tasks",)"
         R"("description":"The newest 100 tasks of the project","mimeType":"application/json"}])";
}

std::string_view template_list() {
  return R"("resourceTemplates":[{"uriTemplate":"duet://tasks/{id}","name":"task","title":"Task",)"
         R"("description":"One task: its state and how it ended","mimeType":"application/json"},)"
         R"({"uriTemplate":"duet://tasks/{id}/output","name":"task-output","title":"Task output",)"
         R"("description":"The last 64 KiB that a task has written; the first line says what is missing before",)"
         R"("mimeType":"text/plain"}])";
}

std::string contents_of(std::string_view uri, const ResourceName& name, std::string_view text) {
  const bool is_text = name.kind == ResourceName::Kind::output;
  return R"("contents":[{"uri":)" + rpc::quoted(uri) + R"(,"mimeType":)" +
         (is_text ? R"("text/plain")" : R"("application/json")") + R"(,"text":)" + rpc::quoted(text) + "}]";
}

}  // namespace duet::app::mcp
