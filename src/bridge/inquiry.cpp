#include "bridge/inquiry.h"

#include <exception>
#include <utility>

namespace duet::bridge {

Inquiry::Inquiry(transport::Loop& loop, std::shared_ptr<LanguageServer> server, base::Log& log, Done done)
    : loop_(loop), server_(std::move(server)), log_(log), done_(std::move(done)) {}

void Inquiry::when_ready(base::Duration patience, Step step) {
  const auto self = shared_from_this();
  waiting_ = true;
  server_->use([self, step = std::move(step)](const Failure* failure) {
    self->waiting_ = false;
    if (self->is_over()) return;
    self->undo();
    if (failure != nullptr) return self->fail(*failure);
    self->run(step);
  });
  if (!waiting_) return;
  const auto timer = std::make_shared<transport::Loop::Timer>(loop_.after(patience, [self] {
    self->fail({.cause = Cause::timeout,
                .message = self->server_->name() + ": was not ready in time",
                .server = self->server_->name()});
  }));
  at_end = [timer] { timer->cancel(); };
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

void Inquiry::undo() {
  if (const auto undoing = std::exchange(at_end, nullptr)) undoing();
}

void Inquiry::end() {
  done_ = nullptr;
  undo();
}

}  // namespace duet::bridge
