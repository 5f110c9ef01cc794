#include "app/client/steady_calls.h"

#include <algorithm>

#include "task/refusal.h"

namespace duet::app {
namespace {

constexpr std::chrono::milliseconds between_attempts(100);

}  // namespace

SteadyCalls::SteadyCalls(DaemonClient& daemon) : daemon_(daemon), has_connected_(daemon.is_connected()) {
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

peer::Outcome SteadyCalls::outcome_of(std::string_view method, std::string_view params, base::Duration patience) {
  if (has_connected_ && !daemon_.is_connected()) return {.cause = peer::Outcome::Cause::disconnected};
  peer::Outcome outcome = daemon_.ask(method, params, std::min(patience, time_left()));
  has_connected_ = true;
  if (outcome.cause == peer::Outcome::Cause::answered) has_answered();
  return outcome;
}

std::optional<std::string> SteadyCalls::ask(std::string_view method, std::string_view params, base::Duration patience) {
  using Cause = peer::Outcome::Cause;
  peer::Outcome outcome = outcome_of(method, params, patience);
  if (outcome.cause == Cause::answered) return std::move(outcome.result);
  if (daemon_has_gone(outcome)) return std::nullopt;
  throw DaemonClient::failure_of(method, outcome);
}

void SteadyCalls::reconnect() {
  peer::Client& client = daemon_.client();
  const base::Duration patience = std::min<base::Duration>(daemon_.patience(), time_left());
  const bool was_in_vain = lost_since_.has_value();
  if (!lost_since_) lost_since_ = client.loop().now();
  const base::TimePoint given_up = *lost_since_ + patience;
  // One that stops has refused us, and may be there for a while: asked again at once it would only refuse again.
  client.wait_for([] { return false; }, patience);
  if (was_in_vain && client.loop().now() >= given_up) {
    throw Failure("the daemon goes away again and again before it has answered", exit_code::no_daemon);
  }
  if (was_in_vain) pause();
  has_connected_ = true;
  for (;;) {
    try {
      return daemon_.connect(std::max(given_up - client.loop().now(), base::Duration::zero()));
    } catch (const Failure& failure) {
      const bool is_in_vain = failure.code() == exit_code::failed;
      if (is_in_vain || client.loop().now() >= given_up) throw;
    }
    pause();
  }
}

// The loop turns meanwhile: whoever reads what the command prints may go.
void SteadyCalls::pause() {
  transport::Loop& loop = daemon_.client().loop();
  const base::TimePoint over = loop.now() + between_attempts;
  while (loop.now() < over) loop.turn(over);
}

}  // namespace duet::app
