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

// The last thing that a reply does, from another thread.
template <typename Action>
void AnyReply::hand_over(Action action) {
  const std::shared_ptr<const HandOver> way = request_->hand_over;  // the request may be gone before it returns
  (*way)([request = std::move(request_), action = std::move(action)] {
    if (Dispatcher* const dispatcher = request->dispatcher) action(*dispatcher, request);
  });
}

void AnyReply::let_go() {
  if (abandoned()) return request_.reset();
  if (request_->is_elsewhere()) {
    return hand_over([](Dispatcher& dispatcher, const auto& request) { dispatcher.reply_dropped(request); });
  }
  request_->dispatcher.load()->reply_dropped(request_);
  request_.reset();
}

void AnyReply::answer(rpc::Json&& result) {
  if (abandoned()) return;
  if (result.empty()) result = rpc::Json::view("null");
  if (request_->is_elsewhere()) {
    return hand_over([answer = std::move(result).owned()](Dispatcher& dispatcher, const auto& request) {
      dispatcher.finish(request, answer);
    });
  }
  request_->dispatcher.load()->finish(request_, result);
}

void AnyReply::fail(const rpc::Error& error) {
  if (abandoned()) return;
  if (request_->is_elsewhere()) {
    return hand_over([error](Dispatcher& dispatcher, const auto& request) { dispatcher.finish(request, error); });
  }
  request_->dispatcher.load()->finish(request_, error);
}

void AnyReply::withdraw() {
  if (!abandoned()) request_->dispatcher.load()->leave_unanswered(request_);
  request_.reset();
}

bool AnyReply::abandoned() const { return !request_ || !request_->is_open(); }

void AnyReply::on_abandoned(std::function<void()> callback) {
  if (!request_) return;
  if (!request_->is_elsewhere()) return request_->listen(std::move(callback));
  const std::shared_ptr<const HandOver> way = request_->hand_over;
  (*way)([request = request_, callback = std::move(callback)]() mutable { request->listen(std::move(callback)); });
}

}  // namespace duet::peer
