#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/view/file_place.h"
#include "app/view/lsp_view.h"
#include "app/view/text_style.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using std::chrono::milliseconds;

constexpr milliseconds default_patience = std::chrono::seconds(45);  // a handshake may take 30
constexpr milliseconds default_wait = std::chrono::seconds(10);
constexpr milliseconds most_timeout = std::chrono::hours(24);

// What the daemon says is wrong with a place is about the file that the user has named.
Failure failure_of(std::string_view method, const peer::Outcome& outcome, const std::string& subject) {
  if (outcome.cause != peer::Outcome::Cause::refused) return DaemonClient::failure_of(method, outcome);
  const rpc::Error& error = *outcome.error;
  const boost::json::value tree = error.data().starts_with('{') ? rpc::parse_value(error.data()) : object();
  const object& data = tree.get_object();
  if (data.contains("cause")) return Failure(failure_line(error.message(), data));
  if (data.contains("candidates") || data.contains("near")) return Failure(symbol_failure_line(data));
  const boost::json::value* expected = data.if_contains("expected");
  const boost::json::value* param = data.if_contains("param");
  if (error.code() == rpc::code::invalid_params && expected != nullptr && param != nullptr && !subject.empty()) {
    return Failure(subject + ": the " + std::string(param->as_string()) + " must be " +
                   std::string(expected->as_string()));
  }
  return DaemonClient::failure_of(method, outcome);
}

std::string ask(DaemonClient& daemon, const CommandLine& line, std::string_view method, std::string_view params,
                const std::string& subject = {}, milliseconds least = {}) {
  const milliseconds patience = line.duration("timeout").value_or(std::max(default_patience, least));
  peer::Outcome outcome = daemon.ask(method, params, patience);
  if (outcome.cause != peer::Outcome::Cause::answered) throw failure_of(method, outcome, subject);
  return std::move(outcome.result);
}

// One of another machine is named as it is written, which is from the project's root there.
std::string named(const DaemonClient& daemon, const std::string& file) {
  if (daemon.is_far() && !rpc::is_utf8(file)) throw Failure("the name of the file is not UTF-8");
  if (daemon.is_far()) return file;
  const tl::expected<std::string, std::string> name = file_for_daemon(file);
  if (!name) throw Failure(name.error());
  return *name;
}

// A server that the daemon's PATH does not have may be on ours: version managers change it from shell to shell. Ours is
// of no use on another machine.
const char* path_for(const DaemonClient& daemon) { return daemon.is_far() ? nullptr : std::getenv("PATH"); }

TextStyle style_of(const CommandLine& line) { return TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)); }

// Of that severity, or worse.
bool has_findings(const object& result, std::string_view severity) {
  const auto counts = [severity](const boost::json::value& finding) {
    const std::string_view found = finding.at("severity").as_string();
    return found == "error" || found == severity;
  };
  return std::ranges::any_of(result.at("diagnostics").as_array(), counts);
}

// What an answer lacks, or may lack.
void tell_standing(const CommandLine& line, const object& result) {
  for (const std::string& lack : lacks_of(result)) print_aside(std::string(line.program) + ": " + lack + '\n');
}

// Asks, and shows the answer as `view` has it.
template <typename View>
int show(DaemonClient& daemon, const CommandLine& line, std::string_view method, object params, View view) {
  if (const char* const path = path_for(daemon)) params["path"] = path;
  const std::string answer = ask(daemon, line, method, rpc::to_text(params), line.arguments.front());
  if (line.flag("json")) return print_text(answer + '\n');
  const object result = rpc::parse_value(answer).as_object();
  const int code = print_text(view(result, style_of(line)));
  tell_standing(line, result);
  return code;
}

FilePlace place_in(const DaemonClient& daemon, const CommandLine& line) {
  return parse_file_place(line.arguments.front(), !daemon.is_far());
}

// About FILE[:LINE[:COL]], or FILE#NAME.
template <typename View>
int ask_about_place(const CommandLine& line, std::string_view method, View view) {
  DaemonClient daemon(line);
  const FilePlace place = place_in(daemon, line);
  object params;
  if (!place.symbol || !place.file.empty()) params["file"] = named(daemon, place.file);
  if (place.line) params["line"] = *place.line;
  if (place.column) params["column"] = *place.column;
  if (place.symbol) params["symbol"] = *place.symbol;
  return show(daemon, line, method, std::move(params), view);
}

}  // namespace

int run_lsp_hover(const CommandLine& line) { return ask_about_place(line, "lsp.hover", hover_view); }
int run_lsp_definition(const CommandLine& line) { return ask_about_place(line, "lsp.definition", places_view); }
int run_lsp_references(const CommandLine& line) { return ask_about_place(line, "lsp.references", places_view); }
int run_lsp_completion(const CommandLine& line) { return ask_about_place(line, "lsp.completion", completion_view); }

int run_lsp_symbols(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string file = named(daemon, place_in(daemon, line).file);
  return show(daemon, line, "lsp.symbols", {{"file", file}},
              [&](const object& result, const TextStyle& style) { return symbols_view(result, file, style); });
}

int run_lsp_find(const CommandLine& line) {
  DaemonClient daemon(line);
  object params{{"query", line.arguments.front()}};
  if (const std::optional<std::string> file = line.text("file")) params["file"] = named(daemon, *file);
  return show(daemon, line, "lsp.find", std::move(params), found_view);
}

int run_lsp_diagnostics(const CommandLine& line) {
  const milliseconds wait = line.duration("wait").value_or(default_wait);
  const std::optional<std::string> fail_on = line.text("fail-on");
  DaemonClient daemon(line);
  int code = 0;
  bool has_failed = false;
  for (const std::string& file : line.arguments) {
    object params{{"file", named(daemon, file)}, {"waitSeconds", std::chrono::duration<double>(wait).count()}};
    if (const char* const path = path_for(daemon)) params["path"] = path;
    const std::string text = ask(daemon, line, "lsp.diagnostics", rpc::to_text(params), file, wait + default_patience);
    const object result = rpc::parse_value(text).as_object();
    if (!are_known(result)) code = exit_code::no_answer;
    has_failed = has_failed || (fail_on && has_findings(result, *fail_on));
    print_text(line.flag("json") ? text + '\n' : diagnostics_view(result, style_of(line)));
    if (line.flag("json")) continue;
    tell_standing(line, result);
    if (!are_known(result) || result.at("fresh").as_bool()) continue;
    print_aside(std::string(line.program) + ": " + file + ": this may be about an earlier text, " +
                "since the server does not say which one it looked at\n");
  }
  return has_failed ? exit_code::findings : code;
}

int run_lsp_request(const CommandLine& line) {
  DaemonClient daemon(line);
  std::string params = R"({"method":)" + rpc::quoted(line.arguments.front());
  if (line.arguments.size() > 1) {
    const std::string given = params_argument(line.arguments[1]);
    if (!given.empty()) params += R"(,"params":)" + given;
  }
  if (const std::optional<std::string> server = line.text("server")) params += R"(,"server":)" + rpc::quoted(*server);
  if (const char* const path = path_for(daemon)) params += R"(,"path":)" + rpc::quoted(path);
  // Whose patience is set ends first, whatever the daemon would do by itself.
  if (const std::optional<milliseconds> timeout = line.duration("timeout")) {
    const std::chrono::duration<double> longer = std::min(*timeout + std::chrono::seconds(5), most_timeout);
    params += R"(,"timeoutSeconds":)" + std::to_string(longer.count());
  }
  return print_text(ask(daemon, line, "lsp.request", params + '}') + '\n');
}

int run_lsp_list(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result = ask(daemon, line, "lsp.list", {});
  if (line.flag("json")) return print_text(result + '\n');
  return print_text(servers_view(rpc::parse_value(result).as_object(), style_of(line)));
}

int run_lsp_stop(const CommandLine& line) {
  const std::string& name = line.arguments.front();
  DaemonClient daemon(line);
  const std::string result = ask(daemon, line, "lsp.stop", rpc::to_text(object{{"server", name}}));
  return print_text(line.flag("json") ? result + '\n' : name + " is stopped\n");
}

}  // namespace duet::app
