#include "duet/peer/conversation.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <type_traits>

#include "duet/base/log_sink.h"
#include "duet/framing/block_pool.h"
#include "duet/framing/frame.h"
#include "duet/peer/announcement.h"
#include "duet/peer/calls.h"
#include "duet/peer/dispatcher.h"
#include "duet/peer/lost_text.h"
#include "duet/peer/output.h"
#include "duet/peer/websocket_link.h"
#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

using framing::Fault;

constexpr std::uint64_t most_noise = 1U << 20U;

base::Log& no_log() {
  static base::Log log(nullptr, base::Level::error);
  return log;
}

rpc::Error error_of(Fault fault) {
  const bool unparsable = fault == Fault::malformed_header || fault == Fault::length_mismatch;
  return unparsable ? rpc::parse_error(framing::reason_of(fault)) : rpc::invalid_request(framing::reason_of(fault));
}

// Of a fault that ends a WebSocket.
std::optional<std::uint16_t> close_code_of(Fault fault) {
  if (fault == Fault::protocol_error) return 1002;
  if (fault == Fault::binary_message) return 1003;
  if (fault == Fault::not_utf8) return 1007;
  return std::nullopt;
}

// What the owner throws must not leave a message half handled.
template <typename... Args>
void tell(base::Log& log, const std::function<void(Args...)>& callback, std::type_identity_t<Args>... args) {
  if (!callback) return;
  try {
    callback(args...);
  } catch (const std::exception& fault) {
    log.error("Callback failed", {{"what", fault.what()}});
  } catch (...) {
    log.error("Callback failed");
  }
}

// A bound of nothing would let nothing happen.
Protocol with_usable_bounds(Protocol protocol) {
  protocol.max_waiting = std::max<std::size_t>(protocol.max_waiting, 1);
  protocol.read_at_once = std::max<std::size_t>(protocol.read_at_once, 1);
  return protocol;
}

}  // namespace

Conversation::Conversation(const Protocol& protocol, const Methods& methods, ConversationEvents events)
    : Conversation(protocol, methods, std::move(events), no_log()) {}

Conversation::Conversation(const Protocol& protocol, const Methods& methods, ConversationEvents events, base::Log& log,
                           const Peer& peer, std::shared_ptr<framing::BlockPool> pool)
    : protocol_(with_usable_bounds(protocol)),
      pool_(pool ? std::move(pool) : std::make_shared<framing::BlockPool>()),
      log_(log),
      events_(std::move(events)),
      peer_(peer),
      decoder_(protocol_.make_decoder(*pool_)),
      encoder_(protocol_.make_encoder()),
      output_(std::make_unique<Output>(*encoder_, *pool_)),
      calls_(std::make_unique<Calls>(log)),
      most_waiting_(protocol_.max_waiting) {
  const bool is_websocket = protocol_.framing == Protocol::Framing::websocket;
  if (is_websocket) link_ = std::make_unique<WebSocketLink>(protocol_, *output_);
  if (protocol_.faults == Protocol::Faults::told && !is_websocket) lost_text_ = std::make_unique<LostText>();
  dispatcher_ = std::make_unique<Dispatcher>(
      *this, methods, log, protocol_, *output_,
      Dispatcher::Events{.on_waiting = [this](std::string_view method) { tell(log_, events_.on_waiting, method); },
                         .on_answered = [this] { wake(); },
                         .on_response = [this](const rpc::Message& message) { handle_response(message); },
                         .on_improper =
                             [this](const rpc::Message& message) {
                               const bool may_be_answer = message.id_is_known && message.method.empty();
                               lose("malformed-envelope", may_be_answer ? message.id : "");
                             },
                         .on_notification = events_.on_notification,
                         .hand_over = std::move(events_.hand_over)});
}

Conversation::~Conversation() {
  events_ = {};
  is_going_ = true;
  close();
  resume();  // failures of calls made after it was closed
}

void Conversation::receive(std::string_view bytes, base::TimePoint now) {
  if (is_closed()) return;
  if (lost_text_) lost_text_->begin_chunk(bytes);
  decoder_->feed(bytes);
  handle_frames(now);
}

void Conversation::receive_in_place(std::span<char> bytes, base::TimePoint now) {
  if (is_closed()) return;
  if (lost_text_) lost_text_->begin_chunk({bytes.data(), bytes.size()});
  decoder_->feed_in_place(bytes);
  handle_frames(now);
}

// Where faults are told, the bytes must outlive their way through the decoder.
std::span<char> Conversation::room() { return lost_text_ ? std::span<char>() : decoder_->room(); }

void Conversation::receive_in_room(std::size_t count, base::TimePoint now) {
  if (is_closed()) return;
  decoder_->commit(count);
  handle_frames(now, count > protocol_.read_at_once);
}

// Much can come only behind a partial message, which is not copied once it is whole; what follows it waits, to be
// handled in portions.
void Conversation::handle_frames(base::TimePoint now, bool is_much) {
  heard_lately_ = true;
  if (!calls_->empty()) calls_->start_clocks(now);
  while (const std::optional<framing::Frame> frame = decoder_->next()) {
    if (is_asked_to_stop() && phase_ == Phase::open) stop();
    if (lost_text_) {
      handle_and_tell(*frame);
    } else if (phase_ == Phase::open) {
      handle(*frame);
    } else if (link_ && !frame->body && !frame->fault) {
      handle_control();
    }
    if (phase_ == Phase::closed) return output_->clear();  // what a handler answered that closed it
    if (is_much) dispatcher_->limit_output(0);
  }
  if (is_much) dispatcher_->limit_output(most_waiting_);
  if (link_) end_link_read(now);
  if (lost_text_) {
    heard_at_ = now;
    lost_text_->end_chunk();
    if (lost_text_->start().size() == LostText::most_kept) tell_of_oversize();
    tell_of_noise();
  }
  if (protocol_.frame_timeout && now != base::TimePoint()) watch_partial_message(now);
}

void Conversation::handle_and_tell(const framing::Frame& frame) {
  lost_text_->begin_message(decoder_->held().size() - looked_at(frame));
  end_skipped_message();
  const bool is_skipped = !frame.body && frame.fault == Fault::oversize;
  if (phase_ == Phase::open) handle(frame);
  if (!oversize_is_untold_) lost_text_->end_message(decoder_->held());
  follows_skipped_ = is_skipped;
}

// Where the message behind it begins is not known, so that nothing can be said of its text.
void Conversation::end_skipped_message() {
  if (!std::exchange(follows_skipped_, false)) return;
  tell_of_oversize();
  lost_text_->end_message(decoder_->held());
}

// How many of the bytes that the decoder holds belong to this frame. A broken header is kept, since another may begin
// inside it.
std::size_t Conversation::looked_at(const framing::Frame& frame) const {
  if (frame.body) return frame.body->size();
  const bool is_kept = *frame.fault == Fault::malformed_header || *frame.fault == Fault::header_too_large;
  return is_kept ? std::min<std::size_t>(decoder_->fault_extent().bytes, decoder_->held().size()) : 0;
}

void Conversation::handle(const framing::Frame& frame) {
  if (!frame.body) return frame.fault ? handle_fault(*frame.fault) : handle_control();
  const bool is_refused = frame.fault && !lost_text_;
  body_ = frame.body;
  const bool is_json = is_refused ? refuse(frame) : dispatcher_->handle(*frame.body);
  messages_ += is_json ? 1 : 0;
  if (!is_json) handle_unreadable(frame);
  body_.reset();
}

bool Conversation::refuse(const framing::Frame& frame) {
  const rpc::Error error = error_of(*frame.fault);
  const bool is_json = dispatcher_->handle(*frame.body, &error);
  if (is_json) log_.warn(error.message(), {{"reason", framing::reason_of(*frame.fault)}});
  return is_json;
}

// Its length may have been wrong, too.
void Conversation::handle_unreadable(const framing::Frame& frame) {
  const std::size_t bytes = frame.body->size();
  const std::string start(lost_text_ ? frame.body->substr(0, LostText::most_kept) : std::string_view());
  body_ = start;
  const std::optional<Fault> wrong_length = decoder_->reject();
  if (lost_text_ && wrong_length) {  // it ends where another one begins
    lost_text_->begin_message(decoder_->held().size());
    body_ = body_->substr(0, body_->find("Content-Length:"));
  }
  if (frame.is_guess) return;
  if (link_ && wrong_length) return handle_fault(*wrong_length);
  const std::optional<Fault> fault = frame.fault ? frame.fault : wrong_length;
  const std::string_view reason = fault ? framing::reason_of(*fault) : "invalid-json";
  if (lost_text_) return lose(reason, {});
  const rpc::Error error = fault ? error_of(*fault) : rpc::parse_error(reason);
  log_.warn(error.message(), {{"reason", reason}, {"bytes", bytes}});
  dispatcher_->refuse_unreadable(error);
}

void Conversation::handle_fault(Fault fault) {
  const std::string_view reason = framing::reason_of(fault);
  if (const std::optional<std::uint16_t> code = close_code_of(fault)) {
    log_.warn("WebSocket failed", {{"reason", reason}});
    return close_with(*code, {});
  }
  oversize_is_untold_ = lost_text_ && fault == Fault::oversize && !lost_text_->start().empty();
  if (oversize_is_untold_) return;
  if (lost_text_) return lose(reason, {});
  const rpc::Error error = error_of(fault);
  const framing::Extent extent = decoder_->fault_extent();
  if (extent.announced) {
    log_.warn(error.message(), {{"reason", reason}, {"bytes", extent.bytes}, {"expected", *extent.announced}});
  } else {
    log_.warn(error.message(), {{"reason", reason}, {"bytes", extent.bytes}});
  }
  dispatcher_->refuse_unreadable(error);
}

void Conversation::handle_response(const rpc::Message& message) {
  const CallId call = read_call_id(message.id);
  const bool is_late = !calls_->contains(call);
  if (!calls_->handle_response(message)) {
    log_.warn("Stray response", {{"id", base::JsonText{message.id_is_known ? message.id : ""}}});
  } else if (is_late) {
    tell(log_, events_.on_late_answer, call);
  }
}

// Its size is known before its id, which stands at the start of what is skipped.
void Conversation::tell_of_oversize() {
  if (!std::exchange(oversize_is_untold_, false)) return;
  lose(framing::reason_of(Fault::oversize), {});
  lost_text_->end_message(decoder_->held());
}

// Tells of it, and fails the call that it answered, as far as that is certain: its id can be seen, or only one call
// waits for an answer.
void Conversation::lose(std::string_view reason, std::string_view id) {
  if (!lost_text_) {  // of a WebSocket no text is kept
    tell(log_, events_.on_lost, LostMessage{.reason = reason, .text = {}, .is_printed = false});
    return id.empty() ? void() : lose_answer(id);
  }
  const std::string text = body_ ? std::string(body_->substr(0, LostText::most_kept)) : lost_text_->known();
  const std::string start = body_ ? text : lost_text_->start();
  const bool is_printed = reason == framing::reason_of(Fault::malformed_header);
  const std::string_view answer = start_of_answer(start, is_printed);
  tell(log_, events_.on_lost, LostMessage{.reason = reason, .text = text, .is_printed = is_printed});
  if (!id.empty() || !answer.empty()) lose_answer(id.empty() ? visible_id(answer) : id);
}

void Conversation::lose_answer(std::string_view id) {
  const std::optional<CallId> call = calls_->owner_of(id);
  if (call && !output_->is_waiting(*call) && !unsent_calls_.contains(*call))
    calls_->end(*call, {.cause = Outcome::Cause::unreadable});
}

void Conversation::tell_of_noise() {
  const bool is_noise = messages_ == 0 && lost_text_->received() > most_noise && !decoder_->inside_frame();
  if (is_noise && !std::exchange(told_of_noise_, true)) tell(log_, events_.on_noise);
}

void Conversation::end_of_input(base::TimePoint now) {
  if (link_) return close();
  if (phase_ != Phase::open) return;
  calls_->start_clocks(now);
  end_skipped_message();
  if (const std::optional<Fault> fault = decoder_->finish()) handle_fault(*fault);
  decoder_->drop_partial();
  if (phase_ != Phase::open) return;  // somebody who was told of the fault has closed it
  phase_ = Phase::ending;
  tell(log_, events_.on_input_ended);
}

bool Conversation::wants_input() const {
  if (phase_ == Phase::closing) return !link_->peer_has_closed();
  return phase_ == Phase::open && waiting_bytes() < most_waiting_;
}

std::string_view Conversation::output() { return output_->empty() ? std::string_view() : output_->front(); }

void Conversation::written(std::size_t count) {
  output_->written(count);
  if (link_) link_->written(count);
}

bool Conversation::has_more_to_do() const {
  return !unsent_calls_.empty() || (phase_ != Phase::open && (!calls_->empty() || close_is_due())) || can_handle_more();
}

bool Conversation::can_handle_more() const { return phase_ != Phase::closed && dispatcher_->can_go_on(); }

void Conversation::resume() {
  end_failed_calls();
  if (is_asked_to_stop() && phase_ == Phase::open) stop();
  if (phase_ != Phase::closed) dispatcher_->go_on();
  if (close_is_due()) send_close();
  if (phase_ == Phase::closed) output_->clear();  // what a handler answered that closed it
}

// Once nothing is read any more, no call can get its answer.
void Conversation::end_failed_calls() {
  if (phase_ != Phase::open) {
    if (!calls_->empty()) {
      calls_->end_all(Outcome::Cause::disconnected, [this](CallId call) { return !withdraw(call); });
    }
    if (calls_->empty()) unsent_calls_.clear();  // the peer may have answered one that it has never seen
  } else if (!unsent_calls_.empty()) {
    for (const CallId call : std::exchange(unsent_calls_, {})) {
      calls_->end(call, {.cause = Outcome::Cause::overloaded, .was_sent = false});
    }
  }
}

// True: the peer has seen nothing of it, and never will.
bool Conversation::withdraw(CallId call) { return unsent_calls_.erase(call) > 0 || output_->withdraw(call); }

bool Conversation::is_timed() const {
  return timed_message_ || lost_text_ || !calls_->empty() || (link_ && link_->is_quiet());
}

bool Conversation::is_idle() const {
  return phase_ == Phase::open && output_->empty() && dispatcher_->is_idle() && calls_->empty() &&
         unsent_calls_.empty() && decoder_->is_empty();
}

std::optional<base::TimePoint> Conversation::deadline() const {
  if (has_more_to_do()) return base::TimePoint();
  std::optional<base::TimePoint> next = calls_->deadline();
  if (protocol_.frame_timeout && phase_ == Phase::open && decoder_->inside_frame()) {
    const bool clock_runs = timed_message_ == decoder_->frames_begun() && !paused_at_;
    if (clock_runs != wants_input()) return base::TimePoint();  // it has to be started or stopped
    if (clock_runs) next = std::min(next.value_or(base::TimePoint::max()), message_deadline());
  }
  if (link_ && phase_ != Phase::closed) next = std::min(next.value_or(base::TimePoint::max()), link_->deadline());
  return next;
}

void Conversation::tick(base::TimePoint now) {
  end_failed_calls();
  calls_->start_clocks(now);
  time_out_calls(now);
  if (protocol_.frame_timeout && phase_ == Phase::open) {
    watch_partial_message(now);
    drop_overdue_message(now);
  }
  if (link_ && phase_ != Phase::closed && !link_->tick(now, wants_input())) {
    log_.info(phase_ == Phase::closing ? "Close without an answer" : "Silent client dropped");
    close();
  }
  resume();
}

void Conversation::time_out_calls(base::TimePoint now) {
  for (const CallId call : calls_->due(now)) {
    if (!calls_->contains(call)) continue;  // the one before it has cancelled it
    const bool was_sent = !withdraw(call);
    if (was_sent && protocol_.cancels_late_calls) notify_of_cancel(call);
    calls_->end(call, {.cause = Outcome::Cause::timed_out, .was_sent = was_sent});
  }
}

CallId Conversation::call(std::string_view method, const rpc::Json& params, base::Duration patience,
                          CallCallback callback) {
  if (is_going_) return 0;
  const bool may_be_sent = phase_ == Phase::open && output_->size() + calls_->bytes() < most_of_our_own();
  const CallId call = calls_->add(patience, std::move(callback));
  if (may_be_sent) {
    output_->add_call(call, rpc::encode_request(std::to_string(call), rpc::quoted(method), text_of_params(params)));
  } else {
    unsent_calls_.insert(call);
  }
  wake();
  return call;
}

bool Conversation::cancel(CallId call) {
  if (!calls_->forget(call)) return false;
  const bool is_unseen = withdraw(call);
  if (!is_unseen) notify_of_cancel(call);
  wake();
  return is_unseen;
}

void Conversation::notify_of_cancel(CallId call) {
  const std::string params = R"({")" + std::string(protocol_.cancels.member) + R"(":)" + std::to_string(call) + '}';
  notify(protocol_.cancels.method, rpc::Json::trusted(params));
}

bool Conversation::notify(std::string_view method, const rpc::Json& params) {
  return send(framed_notification(*encoder_, method, params), most_of_our_own());
}

bool Conversation::send(Announcement& message, std::size_t most_waiting) {
  return send(message.framed(*encoder_, protocol_.framing), most_waiting);
}

bool Conversation::send(std::string_view message, std::size_t most_waiting) {
  if (phase_ >= Phase::closing || output_->size() >= most_waiting) return false;
  output_->add_framed(message);
  wake();
  return true;
}

void Conversation::allow_batches(bool allowed) { dispatcher_->allow_batches(allowed); }

void Conversation::limit_waiting(std::size_t most) {
  most_waiting_ = std::min(most, protocol_.max_waiting);
  dispatcher_->limit_output(most_waiting_);
  wake();
}

bool Conversation::refuse_partial_message() {
  if (phase_ != Phase::open || !decoder_->inside_frame()) return false;
  drop_partial_message();
  const rpc::Error error = rpc::invalid_request("overload");
  log_.warn(error.message(), {{"reason", "overload"}});
  dispatcher_->refuse_unreadable(error);
  wake();
  return true;
}

bool Conversation::owes_answer() const { return dispatcher_->owes_answer(); }
std::uint64_t Conversation::answers_given() const { return dispatcher_->answers_given(); }
std::uint64_t Conversation::answers_promised(const Request& request) const {
  return dispatcher_->answers_promised(request.id.empty());
}
std::size_t Conversation::load() const {
  return is_closed() ? 0 : waiting_bytes() + dispatcher_->held_bytes() + calls_->bytes() + partial_bytes();
}
std::size_t Conversation::partial_bytes() const { return decoder_->held().size(); }
std::size_t Conversation::unwritten_bytes() const { return output_->size(); }
std::size_t Conversation::pending_calls() const { return calls_->size(); }
bool Conversation::is_inside_message() const { return decoder_->inside_frame(); }

std::size_t Conversation::waiting_bytes() const { return output_->size() + dispatcher_->waiting_bytes(); }

std::size_t Conversation::most_of_our_own() const { return std::max<std::size_t>(most_waiting_ / 2, 1); }

void Conversation::wake() {
  if (events_.on_wake) events_.on_wake();
}

// The clock of a message runs from its first byte, and only while we read.
void Conversation::watch_partial_message(base::TimePoint now) {
  if (!decoder_->inside_frame()) {
    timed_message_.reset();
    return;
  }
  if (timed_message_ != decoder_->frames_begun()) {
    timed_message_ = decoder_->frames_begun();
    began_at_ = now;
    paused_at_.reset();
  }
  if (!wants_input()) {
    if (!paused_at_) paused_at_ = now;
  } else if (paused_at_) {
    began_at_ += now - *std::exchange(paused_at_, std::nullopt);
  }
}

base::TimePoint Conversation::message_deadline() const {
  const base::Duration limit = *protocol_.frame_timeout;
  return limit < base::TimePoint::max() - began_at_ ? began_at_ + limit : base::TimePoint::max();
}

// There may be more in the pipe: a message is given up only when nothing came between two looks at the time.
void Conversation::drop_overdue_message(base::TimePoint now) {
  if (!timed_message_ || paused_at_ || now < message_deadline()) return;
  if (std::exchange(heard_lately_, false)) return;
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_at_).count();
  log_.warn("Partial frame dropped", {{"bytes", decoder_->held().size()}, {"waited_ms", waited}});
  drop_partial_message();
  timed_message_.reset();
}

void Conversation::drop_partial_message() {
  decoder_->drop_partial();
  follows_skipped_ = lost_text_ != nullptr;
}

std::string framed_notification(const Protocol& protocol, std::string_view method, const rpc::Json& params) {
  return framed_notification(*protocol.make_encoder(), method, params);
}

}  // namespace duet::peer
