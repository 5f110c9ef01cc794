#include "duet/peer/reply.h"

#include <utility>

#include "duet/peer/dispatcher.h"

namespace duet::peer {

Reply& Reply::operator=(Reply&& other) noexcept {
  if (this != &other) {
    let_go();
    slot_ = std::move(other.slot_);
  }
  return *this;
}

Reply::~Reply() { let_go(); }

void Reply::let_go() {
  if (!abandoned()) slot_->dispatcher->reply_dropped(slot_);
  slot_.reset();
}

void Reply::ok(const Answer& answer) {
  if (!abandoned()) slot_->dispatcher->settle(slot_, &answer, nullptr);
}

void Reply::fail(const rpc::Error& error) {
  if (!abandoned()) slot_->dispatcher->settle(slot_, nullptr, &error);
}

bool Reply::abandoned() const { return !slot_ || slot_->dispatcher == nullptr; }

void Reply::on_abandoned(std::function<void()> callback) {
  if (slot_) slot_->on_abandoned = std::move(callback);
}

}  // namespace duet::peer
