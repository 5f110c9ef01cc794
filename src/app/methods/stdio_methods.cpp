#include "app/methods/stdio_methods.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "app/methods/describing_methods.h"
#include "app/words/program_name.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/params.h"
#include "duet/rpc/value.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using peer::Answer;
using peer::Request;

std::string initialize_result() {
  return R"({"serverInfo":{"name":)" + rpc::quoted(program_name) + R"(,"version":)" + rpc::quoted(kVersion) +
         R"(},"protocolVersion":"2.0"})";
}

// LSP clients tell who they are; whatever else stands in the params of `initialize` concerns nobody here.
std::optional<std::int64_t> process_id(std::string_view params) {
  if (!params.starts_with('{')) return std::nullopt;
  const std::array<rpc::Param, 1> known{{{.name = "processId", .type = rpc::Type::any, .required = false}}};
  const std::string_view value = rpc::Params(known, params).slice("processId");
  if (value.empty() || rpc::json_type(value) != "number") return std::nullopt;
  return rpc::decode_integer(value);
}

peer::Method initialize(const StdioActions& actions) {
  return {
      .name = "initialize",
      .summary = "Tells the server's name and version; optional. The daemon ends with the process named by a processId",
      .params = {},
      .handler =
          [result = initialize_result(), watch = actions.watch_process](const Request& request) {
            if (const std::optional<std::int64_t> pid = process_id(request.params.raw())) watch(*pid);
            return Answer::view(result);
          },
      .late_handler = {},
      .checks_params = false};
}

peer::Method set_log_level(base::Log& log) {
  return {.name = "setLogLevel",
          .summary = "Changes how much the daemon logs, until it ends",
          .params = {{.name = "level",
                      .type = rpc::Type::text,
                      .summary = "The least severe level that is logged, in any case",
                      .accepted = {base::level_names.begin(), base::level_names.end()}}},
          .handler =
              [&log](const Request& request) {
                const base::Level level = base::parse_level(*request.params.text("level")).value();
                log.set_level(level);
                return Answer::raw(R"({"level":)" + rpc::quoted(base::level_name(level)) + R"(,"success":true})");
              },
          .late_handler = {}};
}

peer::Method shutdown(const StdioActions& actions) {
  return {.name = "shutdown",
          .summary = "Ends the daemon, after the answer to this; also as a notification",
          .params = {},
          .handler =
              [shut_down = actions.shut_down](const Request&) {
                shut_down();
                return Answer::view(R"({"message":"Shutting down gracefully"})");
              },
          .late_handler = {}};
}

}  // namespace

void add_stdio_methods(peer::Methods& methods, base::Log& log, const StdioActions& actions) {
  methods.add(initialize(actions));
  add_describing_methods(methods, false);
  methods.add(set_log_level(log));
  methods.add(shutdown(actions));
}

}  // namespace duet::app
