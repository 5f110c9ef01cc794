#include "app/client/project_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "app/project/running_daemon.h"
#include "app/settings/settings.h"
#include "app/words/shell_word.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/unix_socket.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

// A daemon takes so long at most to put back a socket that was removed.
constexpr milliseconds until_it_listens = std::chrono::seconds(5);
constexpr milliseconds between_tries{20};
constexpr milliseconds one_try{100};

bool is_nobody_there(int error) {
  return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR || error == ENOTSOCK;
}

}  // namespace

ProjectSocket::ProjectSocket(const CommandLine& line) : program_(line.program), socket_(line.text("socket")) {
  if (socket_ && !line.text("project")) return;
  project_ = find_project(line.text("project"));
  folder_ = find_state(*project_, state_place(settings_places()));
}

std::string ProjectSocket::path() const { return socket_ ? *socket_ : folder_->path_of(socket_name); }

std::string ProjectSocket::where() const { return socket_ ? "at " + *socket_ : "in " + project_->root; }

std::string ProjectSocket::place() const { return project_ ? project_->root : *socket_; }

std::string ProjectSocket::shown_path() const {
  const std::string folder = folder_ ? folder_->shown() : state_path;
  return socket_ ? *socket_ : folder + '/' + socket_name + (folder.starts_with('/') ? "" : " in " + project_->root);
}

std::unique_ptr<transport::Channel> ProjectSocket::connect(transport::Loop& loop, milliseconds patience) {
  const std::string there = socket_ ? " --socket " + shell_word(*socket_) : "";
  const std::string none =
      "no daemon is running " + where() + "; start it with '" + program_ + " daemon start" + there + "'";
  if (!socket_ && !folder_) throw Failure(none, exit_code::no_daemon);
  base::Fd socket;
  try {
    socket = connect_patiently(patience);
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    if (is_nobody_there(code)) throw Failure(none, exit_code::no_daemon);
    if (code == EACCES && file_is_of_another()) throw of_another_user();
    if (code == ETIMEDOUT)
      throw Failure("the daemon " + where() + " does not accept connections", exit_code::no_answer);
    throw Failure("cannot connect to " + shown_path() + ": " + error.code().message());
  }
  check_owner(socket);
  return std::make_unique<transport::FdChannel>(loop, std::move(socket));
}

bool ProjectSocket::is_there(milliseconds patience) const {
  if (!socket_ && !folder_) return false;
  try {
    return static_cast<bool>(connect_patiently(patience));
  } catch (const std::system_error& error) {
    return !is_nobody_there(error.code().value());  // what else keeps us from it is told by whoever asks it something
  } catch (const Failure&) {
    return true;
  }
}

std::unique_ptr<transport::Channel> ProjectSocket::try_connect(transport::Loop& loop) {
  try {
    if (!socket_) folder_ = find_state(*project_, state_place(settings_places()));  // it may have been made anew
    if (!socket_ && !folder_) return nullptr;
    refuse_link();
    base::Fd socket = transport::connect_unix(path(), one_try);
    check_owner(socket);
    return std::make_unique<transport::FdChannel>(loop, std::move(socket));
  } catch (const std::system_error&) {
    return nullptr;
  } catch (const Failure&) {
    return nullptr;  // files change while daemons come and go
  }
}

// A daemon makes none: it came with a clone, say, and leads to the daemon of another project.
void ProjectSocket::refuse_link() const {
  struct stat status {};
  const bool is_link = !socket_ && lstat(path().c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
                       stat(path().c_str(), &status) == 0;  // one that leads nowhere harms nobody
  if (is_link) throw Failure(shown_path() + " is a link, and no daemon has made it: remove it, or give --socket");
}

// It would not answer us; nor should it get to know what we ask. Of the file nothing follows, since it may be another
// one by the time we connect; but root may listen for us, as a service manager does.
void ProjectSocket::check_owner(const base::Fd& socket) const {
  const uid_t owner = transport::identity_of(socket.get()).uid;
  if (geteuid() == 0 || owner == geteuid() || (owner == 0 && !file_is_of_another())) return;
  throw of_another_user();
}

bool ProjectSocket::file_is_of_another() const {
  struct stat status {};
  return stat(path().c_str(), &status) == 0 && status.st_uid != geteuid();
}

Failure ProjectSocket::of_another_user() const {
  return Failure("the daemon " + where() + " is that of another user, and answers that user only");
}

base::Fd ProjectSocket::connect_patiently(milliseconds patience) const {
  refuse_link();
  const auto deadline = std::chrono::steady_clock::now() + std::min(patience, until_it_listens);
  for (;;) {
    try {
      return transport::connect_unix(path(), patience);
    } catch (const std::system_error& error) {
      const bool runs = folder_ && is_nobody_there(error.code().value()) && DaemonLock::is_held(*folder_);
      if (!runs) throw;
    }
    if (std::chrono::steady_clock::now() >= deadline) throw not_reachable();
    std::this_thread::sleep_for(between_tries);
  }
}

Failure ProjectSocket::not_reachable() const {
  const std::optional<pid_t> pid = lock_holder(*folder_);
  const std::string who = pid ? "the daemon, pid " + std::to_string(*pid) + ',' : "the daemon";
  return Failure(who + " is running, but not at " + shown_path() + ": give the --socket it was started with, or see '" +
                     program_ + " daemon logs'",
                 exit_code::no_answer);
}

// Of another daemon at another socket the state folder does not tell.
std::string ProjectSocket::small_file(const char* name) const {
  std::string text = socket_ || !folder_ ? std::string() : folder_->read_small(name);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string ProjectSocket::note_of_version() const {
  const std::string version = small_file(version_name);
  if (version.empty() || version == kVersion) return {};
  return "the daemon is version " + version + ", this program is " + kVersion + "; '" + program_ +
         " daemon restart' brings the daemon up to date";
}

std::string ProjectSocket::note_of_settings() const {
  const std::string fault = small_file(settings_fault_name);
  return fault.empty() ? fault : "the daemon goes on with its old settings, since the new ones are faulty: " + fault;
}

}  // namespace duet::app
