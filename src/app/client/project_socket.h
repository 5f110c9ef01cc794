#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command_line.h"
#include "app/client/endpoint.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "duet/base/fd.h"

namespace duet::app {

/// The Unix socket of a project's daemon: in its state folder, or where --socket says. Only the daemon of the same user
/// is talked to, or one that root listens for.
class ProjectSocket final : public Endpoint {
 public:
  /// Takes --project and --socket from the command line. Throws Failure.
  explicit ProjectSocket(const CommandLine& line);

  /// One that does not listen yet, or whose socket was removed, is given a moment.
  std::unique_ptr<transport::Channel> connect(transport::Loop& loop, std::chrono::milliseconds patience) override;
  std::unique_ptr<transport::Channel> try_connect(transport::Loop& loop) override;
  /// The project's folder, or the socket if that is all that is known.
  std::string place() const override;

  /// A daemon runs, or somebody listens in its place who starts one. One that starts or ends is waited for a moment.
  bool is_there(std::chrono::milliseconds patience) const;
  /// What the user should know of a daemon that was found, if anything: it is of another version.
  std::string note_of_version() const;
  /// The same: its settings files are faulty.
  std::string note_of_settings() const;

  /// None: only the socket is known.
  const std::optional<Project>& project() const { return project_; }
  /// None: there is no state folder, so there never was a daemon.
  const std::optional<StateFolder>& folder() const { return folder_; }

 private:
  std::string path() const;
  std::string where() const;
  std::string shown_path() const;
  void refuse_link() const;
  void check_owner(const base::Fd& socket) const;
  bool file_is_of_another() const;
  Failure of_another_user() const;
  base::Fd connect_patiently(std::chrono::milliseconds patience) const;
  Failure not_reachable() const;
  std::string small_file(const char* name) const;

  std::string program_;
  std::optional<std::string> socket_;
  std::optional<Project> project_;
  std::optional<StateFolder> folder_;
};

}  // namespace duet::app
