#include "duet/peer/reply.h"

#include <utility>

#include "duet/peer/dispatcher.h"

namespace duet::peer {

AnyReply& AnyReply::operator=(AnyReply&& other) noexcept {
  if (this != &other) {
    let_go();
    slot_ = std::move(other.slot_);
  }
  return *this;
}

AnyReply::~AnyReply() { let_go(); }

void AnyReply::let_go() {
  if (!abandoned()) slot_->dispatcher->reply_dropped(slot_);
  slot_.reset();
}

void AnyReply::answer(const rpc::Json& result) {
  if (result.empty()) return answer(nullptr);
  if (!abandoned()) slot_->dispatcher->settle(slot_, &result, nullptr);
}

void AnyReply::fail(const rpc::Error& error) {
  if (!abandoned()) slot_->dispatcher->settle(slot_, nullptr, &error);
}

bool AnyReply::abandoned() const { return !slot_ || slot_->dispatcher == nullptr; }

void AnyReply::on_abandoned(std::function<void()> callback) {
  if (slot_) slot_->on_abandoned = std::move(callback);
}

}  // namespace duet::peer
