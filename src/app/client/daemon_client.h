#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "app/cli/command_line.h"
#include "app/client/far_daemon.h"
#include "app/client/project_socket.h"
#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "duet/base/log.h"
#include "duet/peer/client.h"

namespace duet::app {

/// A command's way to the daemon, of its project or of another machine: connects, asks, and turns whatever goes wrong
/// into a Failure with the right exit code and a line that says what to do.
class DaemonClient {
 public:
  static constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(30);

  /// Takes --project, --socket, --connect, --timeout and --trace from the command line. Connects when it is first
  /// needed.
  /// `patience` is for answers, if --timeout gives none.
  explicit DaemonClient(const CommandLine& line, std::chrono::milliseconds patience = usual_patience);
  DaemonClient(const DaemonClient&) = delete;
  DaemonClient& operator=(const DaemonClient&) = delete;
  ~DaemonClient() = default;

  /// Throws Failure, with exit_code::no_daemon if there is none, exit_code::failed if it is in vain to try again.
  void connect() { connect(patience()); }
  void connect(base::Duration most);
  /// One attempt that takes a moment, without a word to the user: for who shows by himself that there is no daemon.
  /// Throws Failure if it is in vain to try again.
  bool try_connect();
  bool is_connected() const { return client_.is_connected(); }
  /// Throws Failure if the last connection has ended because the daemon would not have us. Over TLS it says so when the
  /// first answer is due.
  void check_refusal() const;

  /// For people, of a connection that was lost, while the next one is sought.
  std::string lost_text() const;

  /// For whoever carries messages himself: a connection as connect() makes it, a channel of the loop of client() that
  /// shows every message if that is wanted.
  std::unique_ptr<transport::Channel> open_channel() { return open_channel(patience()); }
  std::unique_ptr<transport::Channel> open_channel(base::Duration most);

  /// The result as JSON text. `params` is JSON text, or empty for none. Throws Failure.
  std::string call_raw(std::string_view method, std::string_view params = {});
  boost::json::value call(std::string_view method, const boost::json::value& params = nullptr);
  /// The same without a limit, unless --timeout gives one.
  std::string wait_raw(std::string_view method, std::string_view params = {});
  /// The outcome as it is, for commands that make something of an error.
  peer::Outcome ask(std::string_view method, std::string_view params, base::Duration patience);

  /// What a failed call means for the user.
  static Failure failure_of(std::string_view method, const peer::Outcome& outcome);

  /// Before it connects: the command shows what is wrong with the settings by itself.
  void leave_settings_to_me() { tells_settings_ = false; }

  /// A line on stderr.
  void tell_user(const std::string& note) const;

  /// How long to wait for an answer.
  std::chrono::milliseconds patience() const;
  /// For commands that wait for something to happen.
  base::Duration long_patience() const;

  peer::Client& client() { return client_; }
  /// Which daemon it is, for people.
  std::string place() const { return endpoint().place(); }
  /// The daemon is one of another machine: its paths are not ours, nor are its processes.
  bool is_far() const { return far_.has_value(); }
  /// The last connection to another machine was lost, and not ended by the daemon.
  bool was_cut() const { return far_ && far_->was_cut(); }
  /// None: the daemon is known by its socket only, or is of another machine.
  const Project* project() const;
  /// None: there is no state folder, so there never was a daemon; or it is not one of ours.
  const StateFolder* folder() const;
  /// A daemon runs, or somebody listens in its place who starts one. For one of this machine.
  bool is_there() const { return here_->is_there(patience()); }

 private:
  Endpoint& endpoint() { return far_ ? static_cast<Endpoint&>(*far_) : *here_; }
  const Endpoint& endpoint() const { return far_ ? static_cast<const Endpoint&>(*far_) : *here_; }
  std::unique_ptr<transport::Channel> shown(std::unique_ptr<transport::Channel> channel);
  void tell_notes() const;

  std::optional<std::chrono::milliseconds> given_patience_;
  std::chrono::milliseconds default_patience_;
  std::string program_;
  std::optional<FarDaemon> far_;
  std::optional<ProjectSocket> here_;  // one of the two is there
  bool tells_settings_ = true;
  base::Log trace_log_;
  peer::Client client_;
};

}  // namespace duet::app
