#include "duet/peer/dispatcher.h"

#include <exception>
#include <utility>

#include "duet/base/activity.h"
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

bool is_urgent(const rpc::Message& message) {
  return message.kind == rpc::Message::Kind::response ||
         (message.kind == rpc::Message::Kind::notification && message.method == cancel_method);
}

}  // namespace

std::size_t Dispatcher::Waiting::size() const {
  const std::size_t refused = refusal ? refusal->message().size() + refusal->data().size() : 0;
  return sizeof(Waiting) + text.size() + id.size() + refused;
}

Dispatcher::Dispatcher(Connection& connection, const Methods& methods, base::Log& log, rpc::Batches batches,
                       Output& output, std::size_t most_output, Events events)
    : connection_(connection),
      methods_(methods),
      log_(log),
      batches_(batches),
      output_(output),
      most_output_(most_output),
      most_batch_answers_(most_output),
      events_(std::move(events)),
      late_answers_([this](const std::string& answer) { output_.add(rpc::encoded(answer)); }) {}

Dispatcher::~Dispatcher() { abandon(); }

void Dispatcher::take(const rpc::Message& message, std::string_view text) {
  const bool free = !has_work() && may_answer();
  if (free && message.kind == rpc::Message::Kind::request) return invoke(message);  // the usual case
  if (act_if_urgent(message)) return;
  if (!free) return put_off(message, text);
  if (message.kind == rpc::Message::Kind::batch) return start_batch(message.batch, ++arrived_, false);
  handle(message);
}

void Dispatcher::handle(const rpc::Message& message) {
  if (message.kind == rpc::Message::Kind::invalid) return refuse_and_note(message.id, *message.refusal);
  invoke(message);
}

void Dispatcher::put_off(const rpc::Message& message, std::string_view text) {
  Waiting waiting{.text = {}, .id = {}, .refusal = message.refusal, .number = ++arrived_};
  if (message.refusal) {
    waiting.id = message.id;
  } else {
    waiting.text = text;
  }
  waiting_bytes_ += waiting.size();
  waiting_.push_back(std::move(waiting));
  if (message.kind == rpc::Message::Kind::batch) return act_on_urgent(message.batch);
  if (!message.refusal && events_.on_waiting) events_.on_waiting(message.method);
}

void Dispatcher::go_on() {
  while (!must_wait() && may_answer() && (batch_ || !waiting_.empty())) {
    if (batch_) {
      continue_batch();
    } else {
      handle_first_waiting();
    }
  }
  if (!has_work()) forget_cancels();
}

void Dispatcher::handle_first_waiting() {
  const Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= waiting.size();
  if (waiting.refusal) return refuse_and_note(waiting.id, *waiting.refusal);
  const rpc::Message message = rpc::decode(waiting.text, batches_);
  if (message.kind == rpc::Message::Kind::batch) return start_batch(message.batch, waiting.number, true);
  if (was_cancelled(message, waiting.number)) return refuse_and_note(message.id, rpc::request_cancelled());
  handle(message);
}

// Of a batch that runs the members that have begun are answered.
void Dispatcher::forget_waiting() {
  waiting_.clear();
  waiting_bytes_ = cancelled_bytes_;
  if (batch_) batch_->members.resize(batch_->next);
}

void Dispatcher::start_batch(std::string_view text, std::uint64_t number, bool urgent_done) {
  batch_ = std::make_shared<Batch>();
  batch_->text = text;
  batch_->number = number;
  batch_->urgent_done = urgent_done;
  const std::string_view copy = batch_->text;
  rpc::for_each_element(copy, [&](std::string_view element) {
    batch_->members.emplace_back(element.data() - copy.data(), element.size());
    return true;
  });
  continue_batch();
}

void Dispatcher::continue_batch() {
  const std::shared_ptr<Batch> batch = batch_;  // a handler may close the connection, and with it forget the batch
  while (batch_ && !pending_ && batch->next < batch->members.size()) {
    handle_member(*batch, take_member(*batch));
    if (pending_) act_on_urgent_rest(*batch);
  }
  if (!batch_ || pending_ || !batch->late_answers.empty()) return;
  batch_.reset();
  if (!has_work()) forget_cancels();
  if (!batch->answers.empty()) emit(rpc::encode_batch(batch->answers));
}

rpc::Message Dispatcher::take_member(Batch& batch) const {
  const auto [offset, size] = batch.members[batch.next++];
  return rpc::decode(std::string_view(batch.text).substr(offset, size), rpc::Batches::inside_another);
}

void Dispatcher::handle_member(Batch& batch, const rpc::Message& message) {
  if (is_urgent(message)) {
    if (!batch.urgent_done) act_if_urgent(message);
  } else if (was_cancelled(message, batch.number)) {
    refuse_and_note(message.id, rpc::request_cancelled());
  } else if (message.kind == rpc::Message::Kind::request && batch.answers.size() >= most_batch_answers_) {
    refuse_and_note(message.id, rpc::invalid_request("batch-too-large"));
  } else {
    handle(message);
  }
}

void Dispatcher::act_on_urgent(std::string_view array) {
  rpc::for_each_element(array, [this](std::string_view element) {
    act_if_urgent(rpc::decode(element, rpc::Batches::inside_another));
    return true;
  });
}

// The batch has to wait for one of its members; what is urgent behind that one does not.
void Dispatcher::act_on_urgent_rest(Batch& batch) {
  if (std::exchange(batch.urgent_done, true)) return;
  for (std::size_t i = batch.next; i < batch.members.size(); ++i) {
    const auto [offset, size] = batch.members[i];
    act_if_urgent(rpc::decode(std::string_view(batch.text).substr(offset, size), rpc::Batches::inside_another));
  }
}

bool Dispatcher::act_if_urgent(const rpc::Message& message) {
  if (!is_urgent(message)) return false;
  if (message.kind == rpc::Message::Kind::response) {
    events_.on_response(message);
  } else {
    cancel(message);
  }
  return true;
}

void Dispatcher::invoke(const rpc::Message& message) {
  const bool wants_answer = message.kind == rpc::Message::Kind::request;
  const std::string_view id = wants_answer ? message.id : std::string_view();
  if (log_.enabled(base::Level::debug)) {
    log_.debug(wants_answer ? "Request" : "Notification", {{"method", message.method}, {"id", id_field(id)}});
  }
  const Method* method = methods_.find(message.method);
  if (method == nullptr && (wants_answer || !events_.on_notification)) {
    const rpc::Error error = rpc::method_not_found();
    note_refusal(base::Level::warn, error, message.method, id);
    if (wants_answer) refuse(id, error);
    return;
  }
  const rpc::Json params = rpc::Json::view(message.params);
  const Request request{.method = message.method, .id = id, .params = params, .connection = connection_};
  in_handler_ = true;
  try {
    call(method, request);
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
  in_late_handler_.reset();
}

void Dispatcher::call(const Method* method, const Request& request) {
  if (method == nullptr) return events_.on_notification(request.method, request.params.text());
  base::activity.method = method->name;
  if (!method->handler) return call_late_handler(*method, request);
  const rpc::Json result = method->handler(*method, request);
  if (!request.id.empty()) answer(request.id, result.text());
}

void Dispatcher::call_late_handler(const Method& method, const Request& request) {
  const auto slot = std::make_shared<AnyReply::Slot>();
  slot->dispatcher = this;
  slot->id = request.id;
  slot->method = request.method;
  if (method.pipelined) {
    slot->queue = &late_answers();
    slot->place = &slot->queue->reserve();
    unanswered_.insert(slot);
  } else {
    pending_ = slot;
  }
  in_late_handler_ = slot;
  dropped_in_handler_ = false;
  method.late_handler(method, request, AnyReply(slot));
  if (dropped_in_handler_ && slot->dispatcher != nullptr) reply_dropped_for_good(slot);
}

// A handler that throws lets go of its Reply too, but what it throws is the better answer.
void Dispatcher::reply_dropped(const SlotPointer& slot) {
  if (in_late_handler_ == slot) {
    dropped_in_handler_ = true;
  } else {
    reply_dropped_for_good(slot);
  }
}

void Dispatcher::reply_dropped_for_good(const SlotPointer& slot) {
  log_.error("Handler let go of its reply", {{"method", slot->method}, {"id", id_field(slot->id)}});
  const rpc::Error error = rpc::internal_error();
  settle(slot, nullptr, &error);
}

// What a handler refuses; the one that throws instead of using its Reply, or after that, included.
void Dispatcher::fail(const Request& request, const rpc::Error& error) {
  if (in_late_handler_ && in_late_handler_->dispatcher != nullptr) return settle(in_late_handler_, nullptr, &error);
  const bool internal = error.code() == rpc::code::internal_error;
  if (!internal)
    note_refusal(request.id.empty() ? base::Level::error : base::Level::warn, error, request.method, request.id);
  if (!request.id.empty() && !in_late_handler_) refuse(request.id, error);
}

void Dispatcher::settle(const SlotPointer& settled, const rpc::Json* answer_text, const rpc::Error* error) {
  // It may be the one that is forgotten here.
  const SlotPointer slot = settled;  // NOLINT(performance-unnecessary-copy-initialization)
  if (slot == pending_) pending_.reset();
  unanswered_.erase(slot);
  if (!has_work()) forget_cancels();
  slot->dispatcher = nullptr;
  const std::function<void()> not_needed = std::move(slot->on_abandoned);  // it may hold the Reply, and so itself
  if (error != nullptr && error->code() != rpc::code::internal_error) {
    note_refusal(slot->id.empty() ? base::Level::error : base::Level::warn, *error, slot->method, slot->id);
  }
  give_out(*slot, answer_text, error);
  if (!in_handler_) events_.on_settled();
}

void Dispatcher::give_out(const AnyReply::Slot& slot, const rpc::Json* answer_text, const rpc::Error* error) {
  if (slot.queue == nullptr && slot.id.empty()) return;
  if (slot.id.empty()) return slot.queue->fill(*slot.place, {});
  const std::string error_text = error == nullptr ? std::string() : rpc::encode(*error);
  const rpc::Pieces pieces =
      error == nullptr ? rpc::encode_result(slot.id, answer_text->text()) : rpc::encode_error(slot.id, error_text);
  if (slot.queue == nullptr) return emit(pieces);
  std::string text;
  pieces.append_to(text);
  slot.queue->fill(*slot.place, std::move(text));
}

// A request that has not begun is refused when its turn comes, so that finding it costs nothing now.
void Dispatcher::cancel(const rpc::Message& message) {
  const std::string_view id = member(message.params, "id");
  if (id.empty()) return;
  if (pending_ && pending_->id == id) return cancel_running();
  if (!has_work()) return;
  const bool is_new = cancelled_.insert_or_assign(std::string(id), arrived_).second;
  if (!is_new) return;
  constexpr std::size_t node_bytes = 96;
  cancelled_bytes_ += id.size() + node_bytes;
  waiting_bytes_ += id.size() + node_bytes;
}

void Dispatcher::cancel_running() {
  const SlotPointer slot = pending_;
  const std::function<void()> tell = std::move(slot->on_abandoned);
  const rpc::Error error = rpc::request_cancelled();
  settle(slot, nullptr, &error);
  tell_abandoned(tell, slot->method);
}

bool Dispatcher::was_cancelled(const rpc::Message& message, std::uint64_t number) const {
  if (cancelled_.empty() || message.kind != rpc::Message::Kind::request) return false;
  const auto found = cancelled_.find(message.id);
  return found != cancelled_.end() && number <= found->second;
}

void Dispatcher::forget_cancels() {
  cancelled_.clear();
  waiting_bytes_ -= std::exchange(cancelled_bytes_, 0);
}

void Dispatcher::abandon() {
  waiting_.clear();
  forget_cancels();
  waiting_bytes_ = 0;
  batch_.reset();
  late_answers_.clear();
  std::unordered_set<SlotPointer> slots = std::exchange(unanswered_, {});
  if (pending_) slots.insert(std::move(pending_));
  for (const SlotPointer& slot : slots) slot->dispatcher = nullptr;
  for (const SlotPointer& slot : slots) tell_abandoned(std::exchange(slot->on_abandoned, {}), slot->method);
}

void Dispatcher::tell_abandoned(const std::function<void()>& callback, std::string_view method) {
  if (!callback) return;
  try {
    callback();
  } catch (const std::exception& fault) {
    log_.error("Handler failed", {{"method", method}, {"what", fault.what()}});
  } catch (...) {
    log_.error("Handler failed", {{"method", method}});
  }
}

void Dispatcher::answer(std::string_view id, std::string_view result) { emit(rpc::encode_result(id, result)); }

void Dispatcher::refuse(std::string_view id, const rpc::Error& error) {
  const std::string text = rpc::encode(error);
  emit(rpc::encode_error(id, text));
}

void Dispatcher::refuse_and_note(std::string_view id, const rpc::Error& error) {
  note_refusal(base::Level::warn, error, {}, id == "null" ? std::string_view() : id);  // a fault's null is no id
  refuse(id, error);
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
  if (!late_answers().empty()) return late_answers().add(pieces);
  if (batch_) return batch_->append(pieces);
  output_.add(pieces);
}

void Dispatcher::Batch::append(const rpc::Pieces& answer) {
  if (!answers.empty()) answers += ',';
  answer.append_to(answers);
}

}  // namespace duet::peer
