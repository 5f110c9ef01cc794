#include "app/stdio/lifecycle.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace duet::app {
namespace {

std::string_view line_about(int signal) {
  switch (signal) {
    case SIGINT:
      return "received SIGINT, shutting down gracefully";
    case SIGHUP:
      return "received SIGHUP, shutting down gracefully";
    default:
      return "received SIGTERM, shutting down gracefully";
  }
}

constexpr std::string_view line_about_input = "stdin closed, shutting down gracefully";

// What takes a second is answered first; the tests of that, which a busy machine may hold up, have more patience.
static_assert(Lifecycle::Limits().patience > std::chrono::seconds(1));

Lifecycle::Limits usual_limits() {
  Lifecycle::Limits limits;
#ifdef DUET_TEST_METHODS
  if (const char* const told = std::getenv("DUET_RPC_TEST_PATIENCE")) {
    const auto more = std::chrono::milliseconds(std::atoll(told)) - limits.patience;
    limits.patience += more;
    limits.ceiling += more;
    limits.log_flush += std::chrono::duration_cast<std::chrono::milliseconds>(more);
  }
#endif
  return limits;
}

}  // namespace

Lifecycle::Lifecycle(transport::Loop& loop, base::Log& log) : Lifecycle(loop, log, usual_limits()) {}

peer::ConnectionEvents Lifecycle::events() {
  peer::ConnectionEvents events;
  events.on_closed = [this](peer::Ending ending) { closed(ending); };
  events.conversation.on_input_ended = [this] { input_ended(); };
  events.conversation.on_waiting = [this](std::string_view method) {
    // It is answered in its place, but the time it gives the one before it runs from now.
    if (method == "shutdown") begin("shutdown requested, shutting down gracefully");
  };
  events.conversation.on_notification = [this](std::string_view method, std::string_view) {
    // LSP-like clients send it after `shutdown`, or instead of it.
    if (method != "exit") log_.warn("Method not found", {{"method", method}});
  };
  return events;
}

std::unique_ptr<transport::Sentinel> Lifecycle::start(peer::Connection& connection, int input) {
  connection_ = &connection;
  auto sentinel = std::make_unique<transport::Sentinel>(
      loop_, transport::Sentinel::Duties{.signals = {SIGINT, SIGTERM, SIGHUP},
                                         .on_signal =
                                             [this](int) {
                                               connection_->stop();
                                               tell_end();
                                             },
                                         .note_signal = [this](int signal) { signal_came(signal); },
                                         .patience = limits_.patience,
                                         .on_overdue = [this] { give_up(); },
                                         .input = input});
  sentinel_ = sentinel.get();
  return sentinel;
}

// Whole frames before the end are answered however long a client takes to read them, as long as it does read.
void Lifecycle::input_ended() {
  note(line_about_input);
  if (transport::Sentinel* const sentinel = sentinel_) sentinel->expect_progress();
  tell_end();
}

void Lifecycle::tell_end() {
  if (const std::function<void()> told = std::exchange(on_end_, {})) told();
}

void Lifecycle::shutdown_requested() {
  begin("shutdown requested, shutting down gracefully");
  connection_->stop();
  tell_end();
}

void Lifecycle::client_process_ended() {
  begin("client process ended, shutting down gracefully");
  connection_->stop();
  tell_end();
}

int Lifecycle::run(bool has_stdout) {
  if (!has_stdout) {
    log_.error("stdout is closed");
    return 1;
  }
  connection_->open();
  loop_.run();
  return finish();
}

int Lifecycle::finish() {
  if (!log_.flush(time_left())) std::_Exit(exit_code_);  // a sink that is stuck holds nobody
  return exit_code_;
}

void Lifecycle::note(std::string_view reason) noexcept {
  base::Duration::rep never = 0;
  if (begun_.compare_exchange_strong(never, loop_.now().time_since_epoch().count())) log_.info(reason);
}

void Lifecycle::begin(std::string_view reason) noexcept {
  note(reason);
  if (transport::Sentinel* const sentinel = sentinel_) sentinel->expect_end();
}

// On the sentinel's thread, where a handler that blocks the loop does not matter.
void Lifecycle::signal_came(int signal) noexcept {
  begin(line_about(signal));
  connection_->ask_to_stop();
}

void Lifecycle::closed(peer::Ending ending) {
  if (ending == peer::Ending::peer_gone || ending == peer::Ending::unreadable) {
    exit_code_ = 1;
    const std::string why = std::generic_category().message(connection_->failure());
    log_.error(ending == peer::Ending::peer_gone ? "writing to stdout failed" : "reading from stdin failed",
               {{"reason", why}});
  }
  loop_.stop();
}

// On the sentinel's thread. Nobody but the end of stdin starts its clock without a word.
void Lifecycle::give_up() noexcept {
  begin(line_about_input);
  log_.warn("not done in time, leaving now");
  log_.flush(std::chrono::duration_cast<std::chrono::milliseconds>(limits_.last_lines));
  std::_Exit(exit_code_);
}

std::chrono::milliseconds Lifecycle::time_left() const {
  const base::Duration::rep begun = begun_;
  if (begun == 0) return limits_.log_flush;
  const base::TimePoint until = base::TimePoint(base::Duration(begun)) + limits_.ceiling;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - loop_.now());
  return std::clamp(left, limits_.least_flush, limits_.log_flush);
}

}  // namespace duet::app
