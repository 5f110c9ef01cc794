#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "task/postgres/line.h"
#include "task/postgres/session.h"
#include "task/postgres/store_address.h"

namespace duet::task::postgres {

/// One connection for a command that may wait: `cluster init`, `migrate`, `doctor` and the like. Not for a daemon.
///
/// Every call waits for its answer or its deadline; a statement that is overdue is not cancelled, and the session is
/// broken then (is_open). Nothing is tried again. For one thread.
class AdminSession {
 public:
  using Wait = std::chrono::milliseconds;
  static constexpr Wait usual_wait{std::chrono::seconds(60)};

  /// Connects to the first host that fits. The error is for people.
  static tl::expected<std::unique_ptr<AdminSession>, std::string> open(const StoreAddress& address,
                                                                       Wait most = std::chrono::seconds(10));
  ~AdminSession();

  /// Leaves this server for another host of the address; if none fits it may be the same again. The error is for
  /// people, and there is no connection then.
  std::optional<std::string> try_another(Wait most);

  /// Text of SQL, of as many statements as it has; they are one transaction unless they say otherwise. The result is
  /// that of the last one.
  Answer run(const std::string& sql, Wait most = usual_wait);
  /// One statement with $1, $2 and so on.
  Answer ask(const std::string& sql, std::vector<Argument> arguments, Wait most = usual_wait);
  /// `SELECT * FROM schema.function(…)`.
  Answer call(std::string_view schema, std::string_view function, std::vector<Argument> arguments,
              Wait most = usual_wait);

  /// What the server said beside its answers since the last time.
  std::vector<Notice> take_notices();
  /// The next wake-up of a channel that was LISTENed to: its name and payload.
  std::optional<std::pair<std::string, std::string>> await_notification(Wait most);

  bool is_open() const;
  /// 150004 is 15.4.
  int server_version() const;
  /// As PQparameterStatus has it (`server_encoding`, `is_superuser`, …); empty: the server did not tell.
  std::string server_parameter(const std::string& name) const;
  /// `TLSv1.3` and the like; empty: no TLS.
  std::string tls() const;
  /// The host that answered, and the address as people may see it.
  const std::string& server() const;
  /// It answered through a Unix socket or loopback.
  bool is_here() const;
  /// Another process stands between: the server's process is not the one that libpq was told of.
  bool is_pooled();

 private:
  class Talk;
  explicit AdminSession(std::unique_ptr<Talk> talk);

  std::unique_ptr<Talk> talk_;
};

}  // namespace duet::task::postgres
