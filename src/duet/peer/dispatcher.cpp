#include "duet/peer/dispatcher.h"

#include <exception>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

constexpr std::string_view cancel_method = "$/cancelRequest";

base::JsonText id_field(std::string_view id) { return base::JsonText{id}; }

std::string_view member(std::string_view object, std::string_view name) {
  std::string_view found;
  if (object.starts_with('{')) {
    rpc::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
      if (raw_name == name) found = value;
      return true;
    });
  }
  return found;
}

}  // namespace

Dispatcher::Dispatcher(Connection& connection, const Methods& methods, base::Log& log, rpc::Batches batches,
                       Output& output, std::size_t most_output, Events events)
    : connection_(connection),
      methods_(methods),
      log_(log),
      batches_(batches),
      output_(output),
      most_output_(most_output),
      events_(std::move(events)) {}

Dispatcher::~Dispatcher() { abandon(); }

void Dispatcher::take(const rpc::Message& message, std::string_view text) {
  const bool free = !has_work() && may_answer();
  if (free && message.kind == rpc::Message::Kind::request) return invoke(message);  // the usual case
  if (message.kind == rpc::Message::Kind::notification && message.method == cancel_method) return cancel(message);
  if (free) {
    handle(message);
  } else {
    put_off(message, text);
  }
}

void Dispatcher::handle(const rpc::Message& message) {
  switch (message.kind) {
    case rpc::Message::Kind::request:
    case rpc::Message::Kind::notification: return invoke(message);
    case rpc::Message::Kind::batch: return start_batch(message.batch);
    case rpc::Message::Kind::invalid:
      note_refusal(base::Level::warn, *message.refusal, {}, message.id);
      return refuse(message.id, *message.refusal);
    case rpc::Message::Kind::response: return;  // the connection's own calls; never waits here
  }
}

void Dispatcher::put_off(const rpc::Message& message, std::string_view text) {
  Waiting waiting{.text = {}, .id = std::string(message.id), .refusal = message.refusal};
  if (!message.refusal) waiting.text = text;
  waiting_bytes_ += waiting.size();
  waiting_.push_back(std::move(waiting));
  if (message.kind == rpc::Message::Kind::request || message.kind == rpc::Message::Kind::notification) {
    if (events_.on_waiting) events_.on_waiting(message.method);
  }
}

void Dispatcher::go_on() {
  while (is_free() && (batch_ || !waiting_.empty())) {
    if (batch_) {
      continue_batch();
    } else {
      handle_first_waiting();
    }
  }
}

void Dispatcher::handle_first_waiting() {
  const Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= waiting.size();
  if (waiting.refusal) {
    note_refusal(base::Level::warn, *waiting.refusal, {}, waiting.id);
    refuse(waiting.id, *waiting.refusal);
  } else {
    handle(rpc::decode(waiting.text, batches_));
  }
}

void Dispatcher::forget_waiting() {
  waiting_.clear();
  waiting_bytes_ = 0;
}

void Dispatcher::start_batch(std::string_view text) {
  batch_ = std::make_unique<Batch>();
  batch_->text = text;
  const std::string_view copy = batch_->text;
  rpc::for_each_element(copy, [&](std::string_view element) {
    batch_->members.emplace_back(element.data() - copy.data(), element.size());
    return true;
  });
  continue_batch();
}

void Dispatcher::continue_batch() {
  while (!pending_ && batch_->next < batch_->members.size()) {
    const auto [offset, size] = batch_->members[batch_->next++];
    const rpc::Message message =
        rpc::decode(std::string_view(batch_->text).substr(offset, size), rpc::Batches::inside_another);
    if (message.kind == rpc::Message::Kind::notification && message.method == cancel_method) {
      cancel(message);
    } else {
      handle(message);
    }
  }
  if (pending_) return;
  const std::unique_ptr<Batch> done = std::move(batch_);
  if (!done->answers.empty()) output_.add(rpc::encode_batch(done->answers));
}

void Dispatcher::invoke(const rpc::Message& message) {
  const bool wants_answer = message.kind == rpc::Message::Kind::request;
  const std::string_view id = wants_answer ? message.id : std::string_view();
  if (log_.enabled(base::Level::debug)) {
    log_.debug(wants_answer ? "Request" : "Notification", {{"method", message.method}, {"id", id_field(id)}});
  }
  const Method* method = methods_.find(message.method);
  if (method == nullptr) {
    if (!wants_answer && events_.on_notification) return events_.on_notification(message.method, message.params);
    const rpc::Error error = rpc::method_not_found();
    note_refusal(base::Level::warn, error, message.method, id);
    if (wants_answer) refuse(id, error);
    return;
  }
  rpc::Params params(message.params);
  const Request request{.method = message.method, .id = id, .params = params, .connection = connection_};
  in_handler_ = true;
  try {
    if (method->checks_params && !method->params.empty()) params = rpc::Params(method->params, message.params);
    if (method->handler) {
      call_handler(*method, request);
    } else {
      call_late_handler(*method, request);
    }
  } catch (const rpc::Error& error) {
    fail(request, error);
  } catch (const std::exception& fault) {
    log_.error("Handler failed", {{"method", request.method}, {"id", id_field(id)}, {"what", fault.what()}});
    fail(request, rpc::internal_error());
  } catch (...) {
    log_.error("Handler failed", {{"method", request.method}, {"id", id_field(id)}});
    fail(request, rpc::internal_error());
  }
  in_handler_ = false;
}

void Dispatcher::call_handler(const Method& method, const Request& request) {
  const Answer result = method.handler(request);
  if (!request.id.empty()) answer(request.id, result.text());
}

void Dispatcher::call_late_handler(const Method& method, const Request& request) {
  pending_ = std::make_shared<Reply::Slot>();
  pending_->dispatcher = this;
  pending_id_ = request.id;
  pending_method_ = request.method;
  dropped_in_handler_ = false;
  method.late_handler(request, Reply(pending_));
  if (dropped_in_handler_ && pending_) reply_dropped_for_good();
}

// A handler that throws lets go of its Reply too, but what it throws is the better answer.
void Dispatcher::reply_dropped() {
  if (in_handler_) {
    dropped_in_handler_ = true;
  } else {
    reply_dropped_for_good();
  }
}

void Dispatcher::reply_dropped_for_good() {
  log_.error("Handler let go of its reply", {{"method", pending_method_}, {"id", id_field(pending_id_)}});
  const rpc::Error error = rpc::internal_error();
  settle(nullptr, &error);
}

// What a handler refuses; the one that throws instead of using its Reply included.
void Dispatcher::fail(const Request& request, const rpc::Error& error) {
  if (pending_) {
    settle(nullptr, &error);
    return;
  }
  const bool internal = error.code() == rpc::code::internal_error;
  if (!internal) note_refusal(request.id.empty() ? base::Level::error : base::Level::warn, error, request.method, request.id);
  if (!request.id.empty()) refuse(request.id, error);
}

void Dispatcher::settle(const Answer* answer_text, const rpc::Error* error) {
  const std::shared_ptr<Reply::Slot> slot = std::move(pending_);
  slot->dispatcher = nullptr;
  const std::string id = std::move(pending_id_);
  if (error != nullptr && error->code() != rpc::code::internal_error) {
    note_refusal(id.empty() ? base::Level::error : base::Level::warn, *error, pending_method_, id);
  }
  if (!id.empty() && error != nullptr) refuse(id, *error);
  if (!id.empty() && error == nullptr) answer(id, answer_text->text());
  if (!in_handler_) events_.on_settled();
}

void Dispatcher::cancel(const rpc::Message& message) {
  const std::string_view id = member(message.params, "id");
  if (id.empty()) return;
  if (pending_ && pending_id_ == id) {
    const std::shared_ptr<Reply::Slot> slot = pending_;
    const rpc::Error error = rpc::request_cancelled();
    const std::function<void()> tell = std::move(slot->on_abandoned);
    settle(nullptr, &error);
    if (tell) tell();
    return;
  }
  for (Waiting& waiting : waiting_) {
    if (waiting.id != id || waiting.refusal) continue;
    waiting_bytes_ -= waiting.text.size();
    waiting.text.clear();
    waiting.refusal = rpc::request_cancelled();
    return;
  }
}

void Dispatcher::abandon() {
  forget_waiting();
  batch_.reset();
  const std::shared_ptr<Reply::Slot> slot = std::move(pending_);
  if (!slot) return;
  slot->dispatcher = nullptr;
  if (slot->on_abandoned) std::exchange(slot->on_abandoned, {})();
}

void Dispatcher::answer(std::string_view id, std::string_view result) { emit(rpc::encode_result(id, result)); }

void Dispatcher::refuse(std::string_view id, const rpc::Error& error) {
  const std::string text = rpc::encode(error);
  emit(rpc::encode_error(id, text));
}

void Dispatcher::note_refusal(base::Level level, const rpc::Error& error, std::string_view method,
                              std::string_view id) {
  if (!log_.enabled(level)) return;
  const std::string_view reason = error.data().empty() ? std::string_view() : member(error.data(), "reason");
  if (method.empty()) {
    log_.write(level, error.message(), {{"reason", base::JsonText{reason}}, {"id", id_field(id)}});
  } else {
    log_.write(level, error.message(), {{"method", method}, {"id", id_field(id)}});
  }
}

void Dispatcher::emit(const rpc::Pieces& pieces) {
  if (!batch_) return output_.add(pieces);
  if (!batch_->answers.empty()) batch_->answers += ',';
  pieces.append_to(batch_->answers);
}

}  // namespace duet::peer
