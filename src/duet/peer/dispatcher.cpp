#include "duet/peer/dispatcher.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "duet/base/activity.h"
#include "duet/framing/frame.h"
#include "duet/peer/conversation.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::peer {
namespace {

constexpr std::size_t most_at_once = 64 * 1024;  // also where a protocol knows no others: the loop has more to do

base::JsonText id_field(std::string_view id) { return base::JsonText{id}; }

std::string_view member(std::string_view object, std::string_view name) {
  std::string_view found;
  if (object.starts_with('{')) {
    rpc::for_each_member(object, [&](std::string_view each, std::string_view value) {
      if (each == name) found = value;
      return true;
    });
  }
  return found;
}

// What most would write for another spelling of an id, `"A"` for `"\u0041"` and `1` for `1.0`; empty: it is that, or
// it stands for no character or integer of its own.
std::string usual_spelling(std::string_view id) {
  constexpr std::string_view no_character = "\xEF\xBF\xBD";
  constexpr double most_exact = 9007199254740992;
  const bool is_text = id.starts_with('"');
  const bool is_number = id.starts_with('-') || (id >= "0" && id < ":");
  if (!(is_text && id.find('\\') != id.npos) && !(is_number && id.find_first_of(".eE") != id.npos)) return {};
  const boost::json::value read = rpc::parse_value(id);
  std::string text;
  if (is_text) text = rpc::to_text(read);
  if (text.find(no_character) != text.npos) return {};
  const double* const number = read.if_double();
  const bool is_integer = number != nullptr && std::abs(*number) <= most_exact && std::trunc(*number) == *number;
  return is_integer ? std::to_string(static_cast<std::int64_t>(*number)) : text;
}

// With its last member a client must be able to read it. The clients that take answers without order, MCP's, read
// lines of 1 MiB.
std::size_t most_answers_of_batch(const Protocol& protocol) {
  constexpr std::size_t without_order = 512U * 1024;
  return std::min(protocol.max_waiting, protocol.in_order ? framing::max_answer / 2 : without_order);
}

}  // namespace

std::size_t Dispatcher::Waiting::size() const {
  const std::size_t refused = refusal ? refusal->message().size() + refusal->data().size() : 0;
  return sizeof(Waiting) + text.size() + id.size() + refused;
}

void Dispatcher::Batch::add(const rpc::EncodedMessage& answer) {
  if (!gathered.empty()) gathered += ',';
  answer.append_to(gathered);
}

std::string_view Dispatcher::Batch::member(std::size_t index) const {
  return std::string_view(text).substr(members[index].first, members[index].second);
}

Dispatcher::Dispatcher(Conversation& conversation, const Methods& methods, base::Log& log, const Protocol& protocol,
                       Output& output, Events events)
    : conversation_(conversation),
      methods_(methods),
      log_(log),
      batches_(protocol.batches ? rpc::Batches::allowed : rpc::Batches::refused),
      max_batch_(protocol.max_batch),
      in_order_(protocol.in_order),
      strict_ids_(protocol.strict_ids),
      cancels_(protocol.cancels),
      tells_faults_(protocol.faults == Protocol::Faults::told),
      output_(output),
      most_output_(protocol.max_waiting),
      most_batch_answers_(most_answers_of_batch(protocol)),
      portion_(std::min(protocol.read_at_once, most_at_once)),
      events_(std::move(events)),
      hand_over_(events_.hand_over ? std::make_shared<const HandOver>(std::move(events_.hand_over)) : nullptr),
      answers_(output) {}

Dispatcher::~Dispatcher() { abandon(); }

bool Dispatcher::handle(std::string_view text, const rpc::Error* fault) { return look_at(text, {.fault = fault}); }

// Urgent messages act at once, whatever else has to wait.
bool Dispatcher::is_urgent(const rpc::Message& message) const {
  using Kind = rpc::Message::Kind;
  if (message.kind == Kind::request) return false;
  return message.kind == Kind::response || (message.kind == Kind::notification && message.method == cancels_.method);
}

bool Dispatcher::look_at(std::string_view text, const Source& source) {
  rpc::Message message = rpc::decode(text, source.batch == nullptr ? batches_ : rpc::Batches::inside_another);
  if (!message.is_json) return false;
  if (strict_ids_) rpc::refuse_loose_id(message);
  const bool begins = source.look == Look::turn || (source.look == Look::arrival && is_free());
  const bool is_refused = source.fault != nullptr && message.kind != rpc::Message::Kind::response;
  if (is_urgent(message) && !is_refused) {
    if (source.batch == nullptr || !source.batch->urgent_done) act(message, source);
  } else if (begins) {
    begin(message, source);
  } else if (source.look == Look::arrival) {
    put_off(message, text, source.fault);
  }
  return true;
}

void Dispatcher::begin(const rpc::Message& message, const Source& source) {
  using Kind = rpc::Message::Kind;
  const bool is_request = message.kind == Kind::request;
  if (source.fault != nullptr) return refuse(message.id, *source.fault);
  if (message.kind == Kind::batch) return start_batch(message.batch, source);
  if (message.kind == Kind::invalid) return refuse_improper(message);
  if (was_cancelled(message, source.number)) {
    return cancels_.answered ? refuse_and_note(message.id, rpc::request_cancelled()) : void();
  }
  if (is_request && source.batch != nullptr && source.batch->answer_bytes() >= most_batch_answers_) {
    return refuse_and_note(message.id, rpc::invalid_request("answers-too-large"));
  }
  invoke(message);
}

// A request gets an answer even where faults are told, or its sender might wait for ever.
void Dispatcher::refuse_improper(const rpc::Message& message) {
  const bool looks_like_request = message.id_is_known && !message.method.empty();
  if (tells_faults_) events_.on_improper(message);
  if (!tells_faults_ || looks_like_request) refuse_and_note(message.id, *message.refusal);
}

void Dispatcher::act(const rpc::Message& urgent, const Source& source) {
  if (urgent.kind == rpc::Message::Kind::response) {
    events_.on_response(urgent);
  } else {
    cancel(urgent, source.batch == nullptr ? arrived_ : source.number);
  }
}

void Dispatcher::refuse_unreadable(const rpc::Error& error) {
  if (is_free()) return refuse("null", error);
  put_off({.text = {}, .id = "null", .refusal = error, .number = 0});
}

void Dispatcher::put_off(const rpc::Message& message, std::string_view text, const rpc::Error* fault) {
  if (fault != nullptr) return put_off({.text = {}, .id = std::string(message.id), .refusal = *fault, .number = 0});
  put_off({.text = std::string(text), .id = {}, .refusal = {}, .number = 0});
  if (message.kind == rpc::Message::Kind::batch) {
    Batch none;
    --arrived_;
    rpc::for_each_element(message.batch, [&](std::string_view element) {
      look_at(element, {.look = Look::early, .number = ++arrived_, .batch = &none});
      return true;
    });
  } else if (message.kind != rpc::Message::Kind::invalid && events_.on_waiting) {
    events_.on_waiting(message.method);
  }
}

void Dispatcher::put_off(Waiting waiting) {
  waiting.number = ++arrived_;
  waiting_bytes_ += waiting.size();
  waiting_.push_back(std::move(waiting));
}

void Dispatcher::go_on() {
  portion_left_ = portion_;
  while (portion_left_ > 0 && can_go_on()) {
    if (conversation_.is_asked_to_stop()) forget_waiting();
    if (batch_) {
      continue_batch();
    } else if (!waiting_.empty()) {
      begin_first_waiting();
    }
  }
  if (!has_work()) forget_cancels();
}

void Dispatcher::begin_first_waiting() {
  const Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= waiting.size();
  spend(1 + waiting.text.size() + waiting.id.size());
  if (waiting.refusal) return refuse(waiting.id, *waiting.refusal);
  look_at(waiting.text, {.look = Look::turn, .number = waiting.number});
}

// Of a batch that runs the members that have begun are answered.
void Dispatcher::forget_waiting() {
  waiting_.clear();
  waiting_bytes_ = cancelled_bytes_;
  if (batch_) batch_->members.resize(batch_->next);
}

void Dispatcher::start_batch(std::string_view text, const Source& source) {
  batch_ = std::make_shared<Batch>();
  batch_->text = text;
  batch_->number = source.look == Look::arrival ? arrived_ + 1 : source.number;
  batch_->urgent_done = source.look == Look::turn;  // they acted while it waited
  const std::string_view copy = batch_->text;
  rpc::for_each_element(copy, [&](std::string_view element) {
    batch_->members.emplace_back(element.data() - copy.data(), element.size());
    return true;
  });
  if (source.look == Look::arrival) {
    arrived_ += batch_->members.size();
    portion_left_ = portion_;
  }
  if (batch_->members.size() > max_batch_) {
    batch_.reset();
    return refuse_and_note("null", rpc::invalid_request("batch-too-large"));
  }
  continue_batch();
}

void Dispatcher::continue_batch() {
  const std::shared_ptr<Batch> batch = batch_;  // a handler may close the connection, and with it forget the batch
  while (batch_ && !holding_ && portion_left_ > 0 && !batch->has_begun_all()) {
    const std::size_t index = batch->next++;
    spend(1 + batch->members[index].second);
    look_at(batch->member(index), {.look = Look::turn, .number = batch->number_of(index), .batch = batch.get()});
    if (holding_ || portion_left_ == 0) act_on_urgent(*batch);
    if (conversation_.is_asked_to_stop()) forget_waiting();
  }
  if (!batch_ || holding_ || !batch->has_begun_all()) return;
  if (in_order_ && !batch->answers.empty()) return;
  batch_.reset();
  if (!has_work()) forget_cancels();
  batch->answers.empty() ? end_batch(*batch) : detached_.push_back(batch);
}

void Dispatcher::end_batch(const Batch& batch) {
  if (!batch.gathered.empty()) answers_.add(rpc::encode_batch(batch.gathered));
}

// Without order a batch waits for its answers beside others.
void Dispatcher::end_detached(const AnswerQueue* queue) {
  const auto found = std::ranges::find_if(detached_, [&](const auto& batch) { return &batch->answers == queue; });
  if (found == detached_.end() || !queue->empty()) return;
  end_batch(**found);
  detached_.erase(found);
}

// The batch has to wait, for one of its members or for others; what is urgent in the rest of it does not.
void Dispatcher::act_on_urgent(Batch& batch) {
  if (batch.urgent_done) return;
  for (std::size_t i = batch.next; i < batch.members.size(); ++i) {
    look_at(batch.member(i), {.look = Look::early, .number = batch.number_of(i), .batch = &batch});
  }
  batch.urgent_done = true;
}

void Dispatcher::invoke(const rpc::Message& message) {
  const bool wants_answer = message.kind == rpc::Message::Kind::request;
  const std::string_view id = wants_answer ? message.id : std::string_view();
  if (log_.enabled(base::Level::debug)) {
    log_.debug(wants_answer ? "Request" : "Notification", {{"method", message.method}, {"id", id_field(id)}});
  }
  const Method* method = methods_.find(message.method);
  if (method == nullptr && wants_answer) method = methods_.table().fallback();
  if (method == nullptr && (wants_answer || !events_.on_notification)) {
    log_.warn(rpc::method_not_found().message(), {{"method", message.method}, {"id", id_field(id)}});
    if (wants_answer) refuse(id, rpc::method_not_found());
    return;
  }
  const rpc::Json params = rpc::Json::view(message.params);
  const Request request{.method = message.method, .id = id, .params = params, .conversation = conversation_};
  in_handler_ = true;
  try {
    call(method, request);
  } catch (const rpc::Error& error) {
    fail(request, error, false);
  } catch (const std::exception& fault) {
    log_.error("Handler failed", {{"method", request.method}, {"id", id_field(id)}, {"what", fault.what()}});
    fail(request, rpc::internal_error(), true);
  } catch (...) {
    log_.error("Handler failed", {{"method", request.method}, {"id", id_field(id)}});
    fail(request, rpc::internal_error(), true);
  }
  in_handler_ = false;
  in_late_handler_.reset();
}

void Dispatcher::refuse_if_not_permitted(const Method& method) {
  const std::optional<rpc::Error> refusal = methods_.table().refusal(method, conversation_.peer());
  if (refusal) throw rpc::Error(*refusal);
}

void Dispatcher::call(const Method* method, const Request& request) {
  if (method == nullptr) return events_.on_notification(request.method, request.params.text());
  if (conversation_.peer().admission) refuse_if_not_permitted(*method);
  base::activity.method = method->name;
  if (!method->handler) return call_late_handler(*method, request);
  const rpc::Json result = method->handler(*method, request);
  if (!request.id.empty()) answers().add(rpc::encode_result(request.id, result.text()));
}

void Dispatcher::call_late_handler(const Method& method, const Request& request) {
  const auto open = std::make_shared<OpenRequest>();
  open->dispatcher.store(this, std::memory_order_relaxed);
  open->thread = std::this_thread::get_id();
  open->hand_over = hand_over_;
  open->id = request.id;
  open->usual_id = usual_spelling(open->id);
  open->method = request.method;
  open->entry = open_.emplace(open->key(), open);
  if (in_order_ ? method.pipelined : batch_ != nullptr) {
    open->queue = &answers();
    open->place = &open->queue->reserve(open->size());
  } else if (in_order_) {
    holding_ = open;
  }
  open_bytes_ += open->size();
  in_late_handler_ = open;
  dropped_in_handler_ = false;
  method.late_handler(method, request, AnyReply(open));
  if (dropped_in_handler_ && open->is_open()) refuse_dropped(open);
}

// A handler that throws lets go of its Reply too, but what it throws is the better answer.
void Dispatcher::reply_dropped(const RequestPointer& request) {
  if (in_late_handler_ == request) {
    dropped_in_handler_ = true;
  } else {
    refuse_dropped(request);
  }
}

void Dispatcher::refuse_dropped(const RequestPointer& request) {
  log_.error("Handler let go of its reply", {{"method", request->method}, {"id", id_field(request->id)}});
  finish(request, rpc::internal_error(), true);
}

// What a handler throws. One that had a Reply may have used it before.
void Dispatcher::fail(const Request& request, const rpc::Error& error, bool is_logged) {
  if (in_late_handler_ && in_late_handler_->is_open()) return finish(in_late_handler_, error, is_logged);
  if (!is_logged) note_refusal(error, request.method, request.id);
  if (!request.id.empty() && !in_late_handler_) refuse(request.id, error);
}

void Dispatcher::finish(const RequestPointer& request, const rpc::Json& answer) {
  const rpc::EncodedMessage message = rpc::encode_result(request->id, answer.text());
  close(request, &message);
}

void Dispatcher::leave_unanswered(const RequestPointer& request) { close(request, nullptr); }

void Dispatcher::finish(const RequestPointer& request, const rpc::Error& error, bool is_logged) {
  if (!is_logged) note_refusal(error, request->method, request->id);
  const std::string text = rpc::encode(error);
  const rpc::EncodedMessage message = rpc::encode_error(request->id, text);
  close(request, &message);
}

void Dispatcher::close(const RequestPointer& closed, const rpc::EncodedMessage* answer) {
  // It may be the one that is forgotten here.
  const RequestPointer request = closed;  // NOLINT(performance-unnecessary-copy-initialization)
  const std::function<void()> not_needed = std::move(request->on_abandoned);  // it may hold the Reply, and so itself
  request->dispatcher.store(nullptr, std::memory_order_release);
  open_.erase(request->entry);
  open_bytes_ -= request->size();
  if (request == holding_) holding_.reset();
  if (!has_work()) forget_cancels();
  const bool is_answered = answer != nullptr && !request->id.empty();
  if (request->queue != nullptr) {
    const Batch* const batch = batch_of(*request);
    const bool is_too_much = batch != nullptr && batch->answer_bytes() >= most_batch_answers_;
    const std::string refusal = is_too_much ? rpc::encode(rpc::invalid_request("answers-too-large")) : std::string();
    std::string text;
    if (is_answered) (is_too_much ? rpc::encode_error(request->id, refusal) : *answer).append_to(text);
    request->queue->fill(*request->place, std::move(text));
    if (!in_order_) end_detached(request->queue);
  } else if (is_answered) {
    (in_order_ ? answers() : answers_).add(*answer);
  }
  if (!in_handler_) events_.on_answered();
}

const Dispatcher::Batch* Dispatcher::batch_of(const OpenRequest& request) const {
  if (batch_ && &batch_->answers == request.queue) return batch_.get();
  const auto found =
      std::ranges::find_if(detached_, [&](const auto& batch) { return &batch->answers == request.queue; });
  return found != detached_.end() ? found->get() : nullptr;
}

// A request that has not begun is refused when its turn comes, so that finding it costs nothing now.
void Dispatcher::cancel(const rpc::Message& message, std::uint64_t number) {
  const std::string_view given = member(message.params, cancels_.member);
  if (given.empty()) return;
  const std::string usual = usual_spelling(given);
  const std::string_view id = usual.empty() ? given : usual;
  if (const auto found = open_.find(id); found != open_.end()) return cancel_open(found->second);
  if (!has_work()) return;
  const bool is_new = cancelled_.insert_or_assign(std::string(id), number).second;
  if (!is_new) return;
  constexpr std::size_t node_bytes = 96;
  cancelled_bytes_ += id.size() + node_bytes;
  waiting_bytes_ += id.size() + node_bytes;
}

void Dispatcher::cancel_open(const RequestPointer& cancelled) {
  const RequestPointer request = cancelled;  // NOLINT(performance-unnecessary-copy-initialization): it is erased
  const std::function<void()> tell = std::move(request->on_abandoned);
  request->was_abandoned = true;
  cancels_.answered ? finish(request, rpc::request_cancelled()) : leave_unanswered(request);
  tell_abandoned(tell, request->method);
}

bool Dispatcher::was_cancelled(const rpc::Message& message, std::uint64_t number) const {
  if (cancelled_.empty() || message.kind != rpc::Message::Kind::request) return false;
  const std::string usual = usual_spelling(message.id);
  const auto found = cancelled_.find(usual.empty() ? message.id : std::string_view(usual));
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
  detached_.clear();
  answers_.clear();
  holding_.reset();
  open_bytes_ = 0;
  const OpenRequest::ById open = std::exchange(open_, {});
  for (const auto& [id, request] : open) {
    request->dispatcher.store(nullptr, std::memory_order_release);
    request->was_abandoned = true;
  }
  for (const auto& [id, request] : open) tell_abandoned(std::exchange(request->on_abandoned, {}), request->method);
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

void Dispatcher::refuse(std::string_view id, const rpc::Error& error) {
  const std::string text = rpc::encode(error);
  const bool has_no_id = strict_ids_ && id == "null";
  answers().add(has_no_id ? rpc::encode_error_without_id(text) : rpc::encode_error(id, text));
}

void Dispatcher::refuse_and_note(std::string_view id, const rpc::Error& error) {
  const std::string_view reason = error.data().empty() ? std::string_view() : member(error.data(), "reason");
  const std::string_view shown = id == "null" ? std::string_view() : id;  // a fault's null is no id
  log_.warn(error.message(), {{"reason", base::JsonText{reason}}, {"id", id_field(shown)}});
  refuse(id, error);
}

// Nobody is told of a notification's failure, so the log has to.
void Dispatcher::note_refusal(const rpc::Error& error, std::string_view method, std::string_view id) {
  const bool grave = id.empty() || error.code() == rpc::code::internal_error;
  // Which param was wrong, and not what it was: that may be a secret.
  const bool names_param = error.code() == rpc::code::invalid_params && !error.data().empty();
  const std::string_view param = names_param ? member(error.data(), "param") : std::string_view();
  log_.write(grave ? base::Level::error : base::Level::warn, error.message(),
             {{"method", method}, {"param", base::JsonText{param}}, {"id", id_field(id)}});
}

}  // namespace duet::peer
