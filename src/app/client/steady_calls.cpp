#include "app/client/steady_calls.h"

#include <algorithm>
#include <utility>

#include "duet/rpc/value.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

constexpr std::chrono::milliseconds between_attempts(100);
constexpr std::chrono::seconds between_asks(1);  // while the queue is away
constexpr int unavailable_code = -32003;

}  // namespace

SteadyCalls::SteadyCalls(DaemonClient& daemon) : daemon_(daemon), has_connected_(daemon.is_connected()) {
  const base::Duration patience = daemon.long_patience();
  if (patience != base::Duration::max()) deadline_ = daemon.client().loop().now() + patience;
}

bool SteadyCalls::daemon_has_gone(const peer::Outcome& outcome) {
  return outcome.cause == peer::Outcome::Cause::disconnected ||
         (outcome.error && outcome.error->message() == task::is_stopping().message());
}

bool SteadyCalls::queue_is_away(const peer::Outcome& outcome) {
  if (!outcome.error || outcome.error->code() != unavailable_code || outcome.error->data().empty()) return false;
  const boost::json::value data = rpc::parse_value(outcome.error->data());
  const boost::json::value* const away = data.is_object() ? data.get_object().if_contains("away") : nullptr;
  return away != nullptr && *away == true;
}

bool SteadyCalls::await_queue(const peer::Outcome& outcome) {
  has_answered();
  if (!std::exchange(told_of_queue_, true)) daemon_.tell_user(outcome.error->message() + "; waiting until it is back");
  pause(std::min<base::Duration>(between_asks, time_left()));
  return time_left() > base::Duration::zero();
}

base::Duration SteadyCalls::time_left() const {
  if (!deadline_) return base::Duration::max();
  return std::max(*deadline_ - daemon_.client().loop().now(), base::Duration::zero());
}

peer::Outcome SteadyCalls::outcome_of(std::string_view method, std::string_view params, base::Duration patience) {
  for (;;) {
    peer::Outcome outcome = ask_once(method, params, patience);
    if (!queue_is_away(outcome)) return outcome;
    if (!await_queue(outcome)) return {.cause = peer::Outcome::Cause::timed_out};
  }
}

peer::Outcome SteadyCalls::ask_once(std::string_view method, std::string_view params, base::Duration patience) {
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
  if (was_in_vain) pause(between_attempts);
  has_connected_ = true;
  for (;;) {
    try {
      return daemon_.connect(std::max(given_up - client.loop().now(), base::Duration::zero()));
    } catch (const Failure& failure) {
      const bool is_in_vain = failure.code() == exit_code::failed;
      if (is_in_vain || client.loop().now() >= given_up) throw;
    }
    pause(between_attempts);
  }
}

// The loop turns meanwhile: whoever reads what the command prints may go.
void SteadyCalls::pause(base::Duration time) {
  transport::Loop& loop = daemon_.client().loop();
  const base::TimePoint over = loop.now() + time;
  while (loop.now() < over) loop.turn(over);
}

}  // namespace duet::app
