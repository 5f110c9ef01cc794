#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/doors/door_place.h"
#include "app/doors/http_door.h"
#include "app/doors/tls_door.h"
#include "app/doors/tls_files.h"
#include "app/project/state_folder.h"
#include "app/settings/door_settings.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// The TLS door of a daemon: who is let in by a certificate, as what, and for how long. Inside it lines are the
/// server's, and HTTP that of an HttpDoor of its own. For the loop's thread only.
class TlsService {
 public:
  struct Context {
    transport::Loop& loop;
    base::Log& log;
    peer::Server& server;
    EventSource& events;
    const StateFolder& folder;
    std::string files;                              ///< where files with relative names are
    std::size_t most_connections;                   ///< that there are descriptors for, whatever the settings say
    std::function<void(std::uint64_t)> end_caller;  ///< of that number; it has asked by `POST /rpc`
    std::function<std::string()> metrics;           ///< for `GET /metrics`
    std::function<void()> on_empty;                 ///< while it stops: the last connection has gone
  };

  explicit TlsService(Context context);
  TlsService(const TlsService&) = delete;
  TlsService& operator=(const TlsService&) = delete;

  /// At the daemon's start: where the command line says, or the daemon before that was restarted had it, or as the
  /// settings say. `hosts`: further names under which a browser may come. Throws Failure.
  void start(const TlsSettings& settings, std::vector<std::string> hosts,
             const std::optional<transport::TcpAddress>& given);
  /// With a socket that listens already; it stays whatever the settings say. Throws Failure.
  void start(base::Fd listener, const TlsSettings& settings, std::vector<std::string> hosts);
  struct Reloaded {
    std::vector<std::string> changed;  ///< the settings whose files have other contents now: `tls.certificate`
    std::string fault;                 ///< why all is as it was; empty: it is not
  };
  /// As they and the files say now. A fault leaves all as it was and is a problem. A connection whose certificate would
  /// not be let in any more, or would have another role, is ended.
  Reloaded reload(const TlsSettings& settings, std::vector<std::string> hosts);
  /// The file of revoked certificates has changed, or may have: reads it again.
  void take_revoked();
  /// Why a daemon with these settings could not open the door that this one has or the settings want; empty: it could.
  std::string why_not_again(const TlsSettings& settings) const;

  /// None: it is closed.
  std::optional<transport::TcpAddress> address() const { return ends_ ? std::nullopt : place_.address(); }
  /// Of our certificate, while it is open.
  base::UtcTime expires() const { return tls_->own().not_after; }
  /// What people should know of; empty: nothing.
  std::string problem() const;
  std::string revoked_file() const { return files_of(settings_, context_.files).revoked; }

  /// What happens to the server's clients, some of whom have come this way.
  void client_opened(peer::Connection& connection);
  void client_forgotten(std::uint64_t number);

  /// Takes nobody any more; who is there stays. It is not opened again.
  void take_nobody();
  /// The end of those, too. `restarting`: the next daemon opens the same door.
  void stop(bool restarting);
  std::size_t connection_count() const { return visitors_.size(); }
  /// Of those, what the server counts as well.
  std::size_t server_count() const { return connections_.size(); }

 private:
  /// Somebody whose handshake is done.
  struct Visitor {
    std::shared_ptr<const peer::Admission> admission;
    transport::TlsCertificate certificate;
    std::vector<std::string> chain;
    base::UtcTime until;
    std::shared_ptr<const transport::TlsContext> judge;  ///< who let it in
  };

  TlsDoorCalls door_calls();
  void know(std::uint64_t number, const transport::TlsSession& session);
  void take(std::uint64_t number, std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
            std::string_view first_bytes, bool speaks_http);
  void gone(std::uint64_t number);
  std::string role_of(const transport::TlsCertificate& certificate) const;
  void apply(const TlsSettings& settings, std::vector<std::string> hosts);
  void load(const TlsSettings& settings, std::vector<std::string> hosts);
  void use(transport::TlsContext::Server parts);
  void apply_or_note(const TlsSettings& settings, std::vector<std::string> hosts);
  std::string fault() const;
  std::string problem_of_dates() const;
  std::set<std::string> in_force(const TlsSettings& settings) const;
  void read_revoked_again();
  void move_to(const transport::TcpAddress& wanted);
  void open_at(base::Fd listener, const transport::TcpAddress& wanted, bool beyond_settings);
  void close_door();
  void take_fault(std::string& fault, std::string_view why);
  void check_visitors();
  void turn_out(std::uint64_t number, std::string_view why);
  void watch_dates();

  Context context_;
  TlsSettings settings_;
  std::vector<std::string> hosts_;
  transport::TlsContext::Server parts_;  // of tls_
  std::shared_ptr<const transport::TlsContext> tls_;
  std::string fault_;          // of the files or of the place
  std::string revoked_fault_;  // of the list of revoked certificates
  /// What a reload wanted that failed for the list alone.
  struct Wanted {
    TlsSettings settings;
    std::vector<std::string> hosts;
  };
  std::optional<Wanted> wanted_;
  std::map<std::uint64_t, Visitor> visitors_;
  std::map<std::uint64_t, peer::Connection*> connections_;
  HttpDoor http_;
  TlsDoor door_;
  DoorPlace place_;
  bool ends_ = false;  // it takes nobody any more
  bool stopping_ = false;
  transport::Loop::Timer dates_;
  base::Lifetime lifetime_;
};

}  // namespace duet::app
