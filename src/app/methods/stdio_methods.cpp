#include "app/methods/stdio_methods.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "app/command_table.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/params.h"
#include "duet/rpc/value.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using peer::Answer;
using peer::Request;

// Answers with the same text every time. It lives in the table, so it need not be copied.
peer::Handler constant(std::string text) {
  return [text = std::move(text)](const Request&) { return Answer::view(text); };
}

// The same for a description of the table, which is complete only when it is asked for.
peer::Handler described(std::function<boost::json::value()> describe) {
  return [describe = std::move(describe), text = std::string()](const Request&) mutable {
    if (text.empty()) text = rpc::to_text(describe());
    return Answer::view(text);
  };
}

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
  const std::span<const std::string_view> names = level_names();
  return {.name = "setLogLevel",
          .summary = "Changes how much the daemon logs, until it ends",
          .params = {{.name = "level",
                      .type = rpc::Type::text,
                      .summary = "The least severe level that is logged, in any case",
                      .accepted = {names.begin(), names.end()}}},
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

peer::Method plain(std::string name, std::string summary, std::string returns, peer::Handler handler) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .params = {},
          .returns = std::move(returns),
          .handler = std::move(handler),
          .late_handler = {}};
}

}  // namespace

void add_stdio_methods(peer::Methods& methods, base::Log& log, const StdioActions& actions) {
  methods.add(initialize(actions));
  methods.add(plain("listMethods", "Lists the methods, with a description of each", "array",
                    described([&methods] { return methods.list(); })));
  methods.add(plain("describeMethods", "Lists the methods, with what each takes and returns", "array",
                    described([&methods] { return methods.describe(); })));
  methods.add(plain("version", "Tells the server's version", "object",
                    constant(R"({"version":)" + rpc::quoted(kVersion) + "}")));
  methods.add(set_log_level(log));
  methods.add(shutdown(actions));

  peer::Method discover = plain("rpc.discover", "Describes the methods as an OpenRPC document", "object",
                                described([&methods] { return methods.open_rpc(program_name, kVersion); }));
  discover.listed = false;
  methods.add(std::move(discover));
}

}  // namespace duet::app
