#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/transport/loop.h"
#include "duet/transport/sentinel.h"

namespace duet::app {

/// When `duet-rpc rpc` ends, what the log says about it, and the exit code.
///
/// Whatever comes first is the reason: the end of stdin, a signal, `shutdown`, the client's death. From then on nothing
/// more is read, the request in progress may finish, answers are written, and the loop ends; or the process does, when
/// `patience` is over, whoever still blocks it. For the loop's thread, but for what the Sentinel does on its own.
class Lifecycle {
 public:
  struct Limits {
    base::Duration patience = std::chrono::milliseconds(1750);   // with a handler, or a client that does not read
    base::Duration last_lines = std::chrono::milliseconds(150);  // for the log, when patience is over
    base::Duration ceiling = std::chrono::milliseconds(1900);    // of all together
    std::chrono::milliseconds log_flush = std::chrono::milliseconds(500);
    std::chrono::milliseconds least_flush = std::chrono::milliseconds(50);  // after a long good-bye to a slow reader
  };

  /// Builds with test methods take the patience from DUET_RPC_TEST_PATIENCE, in milliseconds, if the environment has
  /// it.
  Lifecycle(transport::Loop& loop, base::Log& log);
  Lifecycle(transport::Loop& loop, base::Log& log, Limits limits) : loop_(loop), log_(log), limits_(limits) {}

  /// For the connection, which must outlive what start() returns.
  peer::ConnectionEvents events();
  /// From here on signals end the connection, and the end of `input` counts even while a handler blocks the loop.
  [[nodiscard]] std::unique_ptr<transport::Sentinel> start(peer::Connection& connection, int input);

  /// Called once on the loop's thread when the end begins, whatever its reason. Before start().
  void on_end(std::function<void()> callback) { on_end_ = std::move(callback); }

  void shutdown_requested();
  void client_process_ended();

  /// Opens the connection and runs the loop to its end; gives the exit code. Without a stdout there is nothing to do.
  /// After start().
  int run(bool has_stdout);
  /// After the loop: has the log written, as long as there is time, and gives the exit code.
  int finish();

 private:
  void input_ended();
  void tell_end();
  void note(std::string_view reason) noexcept;
  void begin(std::string_view reason) noexcept;
  void signal_came(int signal) noexcept;
  void closed(peer::Ending ending);
  [[noreturn]] void give_up() noexcept;
  std::chrono::milliseconds time_left() const;

  transport::Loop& loop_;
  base::Log& log_;
  Limits limits_;
  std::function<void()> on_end_;
  peer::Connection* connection_ = nullptr;
  std::atomic<transport::Sentinel*> sentinel_ = nullptr;  // its own thread asks for it too
  std::atomic<base::Duration::rep> begun_ = 0;            // when the end began; 0: it has not
  std::atomic<int> exit_code_ = 0;
};

}  // namespace duet::app
