#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"
#include "task/postgres/argument.h"
#include "task/postgres/result.h"

namespace duet::task::postgres {

/// Why a call has no result.
struct Fault {
  enum class Kind {
    refused,  ///< the server said no, and nothing of it has happened; `sqlstate` has its code
    unknown,  ///< it was sent, and nobody knows whether it has happened
    never,    ///< it was not sent, and never will be
  };
  Kind kind = Kind::never;
  std::string sqlstate;  ///< five letters; empty unless the server said it
  std::string message;   ///< for people, without passwords
};

using Answer = tl::expected<Result, Fault>;

/// What the queue reaches its database through: calls of functions, and wake-ups.
///
/// Behind it stands Database (two connections of libpq), or a model of the functions in the simulator. All is on the
/// thread of one loop. No call blocks, and `done` never comes within call(). Each call is answered exactly once unless
/// the line itself goes, and then not at all.
class Line {
 public:
  enum class Way {
    work,   ///< submits, claims, reports, reads
    watch,  ///< beats, wake-ups, events
  };
  using Done = std::function<void(const Answer&)>;
  /// Calls a function on a connection that is not in use yet.
  using Ask = std::function<void(std::string_view function, std::vector<Argument> arguments, Done done)>;
  /// None: the server is fine. Else why it is not ours to use, for people.
  using Verdict = std::function<void(std::optional<std::string> refusal)>;

  struct Events {
    /// A connection was made, and nothing else goes over it until the verdict, which must come exactly once, also when
    /// what was asked failed. A refused server is tried again later. Without it every server is fine.
    std::function<void(Way way, Ask ask, Verdict verdict)> greet;
    /// Both ways are there, for the first time or again.
    std::function<void()> up;
    /// One of them is not there any more, or the first attempt failed; again when the reason becomes another one.
    std::function<void(const std::string& why)> down;
    /// A wake-up. After a break some may be missing.
    std::function<void(const std::string& channel, const std::string& payload)> notified;
  };

  /// What people are told of it.
  struct Standing {
    std::string server;      ///< `user@host:port/dbname` of the work connection; of the settings while there is none
    std::string trouble;     ///< why a way is down; empty while both are up
    bool listens = false;    ///< a wake-up to oneself has come back on this connection: wake-ups work
    bool pooled = false;     ///< something stands between us and the server that changes connections under us
    bool encrypted = false;  ///< TLS
    std::optional<std::chrono::microseconds> round_trip;  ///< of the last call on the watch connection
    base::Duration waited = {};  ///< for the answer to what was sent over the work connection; none: it is there
  };

  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  virtual ~Line() = default;

  /// Connects, and from then on sees to it that it is connected. Once.
  virtual void start(Events events) = 0;

  /// Calls a function of the queue's schema. Calls of one way go out in order, one after the other, but that a
  /// `read_…` need not wait for what the server is slow with.
  virtual void call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) = 0;
  /// From now on, also after a reconnect. Twice is once.
  virtual void listen(const std::string& channel) = 0;
  virtual void unlisten(const std::string& channel) = 0;

  virtual bool is_up(Way way) const = 0;
  /// Closes this way's connection and finds a server anew, for who knows better than the connection itself.
  virtual void reconnect(Way way, const std::string& why) = 0;
  virtual Standing standing() const = 0;
};

}  // namespace duet::task::postgres
