#include "app/mcp/daemon_link.h"

#include <fcntl.h>

#include <utility>

#include "app/cli/command_table.h"
#include "app/log/trace.h"
#include "app/project/running_daemon.h"
#include "app/words/program_name.h"
#include "app/words/shell_word.h"
#include "duet/base/fd.h"

namespace duet::app::mcp {
namespace {

constexpr std::chrono::milliseconds between_looks{50};

CommandLine line_for(const std::string& root) {
  const CommandEntry* const command = find_command("daemon status");
  return {.command = command, .options = {{find_option(command, "project"), root}}};
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string start_words(const std::string& root) {
  return "'" + std::string(program_name) + " daemon start --project " + shell_word(root) + "'";
}

}  // namespace

DaemonLink::DaemonLink(transport::Loop& loop, base::Log& log, std::string root, Rules rules)
    : loop_(loop), log_(log), root_(std::move(root)), rules_(std::move(rules)) {}

DaemonLink::Channel DaemonLink::try_connect() {
  if (is_inside()) return rules_.inside->connect();
  try {
    if (!socket_) socket_ = std::make_unique<ProjectSocket>(line_for(root_));
    Channel channel = socket_->try_connect(loop_);
    if (!channel) return nullptr;
    was_stopped_ = was_stopped_ && stopped_ && pid() == stopped_;
    is_restarting_ = false;
    return rules_.is_traced ? traced(std::move(channel), log_, 0) : std::move(channel);
  } catch (const Failure&) {  // its folder has gone, say; a start tells what is wrong
    return nullptr;
  }
}

std::optional<ToolError> DaemonLink::refusal_to_start() const {
  if (is_inside()) {
    return ToolError{.code = "daemon-stopped",
                     .problem = "the daemon of " + root_ + " ends",
                     .remedy = "the same call when it runs again"};
  }
  if (was_stopped_) {
    return ToolError{.code = "daemon-stopped",
                     .problem = "a person has stopped the daemon of " + root_,
                     .remedy = "ask the user to run " + start_words(root_)};
  }
  if (!rules_.may_start && !is_restarting_) {
    return ToolError{.code = "no-daemon",
                     .problem = "no daemon runs for " + root_ + ", and --no-start is set",
                     .remedy = "ask the user to run " + start_words(root_)};
  }
  return std::nullopt;
}

void DaemonLink::connect(Connected connected) {
  if (Channel channel = try_connect()) return connected(std::move(channel));
  if (const std::optional<ToolError> refusal = refusal_to_start()) return connected(tl::unexpected(*refusal));
  waiting_.push_back(std::move(connected));
  if (waiting_.size() > 1) return;
  deadline_ = loop_.now() + start_patience;
  is_restarting_ ? look_again() : start();
}

void DaemonLink::start() {
  const base::Fd program(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  try {
    starter_ = std::make_unique<process::PipedChild>(
        loop_,
        process::Launch{.arguments = {std::string(program_name), "daemon", "start", "--if-needed", "--idle", "30m",
                                      "--started-by", "mcp", "--timeout", "10s", "--project", root_},
                        .environment = process::current_environment(),
                        .executable = program.get()},
        [this](const process::ExitStatus& status) { start_ended(status); });
  } catch (const std::exception& fault) {
    log_.error("the daemon cannot be started", {{"what", fault.what()}});
    return give(not_started("its program cannot be run"));
  }
  timer_ = loop_.at(deadline_, [this] { give(not_started("it did not start within 10 s")); });
}

// Another may have been quicker, or be on its way: only a socket that answers counts.
void DaemonLink::start_ended(const process::ExitStatus& status) {
  const std::string said = last_line(starter_->error_output());
  forgetting_ = loop_.deferred([this] { starter_.reset(); });
  if (waiting_.empty()) return;
  if (status.code == 0 && status.signal == 0) return look_again();
  if (Channel channel = try_connect()) return give_channels();
  give(not_started(said.empty() ? "its start failed" : said));
}

void DaemonLink::look_again() {
  if (try_connect()) return give_channels();
  if (loop_.now() >= deadline_) return give(not_started("it does not answer"));
  timer_ = loop_.after(between_looks, [this] { look_again(); });
}

void DaemonLink::give_channels() {
  timer_.cancel();
  for (const Connected& connected : std::exchange(waiting_, {})) {
    Channel channel = try_connect();
    channel ? connected(std::move(channel)) : connected(tl::unexpected(not_started("it has gone again")));
  }
}

void DaemonLink::give(const ToolError& error) {
  timer_.cancel();
  is_restarting_ = false;
  for (const Connected& connected : std::exchange(waiting_, {})) connected(tl::unexpected(error));
}

ToolError DaemonLink::not_started(const std::string& said) const {
  return {.code = "no-daemon",
          .problem = "the daemon of " + root_ + " could not be started: " + one_line(said, 300),
          .remedy = "ask the user to run " + start_words(root_) + ", which says more"};
}

void DaemonLink::note_stopping(const boost::json::object& params) {
  const boost::json::value* const restarting = params.if_contains("restarting");
  const boost::json::value* const reason = params.if_contains("reason");
  is_restarting_ = restarting != nullptr && restarting->is_bool() && restarting->get_bool();
  was_stopped_ = !is_restarting_ && !(reason != nullptr && *reason == "idle");
  stopped_ = pid();
}

std::optional<pid_t> DaemonLink::pid() const {
  return socket_ && socket_->folder() ? lock_holder(*socket_->folder()) : std::nullopt;
}

}  // namespace duet::app::mcp
