#include "app/client/steady_calls.h"

#include <algorithm>
#include <thread>

#include "task/refusal.h"

namespace duet::app {
namespace {

constexpr std::chrono::milliseconds between_attempts(100);

}  // namespace

SteadyCalls::SteadyCalls(DaemonClient& daemon) : daemon_(daemon) {
  const base::Duration patience = daemon.long_patience();
  if (patience != base::Duration::max()) deadline_ = daemon.client().loop().now() + patience;
}

bool SteadyCalls::daemon_has_gone(const peer::Outcome& outcome) {
  return outcome.cause == peer::Outcome::Cause::disconnected ||
         (outcome.error && outcome.error->message() == task::is_stopping().message());
}

base::Duration SteadyCalls::time_left() const {
  if (!deadline_) return base::Duration::max();
  return std::max(*deadline_ - daemon_.client().loop().now(), base::Duration::zero());
}

std::optional<std::string> SteadyCalls::ask(std::string_view method, std::string_view params, base::Duration patience) {
  using Cause = peer::Outcome::Cause;
  peer::Outcome outcome = daemon_.ask(method, params, std::min(patience, time_left()));
  if (outcome.cause == Cause::answered) return std::move(outcome.result);
  if (daemon_has_gone(outcome)) return std::nullopt;
  throw DaemonClient::failure_of(method, outcome);
}

void SteadyCalls::reconnect() {
  const base::TimePoint given_up =
      daemon_.client().loop().now() + std::min<base::Duration>(daemon_.patience(), time_left());
  for (;;) {
    try {
      return daemon_.connect();
    } catch (const Failure&) {
      if (daemon_.client().loop().now() >= given_up) throw;
    }
    std::this_thread::sleep_for(between_attempts);
  }
}

}  // namespace duet::app
