#include "bridge/inquiry.h"

#include <exception>
#include <utility>

namespace duet::bridge {

Inquiry::Inquiry(std::shared_ptr<LanguageServer> server, base::Log& log, Done done)
    : server_(std::move(server)), log_(log), done_(std::move(done)) {}

void Inquiry::when_ready(Step step) {
  server_->use([self = shared_from_this(), step = std::move(step)](const Failure* failure) {
    if (self->is_over()) return;
    if (failure != nullptr) return self->fail(*failure);
    self->run(step);
  });
}

void Inquiry::call(std::string_view method, std::string_view params, base::Duration patience, ResultStep step) {
  call_ =
      server_->call(method, params, patience, [self = shared_from_this(), step = std::move(step)](CallResult result) {
        self->call_ = 0;
        self->run([&](Inquiry& inquiry) { step(inquiry, std::move(result)); });
      });
}

void Inquiry::run(const Step& step) {
  if (is_over()) return;
  const std::shared_ptr<Inquiry> self = shared_from_this();
  try {
    step(*this);
  } catch (const rpc::Error& error) {
    answer({.error = error});
  } catch (const std::exception& fault) {
    log_.error("Question failed", {{"server", server_->name()}, {"what", fault.what()}});
    answer({.error = rpc::internal_error()});
  }
}

void Inquiry::answer(CallResult result) {
  if (is_over()) return;
  const std::shared_ptr<Inquiry> self = shared_from_this();
  const Done done = std::move(done_);
  end();
  done(std::move(result));
}

void Inquiry::cancel() {
  if (is_over()) return;
  end();
  if (call_ != 0) server_->cancel(std::exchange(call_, 0));
}

void Inquiry::end() {
  done_ = nullptr;
  if (const auto undo = std::exchange(at_end, nullptr)) undo();
}

}  // namespace duet::bridge
