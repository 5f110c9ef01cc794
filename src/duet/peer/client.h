#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/json/value.hpp>

#include "duet/api.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/peer/outcome.h"
#include "duet/rpc/json.h"
#include "duet/rpc/json_read.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::peer {

/// A call that got no result, and why.
class DUET_API CallFailed : public std::runtime_error {
 public:
  CallFailed(Outcome::Cause cause, std::optional<rpc::Error> error);
  Outcome::Cause cause() const { return cause_; }
  const std::optional<rpc::Error>& error() const { return error_; }  ///< of Cause::refused

 private:
  Outcome::Cause cause_;
  std::optional<rpc::Error> error_;
};

/// A client of a Server, for programs that ask and wait: its loop turns inside its calls.
///
/// The loop is its own or yours, which turns at other times, too. Notifications are handed to on()'s handlers while it
/// turns. Handlers and callbacks must not wait themselves (call() throws std::logic_error there, as it does in whatever
/// else your loop calls; call_later() is fine), and what they throw is lost. For one thread.
class DUET_API Client {
 public:
  static constexpr std::chrono::seconds default_patience{30};

  explicit Client(const Protocol& protocol = Protocol::json_lines_client());
  /// On a loop that must outlive it.
  explicit Client(transport::Loop& loop, const Protocol& protocol = Protocol::json_lines_client());
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// To a Unix socket. Throws std::system_error.
  void connect(const std::string& path, std::chrono::milliseconds patience = default_patience);
  /// Over a channel of this loop that is not open yet.
  void connect(std::unique_ptr<transport::Channel> channel);
  void disconnect();
  bool is_connected() const { return connection_ && !connection_->is_closed(); }

  /// For params see Conversation::call(). Throws CallFailed; std::length_error for a result nested deeper than
  /// rpc::max_depth, which call_raw() has all the same.
  boost::json::value call(std::string_view method, const rpc::Json& params = {},
                          base::Duration patience = default_patience);
  /// The same with C++ values: `call<double>("add", 2, 3)`, by position, or one described struct, by name. Throws also
  /// std::invalid_argument for a result of another shape.
  template <typename Result, typename... Values>
  Result call(std::string_view method, const Values&... values) {
    const rpc::Json result = rpc::Json::trusted(call_or_throw(method, params_of(values...), default_patience));
    if constexpr (!std::is_void_v<Result>) return result.as<Result>();
  }
  /// The same with the result as JSON text, without a throw.
  Outcome call_raw(std::string_view method, const rpc::Json& params, base::Duration patience = default_patience);
  template <rpc::TextType Text>
  Outcome call_raw(std::string_view method, const Text& params, base::Duration patience = default_patience) = delete;
  /// Many at once: the callbacks run inside wait_for().
  void call_later(std::string_view method, const rpc::Json& params, CallCallback callback,
                  base::Duration patience = default_patience);
  template <rpc::TextType Text>
  void call_later(std::string_view method, const Text& params, CallCallback callback,
                  base::Duration patience = default_patience) = delete;
  bool notify(std::string_view method, const rpc::Json& params = {});

  /// Listens to a notification; before or after connect().
  void on(std::string method, std::function<void(const rpc::Json& params)> handler);
  /// Listens to all that on() does not name.
  void on_any(std::function<void(std::string_view method, std::string_view params)> handler);

  /// Handles what comes until `done` says so; false when the time is over or the connection gone.
  bool wait_for(const std::function<bool()>& done, base::Duration patience);

  transport::Loop& loop() { return loop_; }

 private:
  template <typename... Values>
  static rpc::Json params_of(const Values&... values) {
    if constexpr (sizeof...(Values) == 0) {
      return {};
    } else if constexpr (sizeof...(Values) == 1 && (rpc::StructType<Values> && ...)) {
      return rpc::Json(values...);
    } else {
      std::string list;
      rpc::GroupWriter group(list, '[');
      (rpc::append_json(group.next(), values), ...);
      return rpc::Json::trusted(list += ']');
    }
  }
  std::string call_or_throw(std::string_view method, const rpc::Json& params, base::Duration patience);

  std::unique_ptr<transport::Loop> own_loop_;
  transport::Loop& loop_;
  Protocol protocol_;
  base::Log log_;
  Methods methods_;
  std::function<void(std::string_view, std::string_view)> on_any_;
  std::vector<std::unique_ptr<Connection>> former_;  // until the end of the turn
  std::unique_ptr<Connection> connection_;
  transport::Loop::Deferred forgetting_;
};

}  // namespace duet::peer
