#include "app/client/daemon_client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "app/client/refusal_text.h"
#include "app/log/trace.h"
#include "app/project/running_daemon.h"
#include "app/settings/settings.h"
#include "app/view/display_text.h"
#include "app/words/shell_word.h"
#include "duet/base/log_sink.h"
#include "duet/framing/frame.h"
#include "duet/rpc/value.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/unix_socket.h"
#include "duet/version.h"

namespace duet::app {
namespace {

constexpr std::size_t most_params = framing::max_body - 1024;  // the rest is for the method and the id

// A daemon takes so long at most to put back a socket that was removed.
constexpr std::chrono::milliseconds until_it_listens = std::chrono::seconds(5);
constexpr std::chrono::milliseconds between_tries{20};
constexpr std::chrono::milliseconds one_try{100};

bool is_nobody_there(int error) {
  return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR || error == ENOTSOCK;
}

std::unique_ptr<base::LogSink> trace_sink(const CommandLine& line) {
  const bool wanted = line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG"));
  return wanted ? base::stderr_sink(false) : nullptr;
}

}  // namespace

DaemonClient::DaemonClient(const CommandLine& line, std::chrono::milliseconds patience)
    : given_patience_(line.duration("timeout")),
      default_patience_(patience),
      program_(line.program),
      socket_(line.text("socket")),
      trace_log_(trace_sink(line)) {
  if (socket_ && !line.text("project")) return;
  project_ = find_project(line.text("project"));
  folder_ = find_state(*project_, state_place(settings_places()));
}

std::chrono::milliseconds DaemonClient::patience() const { return given_patience_.value_or(default_patience_); }

base::Duration DaemonClient::long_patience() const {
  return given_patience_ ? base::Duration(*given_patience_) : base::Duration::max();
}

std::string DaemonClient::socket_path() const { return socket_ ? *socket_ : folder_->path_of(socket_name); }

std::string DaemonClient::where() const { return socket_ ? "at " + *socket_ : "in " + project_->root; }

std::string DaemonClient::place() const {
  const std::string folder = folder_ ? folder_->shown() : state_path;
  return socket_ ? *socket_ : folder + '/' + socket_name + (folder.starts_with('/') ? "" : " in " + project_->root);
}

void DaemonClient::connect() {
  if (!client_.is_connected()) client_.connect(channel_over(open_socket()));
}

base::Fd DaemonClient::open_socket() {
  const std::string there = socket_ ? " --socket " + shell_word(*socket_) : "";
  const std::string none =
      "no daemon is running " + where() + "; start it with '" + program_ + " daemon start" + there + "'";
  if (!socket_ && !folder_) throw Failure(none, exit_code::no_daemon);
  base::Fd socket;
  try {
    socket = connect_patiently();
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    if (is_nobody_there(code)) throw Failure(none, exit_code::no_daemon);
    if (code == EACCES && file_is_of_another()) throw of_another_user();
    if (code == ETIMEDOUT)
      throw Failure("the daemon " + where() + " does not accept connections", exit_code::no_answer);
    throw Failure("cannot connect to " + place() + ": " + error.code().message());
  }
  check_owner(socket);
  say_if_version_differs();
  say_if_settings_are_faulty();
  return socket;
}

bool DaemonClient::is_there() {
  if (!socket_ && !folder_) return false;
  try {
    return static_cast<bool>(connect_patiently());
  } catch (const std::system_error& error) {
    return !is_nobody_there(error.code().value());  // what else keeps us from it is told by whoever asks it something
  } catch (const Failure&) {
    return true;
  }
}

bool DaemonClient::try_connect() {
  if (client_.is_connected()) return true;
  std::optional<base::Fd> socket = try_open_socket();
  if (!socket) return false;
  client_.connect(channel_over(std::move(*socket)));
  return true;
}

std::optional<base::Fd> DaemonClient::try_open_socket() {
  try {
    if (!socket_) folder_ = find_state(*project_, state_place(settings_places()));  // it may have been made anew
    if (!socket_ && !folder_) return std::nullopt;
    refuse_link();
    base::Fd socket = transport::connect_unix(socket_path(), one_try);
    check_owner(socket);
    return socket;
  } catch (const std::system_error&) {
    return std::nullopt;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

// A daemon makes none: it came with a clone, say, and leads to the daemon of another project.
void DaemonClient::refuse_link() const {
  struct stat status {};
  const bool is_link = !socket_ && lstat(socket_path().c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
                       stat(socket_path().c_str(), &status) == 0;  // one that leads nowhere harms nobody
  if (is_link) throw Failure(place() + " is a link, and no daemon has made it: remove it, or give --socket");
}

// It would not answer us; nor should it get to know what we ask. Of the file nothing follows, since it may be another
// one by the time we connect; but root may listen for us, as a service manager does.
void DaemonClient::check_owner(const base::Fd& socket) const {
  const uid_t owner = transport::identity_of(socket.get()).uid;
  if (geteuid() == 0 || owner == geteuid() || (owner == 0 && !file_is_of_another())) return;
  throw of_another_user();
}

bool DaemonClient::file_is_of_another() const {
  struct stat status {};
  return stat(socket_path().c_str(), &status) == 0 && status.st_uid != geteuid();
}

Failure DaemonClient::of_another_user() const {
  return Failure("the daemon " + where() + " is that of another user, and answers that user only");
}

std::unique_ptr<transport::Channel> DaemonClient::channel_over(base::Fd socket) {
  auto channel = std::make_unique<transport::FdChannel>(client_.loop(), std::move(socket));
  if (!trace_log_.enabled(base::Level::trace)) return channel;
  return traced(std::move(channel), trace_log_, 0);
}

base::Fd DaemonClient::connect_patiently() const {
  refuse_link();
  const auto deadline = std::chrono::steady_clock::now() + std::min(patience(), until_it_listens);
  for (;;) {
    try {
      return transport::connect_unix(socket_path(), patience());
    } catch (const std::system_error& error) {
      const bool runs = folder_ && is_nobody_there(error.code().value()) && DaemonLock::is_held(*folder_);
      if (!runs) throw;
    }
    if (std::chrono::steady_clock::now() >= deadline) throw not_reachable();
    std::this_thread::sleep_for(between_tries);
  }
}

Failure DaemonClient::not_reachable() const {
  const std::optional<pid_t> pid = lock_holder(*folder_);
  const std::string who = pid ? "the daemon, pid " + std::to_string(*pid) + ',' : "the daemon";
  return Failure(who + " is running, but not at " + place() + ": give the --socket it was started with, or see '" +
                     program_ + " daemon logs'",
                 exit_code::no_answer);
}

void DaemonClient::say_if_version_differs() const {
  if (socket_ || !folder_) return;
  std::string version = folder_->read_small(version_name);
  if (version.ends_with('\n')) version.pop_back();
  if (version.empty() || version == kVersion) return;
  tell_user("the daemon is version " + version + ", this program is " + kVersion + "; '" + program_ +
            " daemon restart' brings the daemon up to date");
}

void DaemonClient::say_if_settings_are_faulty() const {
  if (!tells_settings_ || socket_ || !folder_) return;
  std::string fault = folder_->read_small(settings_fault_name);
  if (fault.ends_with('\n')) fault.pop_back();
  if (!fault.empty()) tell_user("the daemon goes on with its old settings, since the new ones are faulty: " + fault);
}

void DaemonClient::tell_user(const std::string& note) const {
  const std::string line = program_ + ": " + harmless_lines(note) + '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

peer::Outcome DaemonClient::ask(std::string_view method, std::string_view params, base::Duration patience) {
  // The daemon would refuse it without knowing whose it is, so we would wait in vain.
  if (params.size() > most_params) {
    throw Failure(std::string(method) + ": " + std::to_string(params.size()) +
                  " bytes of parameters are too much; a message may have 10 MiB");
  }
  connect();
  return client_.call_raw(method, rpc::Json::view(params), patience);
}

std::string DaemonClient::call_raw(std::string_view method, std::string_view params) {
  peer::Outcome outcome = ask(method, params, patience());
  if (outcome.cause != peer::Outcome::Cause::answered) throw failure_of(method, outcome);
  return std::move(outcome.result);
}

std::string DaemonClient::wait_raw(std::string_view method, std::string_view params) {
  peer::Outcome outcome = ask(method, params, long_patience());
  if (outcome.cause != peer::Outcome::Cause::answered) throw failure_of(method, outcome);
  return std::move(outcome.result);
}

boost::json::value DaemonClient::call(std::string_view method, const boost::json::value& params) {
  return rpc::parse_value(call_raw(method, params.is_null() ? std::string() : rpc::to_text(params)));
}

Failure DaemonClient::failure_of(std::string_view method, const peer::Outcome& outcome) {
  using Cause = peer::Outcome::Cause;
  const std::string name(method);
  switch (outcome.cause) {
    case Cause::timed_out:
      return Failure("the daemon did not answer " + name + " in time; --timeout gives it more", exit_code::no_answer);
    case Cause::refused:
      break;
    default:
      return Failure("the daemon went away before it answered " + name, exit_code::no_daemon);
  }
  return Failure(refusal_text(method, *outcome.error));
}

}  // namespace duet::app
