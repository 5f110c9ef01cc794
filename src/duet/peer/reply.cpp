#include "duet/peer/reply.h"

#include "duet/peer/dispatcher.h"

namespace duet::peer {

Reply& Reply::operator=(Reply&& other) noexcept {
  if (this != &other) {
    let_go();
    request_ = std::move(other.request_);
  }
  return *this;
}

Reply::~Reply() { let_go(); }

void Reply::let_go() {
  if (!abandoned()) request_->dispatcher->reply_dropped(request_);
  request_.reset();
}

void Reply::ok(const Answer& answer) {
  if (!abandoned()) request_->dispatcher->finish(request_, answer);
}

void Reply::fail(const rpc::Error& error) {
  if (!abandoned()) request_->dispatcher->finish(request_, error);
}

bool Reply::abandoned() const { return !request_ || request_->dispatcher == nullptr; }

void Reply::on_abandoned(std::function<void()> callback) {
  if (!request_) return;
  if (request_->was_abandoned) return callback();
  request_->on_abandoned = std::move(callback);
}

}  // namespace duet::peer
