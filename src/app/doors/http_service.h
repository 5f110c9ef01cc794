#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/doors/door_place.h"
#include "app/doors/http_door.h"
#include "app/doors/login_codes.h"
#include "app/doors/tokens.h"
#include "app/project/state_folder.h"
#include "app/settings/door_settings.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"
#include "duet/transport/tcp_address.h"

namespace duet::app {

/// The HTTP door of a daemon, with what it needs: its tokens, its login codes and its address. Opened and closed as the
/// settings say, or when somebody asks for it. For the loop's thread only.
class HttpService {
 public:
  struct Context {
    transport::Loop& loop;
    base::Log& log;
    peer::Server& server;
    EventSource& events;
    const StateFolder& folder;
    std::size_t most_connections;  ///< that there are descriptors for, whatever the settings say
    /// Of `http` or `tokens`; empty: there is none any more.
    std::function<void(const std::string& subsystem, std::string problem)> set_problem;
    std::function<void(std::uint64_t)> end_caller;  ///< of that number; it has asked by `POST /rpc`
    std::function<std::string()> metrics;           ///< for `GET /metrics`
    McpSource* mcp = nullptr;                       ///< for `POST /mcp`; none: there is nothing at that path
    std::function<void()> on_empty;                 ///< while it stops: the last connection has gone
  };

  explicit HttpService(Context context);
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  Tokens& tokens() { return tokens_; }
  LoginCodes& codes() { return codes_; }

  /// At the daemon's start: where the command line says, or the daemon before that was restarted had it, or as the
  /// settings say. Throws Failure.
  void start(const HttpSettings& settings, const std::optional<transport::TcpAddress>& given);
  /// With a socket that listens already; it stays whatever the settings say. Throws Failure.
  void start(base::Fd listener, const HttpSettings& settings);
  /// As they say now. A fault leaves the door as it was and is a problem.
  void reload(const HttpSettings& settings);
  /// Opens it if the settings leave that to who asks; returns its url. Throws rpc::Error if they do not.
  std::string open_on_demand();
  /// Without a slash at its end; none: it is closed.
  std::optional<std::string> url() const;

  /// What happens to the server's clients, some of whom have come this way.
  void client_opened(peer::Connection& connection);
  void client_forgotten(std::uint64_t number);

  /// Takes nobody any more; who is there stays. It is not opened again.
  void take_nobody();
  /// The end of those, too. `restarting`: the next daemon opens the same door.
  void stop(bool restarting);
  std::size_t connection_count() const { return door_.connection_count(); }
  std::size_t websocket_count() const { return websockets_.size() - context_.server.inside_count(); }

 private:
  HttpDoorCalls calls();
  HttpLogin log_in(std::string_view body);
  void use(base::Fd listener, const transport::TcpAddress& wanted, bool beyond_settings);
  void close_door();
  void apply(const HttpSettings& settings);
  void take_token_problem(std::string problem);
  void end_session(const std::shared_ptr<const peer::Admission>& admission);
  void watch_tokens();

  Context context_;
  LoginCodes codes_;
  Tokens tokens_;
  HttpDoor door_;
  DoorPlace place_;
  bool on_demand_ = true;
  bool ends_ = false;                                      // it takes nobody any more
  std::map<std::uint64_t, peer::Connection*> websockets_;  // and what `POST /mcp` asks the server by
  transport::Loop::Timer token_timer_;
  base::UtcTime next_look_ = base::UtcTime::max();  // at the tokens: when the timer rings
};

}  // namespace duet::app
