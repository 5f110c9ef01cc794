#include "app/mcp/code_questions.h"

#include <cstdlib>
#include <utility>

#include <boost/json/array.hpp>

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

std::string server_progress(const value& servers) {
  for (const value& entry : servers.at("servers").as_array()) {
    const object& server = entry.as_object();
    const std::string name(server.at("name").as_string());
    if (const value* const work = server.if_contains("indexing"); work != nullptr && work->is_string()) {
      return name + ' ' + std::string(work->get_string());
    }
    if (server.at("state") != "ready" && server.at("state") != "running") return "starting " + name;
  }
  return "waiting for the language server";
}

}  // namespace

Call::How about_code(bool keeps_refusals) { return {.is_about_code = true, .keeps_refusals = keeps_refusals}; }

void add_path(object& params) {
  const char* const path = std::getenv("PATH");
  if (path != nullptr && *path != '\0') params["path"] = path;
}

tl::expected<Scope::Target, ToolError> locate_place(Call& call, NamedPlace& place) {
  Scope& scope = call.services().scope;
  tl::expected<Scope::Target, ToolError> whole = scope.locate_file(place.file);
  const NamedPlace split = split_place(place.file);
  if (whole || !split.line) return whole;
  tl::expected<Scope::Target, ToolError> file = scope.locate_file(split.file);
  if (!file) return whole;
  if (!place.line) {
    place.line = split.line;
    if (!place.column) place.column = split.column;
  }
  return file;
}

bool is_still_there(const CallPointer& call, const std::string& path) {
  tl::expected<Scope::Target, ToolError> target = call->services().scope.locate(path);
  if (target && target->path != path) {
    target = tl::unexpected(ToolError{.code = "not-found",
                                      .problem = one_line(path, 300) + " became a link during the call",
                                      .remedy = "the same call again"});
  }
  if (!target) call->fail(target.error());
  return target.has_value();
}

void tell_of_servers(const CallPointer& call, const std::string& root) {
  call->set_progress([weak = std::weak_ptr<Call>(call), root](const std::function<void(std::string)>& tell) {
    const CallPointer asking = weak.lock();
    if (!asking) return;
    Call::How how{.keeps_refusals = true, .on_failure = [tell](const ToolError&) { tell("starting the daemon"); }};
    asking->ask(root, {{"lsp.list", {}}}, how, [tell](const Call::Parts& parts) {
      tell(parts.front() ? server_progress(*parts.front()) : "waiting for the language server");
    });
  });
}

std::optional<PagePlace> page_place(const CallPointer& call, const Arguments& arguments) {
  const std::optional<std::string> cursor = arguments.text("cursor");
  if (!cursor) return PagePlace();
  const tl::expected<PagePlace, ToolError> place = read_cursor(*cursor, arguments.identity());
  if (place) return *place;
  call->fail(place.error());
  return std::nullopt;
}

void finish_page(const CallPointer& call, const Arguments& arguments, PagePlace from, const Page& page) {
  call->finish(page.cut(from, arguments.max_bytes(), arguments.identity()));
}

}  // namespace duet::app::mcp
