#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/view/display_text.h"
#include "app/view/lsp_view.h"
#include "app/view/text_style.h"
#include "bridge/language_server.h"
#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using boost::json::object;
using std::chrono::milliseconds;

constexpr milliseconds handshake_patience = std::chrono::seconds(30);

std::int64_t in_ms(base::Duration duration) { return std::chrono::duration_cast<milliseconds>(duration).count(); }

std::string offers(const object& capabilities) {
  std::string out;
  for (const auto& [name, value] : capabilities) {
    std::string_view word = name;
    if (!word.ends_with("Provider") || (value.is_bool() && !value.get_bool())) continue;
    word.remove_suffix(std::string_view("Provider").size());
    out += (out.empty() ? "" : ", ") + one_line(word);
  }
  return out.empty() ? "nothing" : out;
}

std::string page(const object& found, const object& capabilities, const TextStyle& style) {
  const auto text = [&](std::string_view name) {
    const boost::json::value& value = found.at(name);
    return value.is_string() ? one_line(value.get_string()) : rpc::to_text(value);
  };
  const auto row = [&](std::string_view name, const std::string& content) {
    return style.name(name) + std::string(11 - name.size(), ' ') + content + '\n';
  };
  return row("server", text("name").empty() ? "does not say its name" : text("name")) +
         (text("version").empty() ? "" : row("version", text("version"))) +
         row("handshake", text("handshakeMs") + " ms") + row("shutdown", text("shutdownMs") + " ms") +
         row("positions", text("encoding")) + row("offers", offers(capabilities));
}

// Turns the loop until `done`, which comes by itself: whatever is waited for has a limit of its own.
void turn_until(transport::Loop& loop, const bool& done) {
  while (!done) loop.turn();
}

}  // namespace

int run_lsp_check(const CommandLine& line) {
  signal(SIGPIPE, SIG_IGN);
  const base::Fd executable(base::check_call(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe"));
  bridge::ServerSettings settings{.guard = {.executable = executable.get()},
                                  .client_version = kVersion,
                                  .environment = process::current_environment()};
  settings.patience.initialize = line.duration("timeout").value_or(handshake_patience);
  base::Log log(nullptr);
  transport::Loop loop;
  bridge::LanguageServer server(loop, log, {.name = line.arguments.front(), .command = line.arguments},
                                working_directory(), settings);
  bool done = false;
  std::optional<bridge::Failure> failure;
  server.use([&](const bridge::Failure* why) {
    done = true;
    if (why != nullptr) failure = *why;
  });
  turn_until(loop, done);
  if (failure) throw Failure(failure_line(failure->message, bridge::describe(*failure)));

  const object capabilities = server.capabilities().all;
  object found{{"name", server.capabilities().server_name},
               {"version", server.capabilities().server_version},
               {"encoding", bridge::name_of(server.capabilities().encoding)},
               {"handshakeMs", in_ms(server.handshake_time())}};
  const base::TimePoint before = loop.now();
  done = false;
  server.stop([&done] { done = true; });
  turn_until(loop, done);
  found["shutdownMs"] = in_ms(loop.now() - before);
  if (!line.flag("json")) {
    return print_text(page(found, capabilities, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color))));
  }
  found["capabilities"] = capabilities;
  return print_text(rpc::to_text(found) + '\n');
}

}  // namespace duet::app
