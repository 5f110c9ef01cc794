#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/libpq.h"
#include "task/postgres/line.h"

namespace duet::task::postgres {

/// What is sent: a statement with $1, $2 and so on, or a script.
struct Statement {
  std::string sql;
  std::vector<Argument> arguments;
  bool script = false;  ///< several statements, without arguments; the result is that of the last one

  std::size_t bytes() const;
  /// Text with a zero byte would be cut there, without a word.
  bool has_zero_byte() const;
};

/// `SELECT * FROM schema.function($1,…)`.
Statement function_call(std::string_view schema, std::string_view function, std::vector<Argument> arguments);

/// What the server says beside its answers.
struct Notice {
  std::string severity;
  std::string sqlstate;
  std::string message;
};

/// A connection that is made: one statement at a time, and wake-ups.
///
/// A statement is answered when the server is ready for the next one, not before: only then it is committed. Nothing
/// blocks. When the connection breaks, what is under way is answered `unknown`, then lost() comes, once; this may be
/// destroyed in any of its calls. It has no deadlines.
class Session final : private transport::Loop::Watcher {
 public:
  struct Events {
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& channel, const std::string& payload)> notified;
    std::function<void(Notice notice)> noticed;  ///< it may not destroy the session
  };

  /// Throws std::system_error if the socket cannot be watched.
  Session(transport::Loop& loop, PgConnection connection, Events events);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  bool is_busy() const { return static_cast<bool>(done_); }
  /// False: lost() is about to come.
  bool is_sound() const { return sound_; }
  /// Not while it is busy. `done` never comes within the call. The statement must stay until it is answered.
  void send(const Statement& statement, Line::Done done);
  /// From now on what is sent again and again is parsed and planned once and then sent by a name. Only where nobody
  /// changes connections under us; should the server not know a name any more, all is sent in full again.
  void prepare_statements() { prepares_ = true; }

  /// The server's process, as libpq was told.
  int server_process() const { return libpq().PQbackendPID(connection_.get()); }
  int server_version() const { return libpq().PQserverVersion(connection_.get()); }
  std::string parameter(const std::string& name) const;
  /// `TLSv1.3` and the like; empty: no TLS.
  std::string tls() const;

 private:
  static void receive_notice(void* session, const Libpq::PGresult* result);

  void on_ready(std::uint32_t events) override;
  bool read();
  bool flush();
  void tell_notifications();
  void collect_results();
  void keep(const PgResult& result);
  void answer();
  bool begin();
  bool send_in_full();
  bool send_by_name(const std::string& name);
  bool goes_on();
  void lose_later(const std::string& why);
  void lose(const std::string& why);
  std::string trouble() const;

  transport::Loop& loop_;
  PgConnection connection_;
  Events events_;
  Line::Done done_;
  const Statement* sent_ = nullptr;  // what is under way
  std::optional<Answer> answer_;
  bool prepares_ = false;
  enum class Step { whole, preparing, named };
  Step step_ = Step::whole;  // of what is under way
  struct Known {
    int uses = 0;
    bool prepared = false;
  };
  std::unordered_map<std::string, Known> known_;  // by their text
  bool complete_ = false;                         // the server is ready for the next statement
  bool sound_ = true;
  bool writing_ = false;    // not all is sent
  std::string last_words_;  // of a server that ends the connection
  transport::Loop::Watch watch_;
  transport::Loop::Deferred losing_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
