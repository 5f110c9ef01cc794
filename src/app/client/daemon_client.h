#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "app/cli/command_line.h"
#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/peer/client.h"

namespace duet::app {

/// A command's way to the project's daemon: finds its socket, asks, and turns whatever goes wrong into a Failure with
/// the right exit code and a line that says what to do.
class DaemonClient {
 public:
  static constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(30);

  /// Takes --project, --socket, --timeout and --trace from the command line. Connects when it is first needed.
  /// `patience` is for answers, if --timeout gives none.
  explicit DaemonClient(const CommandLine& line, std::chrono::milliseconds patience = usual_patience);
  DaemonClient(const DaemonClient&) = delete;
  DaemonClient& operator=(const DaemonClient&) = delete;
  ~DaemonClient() = default;

  /// Throws Failure, with exit_code::no_daemon if none is running. One that does not listen yet, or whose socket was
  /// removed, is given a moment.
  void connect();
  /// One attempt without waiting and without a word to the user: for who shows by himself that there is no daemon.
  bool try_connect();
  /// The same for whoever carries messages himself; none if there is nobody.
  std::optional<base::Fd> try_open_socket();
  bool is_connected() const { return client_.is_connected(); }
  /// A daemon runs, or somebody listens in its place who starts one. One that starts or ends is waited for a moment.
  bool is_there();

  /// For whoever carries messages himself: a connection as connect() makes it, and a channel over one, on the loop of
  /// client(), that shows every message if that is wanted.
  base::Fd open_socket();
  std::unique_ptr<transport::Channel> channel_over(base::Fd socket);

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
  const Project& project() const { return *project_; }
  /// None: there is no state folder, so there never was a daemon.
  const std::optional<StateFolder>& folder() const { return folder_; }

 private:
  std::string socket_path() const;
  std::string where() const;
  std::string place() const;
  void refuse_link() const;
  void check_owner(const base::Fd& socket) const;
  bool file_is_of_another() const;
  Failure of_another_user() const;
  base::Fd connect_patiently() const;
  Failure not_reachable() const;
  void say_if_version_differs() const;
  void say_if_settings_are_faulty() const;

  std::optional<std::chrono::milliseconds> given_patience_;
  std::chrono::milliseconds default_patience_;
  std::string program_;
  std::optional<std::string> socket_;
  std::optional<Project> project_;
  std::optional<StateFolder> folder_;
  bool tells_settings_ = true;
  base::Log trace_log_;
  peer::Client client_;
};

}  // namespace duet::app
