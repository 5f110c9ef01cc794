#include "app/doors/rpc_exchange.h"

#include <optional>
#include <utility>

namespace duet::app {
namespace {

std::function<void(std::string_view, std::string_view)> notification_taker(bool warns) {
  if (warns) return {};
  return [](std::string_view, std::string_view) {};
}

}  // namespace

RpcExchange::RpcExchange(transport::Loop& loop, base::Log& log, const Served& served, const peer::Peer& peer,
                         std::shared_ptr<framing::BlockPool> pool, std::string_view message,
                         std::function<void()> answered, std::function<void()> on_gone)
    : loop_(loop),
      tell_(std::move(answered)),
      on_gone_(std::move(on_gone)),
      conversation_(served.protocol, served.methods,
                    {.on_wake = [this] { advance_later(); },
                     .hand_over = [remote = loop.remote()](transport::Task task) { remote.post(std::move(task)); },
                     .on_notification = notification_taker(served.warns)},
                    log, peer, std::move(pool)) {
  conversation_.receive(message, loop_.now());
  conversation_.end_of_input(loop_.now());
  has_owed_ = conversation_.owes_answer();
  advance_later();
}

void RpcExchange::cancel() {
  answered_ = true;
  tell_ = {};
  timer_.cancel();
  advancing_.cancel();
  conversation_.close();
  if (const auto tell_gone = std::exchange(on_gone_, {})) tell_gone();
}

void RpcExchange::advance_later() {
  if (!advancing_ && !answered_) advancing_ = loop_.deferred([this] { advance(); });
}

void RpcExchange::advance() {
  if (conversation_.has_more_to_do()) conversation_.resume();  // a portion: what is left has a deadline, which is now
  has_owed_ = has_owed_ || conversation_.owes_answer();
  if (!conversation_.owes_answer() && !conversation_.has_more_to_do()) {
    timer_.cancel();
    answered_ = true;
    const std::function<void()> tell = std::move(tell_);  // who hears it may end this
    return tell();
  }
  const std::optional<base::TimePoint> deadline = conversation_.deadline();
  if (!deadline) return timer_.cancel();
  timer_ = loop_.at(*deadline, [this] {
    conversation_.tick(loop_.now());
    advance();
  });
}

}  // namespace duet::app
