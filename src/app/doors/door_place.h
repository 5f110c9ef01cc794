#pragma once

#include <optional>
#include <string>
#include <system_error>

#include "app/project/state_folder.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/transport/tcp_address.h"

namespace duet::app {

/// Where a network door is open, and what of that outlives its daemon: the port that it had last, and, over a restart,
/// that it was open although the settings do not say so. For the loop's thread only.
class DoorPlace {
 public:
  /// `word` is what the door is called in the log and in the state folder: `http`; `name` is for people: `HTTP`.
  DoorPlace(base::Log& log, const StateFolder& folder, std::string word, std::string name)
      : log_(log), folder_(folder), word_(std::move(word)), name_(std::move(name)) {}

  /// At the daemon's start: where to be. The command line goes first, then where the daemon before had it that was
  /// restarted, if `may_be_open` though the settings do not say where, then the settings.
  std::optional<transport::TcpAddress> choose(const std::optional<transport::TcpAddress>& given,
                                              const std::optional<transport::TcpAddress>& listen, bool may_be_open);
  /// A socket that listens there; port 0 is the one that this project had last, if it is free, else any. Throws Failure
  /// with the reason.
  base::Fd listen(const transport::TcpAddress& address);
  /// A socket that somebody else has opened stays whatever the settings say.
  void take_passed() { passed_ = true; }
  /// From now on the door is open at this socket. `beyond_settings`: though they do not say so.
  void opened(int socket, const transport::TcpAddress& wanted, bool beyond_settings);
  /// It stays where it is, and the settings say so now.
  void confirm(const transport::TcpAddress& wanted);
  void closed();

  /// Where it is open.
  const std::optional<transport::TcpAddress>& address() const { return address_; }
  /// The settings have no say in where it is.
  bool is_fixed() const { return passed_ || given_; }
  bool is_beyond_settings() const { return beyond_settings_; }
  /// Port 0 is any, so also the one that it has.
  bool is_at(const transport::TcpAddress& address) const;
  /// The daemon ends. `restarting`: the next one opens the same door.
  void leave(bool restarting);

 private:
  base::Fd listen_at_last_port(const transport::TcpAddress& address);
  void remember_port(const transport::TcpAddress& address);

  base::Log& log_;
  const StateFolder& folder_;
  std::string word_;
  std::string name_;
  bool passed_ = false;
  bool given_ = false;  // by the command line
  bool beyond_settings_ = false;
  std::optional<transport::TcpAddress> wanted_;
  std::optional<transport::TcpAddress> address_;
};

}  // namespace duet::app
