#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/definition.h"
#include "bridge/failure.h"
#include "bridge/handshake.h"
#include "bridge/server_process.h"
#include "bridge/silence_clock.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// How long a server is waited for.
struct Patience {
  base::Duration initialize = std::chrono::seconds(30);
  base::Duration ready = std::chrono::seconds(40);  ///< for a start, after a crash too
  base::Duration call = std::chrono::seconds(30);
  base::Duration silence = std::chrono::seconds(60);  ///< with unanswered calls and not a byte from the server, or with
                                                      ///< something to read and not a byte taken either
  base::Duration shutdown = std::chrono::seconds(5);  ///< for the answer to `shutdown`
  base::Duration exit = std::chrono::seconds(2);      ///< from `exit` to TERM
  base::Duration closing = std::chrono::seconds(1);   ///< from the end of its streams to the end of the process
  base::Duration restart = std::chrono::seconds(1);   ///< from a failure to the next start, when it is the first
};

/// What all servers of a bridge share.
struct ServerSettings {
  GuardProgram guard = {};
  std::string client_version = {};
  process::Environment environment = {};
  Patience patience = {};
  std::size_t most_waiting = 64U << 20U;  ///< bytes to be written to one server; calls beyond fail
};

/// How a call ended: with a result, as JSON text, or an error.
struct CallResult {
  std::string text = {};
  std::optional<rpc::Error> error = {};
};

/// A request, for telling whether it was there in several crashes: the hash of its method and params.
using RequestMark = std::uint64_t;
RequestMark mark_of(std::string_view method, std::string_view params);

/// One life of a language server: process, handshake, calls, and its end, as a client of the protocol.
///
/// Every call has exactly one outcome, told from the loop and never inside call(): an answer, its timeout, or the
/// cause of the server's end; a cancelled call has none. Everything the server asks is answered. It does not restart
/// anything and knows no documents. For the loop's thread only.
class Session {
 public:
  using Callback = std::function<void(CallResult)>;

  /// Called from the loop, `down` also out of kill(). None may destroy the session but `gone`.
  struct Events {
    std::function<void()> ready;  ///< the handshake is done
    std::function<void(std::string_view method, std::string_view params)> notification;
    std::function<void()> read = [] {};  ///< the server has taken some of what waits to be written
    std::function<void(const Failure&)>
        down;                    ///< once, unless stop() was called: it serves no more; its calls fail next
    std::function<void()> gone;  ///< last: no process is left
  };

  /// Throws process::LaunchError, std::system_error.
  Session(transport::Loop& loop, base::Log& log, const Definition& definition, std::string root,
          const ServerSettings& settings, Events events);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Capabilities& capabilities() const { return capabilities_; }
  bool is_ready() const { return phase_ == Phase::ready; }
  pid_t pid() const { return process_->pid(); }
  pid_t guard_pid() const { return process_->guard_pid(); }
  /// From the start of the process to the answer to `initialize`.
  base::Duration handshake_time() const { return handshake_time_; }

  /// Only while it is ready. `params` is JSON text and goes out as it is; so does the result on its way back.
  std::uint64_t call(std::string_view method, std::string_view params, base::Duration patience, Callback callback);
  /// A call that still waits is never sent; for one that was sent the server is told. The callback is forgotten.
  void cancel(std::uint64_t call);
  /// However much waits already: who has much to say looks at waiting_bytes() first.
  void notify(std::string_view method, std::string_view params);
  std::size_t pending() const;
  std::size_t waiting_bytes() const { return connection_->conversation().unwritten_bytes(); }

  /// `shutdown`, `exit`, then force.
  void stop();
  /// It has to go at once, e.g. because it uses too much memory.
  void kill(Cause cause, std::string message);
  /// What the server was working on when it went down.
  const std::vector<RequestMark>& in_flight_at_end() const { return in_flight_; }

 private:
  enum class Phase : std::uint8_t { starting, ready, stopping, down };
  // What was asked and is not answered yet.
  struct Question {
    Callback callback;  // none: nobody waits any more
    RequestMark mark = 0;
    std::uint64_t losses_before = 0;
    bool timed_out = false;
    bool was_sent = true;
  };
  using Questions = std::map<peer::CallId, Question>;

  void process_ended(process::ExitStatus status);
  void streams_closed();

  void start_handshake(const std::string& options);
  void take_initialize_result(const CallResult& result);
  peer::ConnectionEvents connection_events();
  void note_lost(const peer::LostMessage& lost);

  std::uint64_t ask(std::string_view method, std::string_view params, base::Duration patience, Callback callback);
  void take_outcome(peer::Outcome outcome);
  void tell_timeout(Question& question, const rpc::Error& error);
  Failure timeout_failure(const Question& question) const;
  void tell(const Callback& callback, CallResult result);
  void forget_oldest_abandoned();
  bool is_owed_answer() const;
  void note_load();
  void watch_silence();
  base::Duration silence_left() const;
  void look_for_silence();

  Failure failure(Cause cause, std::string message) const;
  void go_down(const Failure& why);
  void fail_calls(const Failure& why);
  void set_timer(base::Duration wait, std::function<void()> task);
  void clear_timer();

  transport::Loop& loop_;
  base::Log& log_;
  std::string name_;
  std::string root_;
  const ServerSettings& settings_;
  Events events_;
  std::unique_ptr<ServerProcess> process_;
  peer::Methods methods_;  // what the server may ask

  Phase phase_ = Phase::starting;
  Capabilities capabilities_;
  Encoding usual_encoding_;
  base::TimePoint started_;
  base::Duration handshake_time_{};
  std::optional<process::ExitStatus> status_;
  std::optional<transport::Loop::Timer> timer_;  // of the phase

  Questions questions_;
  std::uint64_t lost_messages_ = 0;
  std::string noise_;          // how the latest bytes begin that were no message
  bool broke_frames_ = false;  // it speaks in frames, and not properly
  SilenceClock answering_;
  SilenceClock reading_;
  std::size_t unread_ = 0;   // of what was sent, when that was looked at last
  base::TimePoint read_at_;  // when it had become less
  std::optional<transport::Loop::Timer> silence_timer_;
  std::optional<Failure> failure_;  // why it is down
  std::vector<RequestMark> in_flight_;
  std::unique_ptr<peer::Connection> connection_;  // the last: when it goes, it tells the questions
};

}  // namespace duet::bridge
