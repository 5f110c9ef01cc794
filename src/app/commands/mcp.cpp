#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/commands.h"
#include "app/log/log_setup.h"
#include "app/log/trace.h"
#include "app/mcp/client_channel.h"
#include "app/mcp/door.h"
#include "app/mcp/print_config.h"
#include "app/project/failure.h"
#include "app/stdio/lifecycle.h"
#include "app/stdio/orphan_watch.h"
#include "app/view/text_style.h"
#include "duet/peer/connection.h"
#include "duet/rpc/utf8.h"
#include "duet/transport/stdio.h"

namespace duet::app {
namespace {

constexpr std::chrono::milliseconds time_to_finish{1750};

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) names.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::vector<mcp::Group> groups_in(std::string_view list) {
  std::vector<mcp::Group> groups;
  for (const std::string& name : names_in(list)) {
    if (name == "code") {
      groups.push_back(mcp::Group::code);
    } else if (name == "task") {
      groups.push_back(mcp::Group::task);
    } else if (name == "project") {
      groups.push_back(mcp::Group::project);
    } else {
      throw Failure("--tools: '" + name + "' is no group; there are code, task and project");
    }
  }
  if (groups.empty()) throw Failure("--tools: groups of tools, such as code,task");
  return groups;
}

bool is_traced(const CommandLine& line) { return line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG")); }

mcp::Door::Options options_of(const CommandLine& line) {
  mcp::Door::Options options;
  options.scope = {.project = line.text("project"), .allow = line.texts("allow")};
  if (const auto groups = line.text("tools")) options.tools.groups = groups_in(*groups);
  options.tools.read_only = line.flag("read-only");
  if (const auto agents = line.text("agents")) options.agents = names_in(*agents);
  options.daemon = {.may_start = !line.flag("no-start"), .is_traced = is_traced(line)};
  return options;
}

void say_what_it_is() {
  if (isatty(STDIN_FILENO) != 1) return;
  constexpr std::string_view note =
      "duet-rpc mcp speaks the Model Context Protocol and is started by a client; see 'duet-rpc mcp --help'. ^D ends "
      "it.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, note.data(), note.size());
}

std::string folder_for_config(const std::string& given) {
  std::string folder = std::filesystem::absolute(given).lexically_normal().string();
  if (!rpc::is_utf8(folder)) throw Failure("a folder whose name is not UTF-8 cannot stand in a configuration");
  return folder;
}

// The options that a client's configuration has to repeat.
std::vector<std::string> repeated_options(const CommandLine& line) {
  std::vector<std::string> words;
  for (const CommandLine::Given& given : line.options) {
    const std::string_view name = given.option->name;
    const bool is_own = find_option(line.command, name) != nullptr && name != "print-config" && name != "trace" &&
                        name != "log-level" && name != "no-color";
    if (!is_own) continue;
    words.push_back("--" + std::string(name));
    const bool is_folder = name == "project" || name == "allow";
    if (is_folder) words.push_back(folder_for_config(given.value));
    if (!is_folder && !given.option->value.empty()) words.push_back(given.value);
  }
  return words;
}

}  // namespace

int print_mcp_config(const CommandLine& line) {
  options_of(line);  // what a client could not start is not printed
  const char* const path = std::getenv("PATH");
  const mcp::ClientConfig config = mcp::client_config(
      *line.text("print-config"), mcp::command_for_config(path != nullptr ? path : ""), repeated_options(line));
  const std::string place = config.place + '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, place.data(), place.size());
  return print_text(config.text);
}

int run_mcp(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  mcp::Door::Options options = options_of(line);
  signal(SIGPIPE, SIG_IGN);
  base::Fd output = transport::take_stdout();
  LogSetup setup = set_up_log(std::getenv("DUET_RPC_LOG"), line.log_level, colour_wanted(STDERR_FILENO, line.no_color));
  base::Log log(std::move(setup.sink), is_traced(line) ? base::Level::trace : setup.level);

  transport::Loop loop;
  Lifecycle lifecycle(loop, log);
  mcp::Door door(loop, log, std::move(options));
  auto stdio = std::make_unique<transport::StdioChannel>(loop, base::duplicate(STDIN_FILENO), std::move(output));
  const int input = stdio->input();
  auto client = std::make_unique<mcp::ClientChannel>(std::move(stdio), loop.clock());
  const mcp::ClientChannel& heard = *client;
  std::unique_ptr<transport::Channel> channel = std::move(client);
  if (is_traced(line)) channel = traced(std::move(channel), log, 0);
  peer::ConnectionEvents events = lifecycle.events();
  events.conversation.on_notification = [](std::string_view, std::string_view) {};  // what is not known is ignored
  peer::Connection connection(loop, std::move(channel), peer::Protocol::mcp_server(), door.methods(), log,
                              std::move(events));
  door.attach(connection.conversation().peer().connection,
              {.notify = [&connection](std::string_view method, const rpc::Json& params) {
                connection.conversation().notify(method, params);
              }});
  transport::Loop::Timer last_call;
  lifecycle.on_end([&] {
    door.begin_end();
    last_call = loop.after(time_to_finish, [&connection] { connection.close(peer::Ending::stopped); });
  });
  const std::unique_ptr<transport::Sentinel> sentinel = lifecycle.start(connection, input);
  const OrphanWatch orphan(
      loop, getppid(), [&heard] { return heard.heard_at(); }, [&lifecycle] { lifecycle.client_process_ended(); });

  announce(log, setup);
  say_what_it_is();
  return lifecycle.run(!descriptors.was_closed(STDOUT_FILENO));
}

}  // namespace duet::app
