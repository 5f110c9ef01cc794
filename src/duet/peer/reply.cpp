#include "duet/peer/reply.h"

#include "duet/peer/dispatcher.h"

namespace duet::peer {

AnyReply& AnyReply::operator=(AnyReply&& other) noexcept {
  if (this != &other) {
    let_go();
    request_ = std::move(other.request_);
  }
  return *this;
}

AnyReply::~AnyReply() { let_go(); }

void AnyReply::let_go() {
  if (!abandoned()) request_->dispatcher->reply_dropped(request_);
  request_.reset();
}

void AnyReply::answer(const rpc::Json& result) {
  if (result.empty()) return answer(nullptr);
  if (!abandoned()) request_->dispatcher->finish(request_, result);
}

void AnyReply::fail(const rpc::Error& error) {
  if (!abandoned()) request_->dispatcher->finish(request_, error);
}

bool AnyReply::abandoned() const { return !request_ || request_->dispatcher == nullptr; }

void AnyReply::on_abandoned(std::function<void()> callback) {
  if (!request_) return;
  if (request_->was_abandoned) return callback();
  request_->on_abandoned = std::move(callback);
}

}  // namespace duet::peer
