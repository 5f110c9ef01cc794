#include "duet/peer/connection.h"

#include <algorithm>
#include <utility>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"
#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

using framing::Fault;
using transport::Moved;

// Of one among many, so that a flood of small messages keeps the others waiting for some milliseconds at most.
constexpr std::size_t most_read_at_once = 16U * 1024;

std::unique_ptr<framing::Decoder> make_decoder(Door door, std::size_t max_message, framing::BlockPool& pool) {
  if (door == Door::stdio) return std::make_unique<framing::ContentLengthDecoder>(max_message, pool);
  return std::make_unique<framing::LineDecoder>(max_message, pool);
}

std::unique_ptr<framing::Encoder> make_encoder(Door door) {
  if (door == Door::stdio) return std::make_unique<framing::ContentLengthEncoder>();
  return std::make_unique<framing::LineEncoder>();
}

rpc::Error error_of(Fault fault) {
  const bool unparsable = fault == Fault::malformed_header || fault == Fault::length_mismatch;
  return unparsable ? rpc::parse_error(framing::reason_of(fault)) : rpc::invalid_request(framing::reason_of(fault));
}

}  // namespace

Connection::Connection(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, Door door,
                       const Methods& methods, base::Log& log, ConnectionEvents events, ConnectionLimits limits,
                       Peer peer, std::shared_ptr<framing::BlockPool> pool)
    : loop_(loop),
      channel_(std::move(channel)),
      pool_(pool ? std::move(pool) : std::make_shared<framing::BlockPool>()),
      decoder_(make_decoder(door, limits.max_message, *pool_)),
      encoder_(make_encoder(door)),
      log_(log),
      events_(std::move(events)),
      limits_(limits),
      peer_(peer),
      door_(door),
      batches_(door == Door::socket ? rpc::Batches::allowed : rpc::Batches::refused),
      output_(*encoder_, *pool_),
      calls_(loop, log),
      dispatcher_(*this, methods, log, batches_, output_, limits.max_waiting,
                  {.on_waiting = events_.on_waiting,
                   .on_settled = [this] { flush_later(); },
                   .on_response = [this](const rpc::Message& message) { take_response(message); },
                   .on_notification = events_.on_notification}),
      most_waiting_(limits.max_waiting) {}

Connection::~Connection() {
  *alive_ = false;
  events_ = {};
  close();
  calls_.fail_all(Outcome::Cause::disconnected);  // of calls made after it was closed
  decoder_.reset();                               // gives its memory to the pool
  pool_->trim();
}

void Connection::open() { channel_->open(*this); }

void Connection::on_readable() {
  std::span<char> room = decoder_->room();
  const bool into_decoder = !room.empty();
  if (!into_decoder) room = loop_.scratch();
  if (!into_decoder && door_ == Door::socket) room = room.first(std::min(room.size(), most_read_at_once));
  const Moved moved = channel_->read(room);
  switch (moved.state) {
    case Moved::State::blocked:
      return;
    case Moved::State::broken:
      return fail(moved, Ending::unreadable);
    case Moved::State::ended:
      return end_of_input();
    case Moved::State::some:
      break;
  }
  read_lately_ = true;
  if (into_decoder) {
    decoder_->commit(moved.count);
  } else {
    decoder_->feed({room.data(), moved.count});
  }
  take_frames();
  settle_down();
}

void Connection::on_writable() { settle_down(); }

void Connection::on_hangup() { close(Ending::peer_gone); }

void Connection::take_frames() {
  while (const std::optional<framing::Frame> frame = decoder_->next()) {
    if (stop_asked_.load(std::memory_order_relaxed) && phase_ == Phase::open) stop();
    if (phase_ == Phase::open) take(*frame);
    if (phase_ == Phase::closed) return;
  }
}

void Connection::take(const framing::Frame& frame) {
  if (!frame.body) return take_fault(error_of(*frame.fault), "null");
  const rpc::Message message = rpc::decode(*frame.body, batches_);
  if (message.kind == rpc::Message::Kind::response) return take_response(message);
  std::optional<Fault> fault = frame.fault;
  if (!message.is_json) {
    const std::optional<Fault> wrong_length = decoder_->reject();
    if (frame.is_guess) return;
    if (!fault) fault = wrong_length;
  }
  if (fault) return take_fault(error_of(*fault), message.id);
  dispatcher_.take(message, *frame.body);
}

void Connection::take_fault(rpc::Error error, std::string_view id) {
  rpc::Message message;
  message.id = id;
  message.refusal = std::move(error);
  dispatcher_.take(message, {});
}

void Connection::take_response(const rpc::Message& message) {
  if (!calls_.settle(message))
    log_.warn("Stray response", {{"id", base::JsonText{message.id_is_known ? message.id : ""}}});
}

void Connection::end_of_input() {
  if (phase_ == Phase::open) {
    if (const std::optional<Fault> fault = decoder_->finish()) take_fault(error_of(*fault), "null");
    phase_ = Phase::ending;
    ending_ = Ending::input_ended;
    if (events_.on_input_ended) events_.on_input_ended();
  }
  settle_down();
}

void Connection::stop() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::stopping;
  ending_ = Ending::stopped;
  dispatcher_.forget_waiting();
  flush_later();
}

void Connection::close(Ending ending) {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  stop_frame_timer();
  trim_timer_.reset();
  channel_->close();
  output_.clear();
  dispatcher_.abandon();
  calls_.fail_all(Outcome::Cause::disconnected);
  if (events_.on_load_changed && told_load_ != 0) events_.on_load_changed();
  if (events_.on_closed) events_.on_closed(ending);
}

void Connection::limit_waiting(std::size_t most) {
  most_waiting_ = std::min(most, limits_.max_waiting);
  dispatcher_.limit_output(most_waiting_);
  flush_later();
}

// What follows every event: answers go out, then the connection is what its state says.
void Connection::settle_down() {
  if (phase_ == Phase::closed) return output_.clear();  // what a handler answered that closed it
  write_output();
  while (phase_ != Phase::closed && output_.size() < most_waiting_ && dispatcher_.has_work() &&
         !dispatcher_.must_wait()) {
    dispatcher_.go_on();
    write_output();
  }
  if (phase_ == Phase::closed) return;
  const bool idle = !dispatcher_.owes_answer() && output_.empty();
  const bool done = (phase_ == Phase::ending && idle && !dispatcher_.has_work()) || (phase_ == Phase::stopping && idle);
  if (done) return close(ending_);
  update_wants();
  if (door_ == Door::stdio) watch_partial_frame();
  trim_memory_when_idle();
  if (load() != told_load_ || std::exchange(sent_lately_, false)) {
    told_load_ = load();
    if (events_.on_load_changed) events_.on_load_changed();
  }
}

void Connection::write_output() {
  if (output_.empty()) return;
  const Moved moved = output_.write_to(*channel_);
  if (moved.state == Moved::State::broken) fail(moved, Ending::peer_gone);
}

void Connection::fail(const Moved& moved, Ending ending) {
  failure_ = moved.error;
  close(ending);
}

void Connection::update_wants() {
  const bool reading = phase_ == Phase::open && load() < most_waiting_;
  const bool writing = !output_.empty();
  if (reading == reading_ && writing == writing_) return;
  reading_ = reading;
  writing_ = writing;
  channel_->want(reading, writing);
}

void Connection::flush_later() {
  if (flush_planned_) return;
  flush_planned_ = true;
  loop_.defer([this, alive = alive_] {
    if (!*alive) return;
    flush_planned_ = false;
    settle_down();
  });
}

void Connection::call(std::string_view method, std::string_view params, base::Duration patience,
                      Calls::Callback callback) {
  const std::uint64_t id = calls_.add(patience, std::move(callback));
  const auto fail_later = [&](Outcome::Cause cause) {
    loop_.defer([this, alive = alive_, id, cause] {
      if (*alive) calls_.fail(id, cause);
    });
  };
  if (phase_ != Phase::open) return fail_later(Outcome::Cause::disconnected);
  if (output_.size() >= most_of_our_own()) return fail_later(Outcome::Cause::overloaded);
  output_.add(rpc::encode_request(std::to_string(id), rpc::quoted(method), params));
  flush_later();
}

bool Connection::notify(std::string_view method, std::string_view params) {
  return send(framed(*encoder_, rpc::encode_notification(rpc::quoted(method), params)), most_of_our_own());
}

bool Connection::send(std::string_view message, std::size_t most_waiting) {
  if (phase_ == Phase::closed || output_.size() >= most_waiting) return false;
  output_.add_framed(message);
  sent_lately_ = true;  // who was refused for want of room is told of it, though all is written before anybody looks
  flush_later();
  return true;
}

// The clock of a frame runs from its first byte, and only while we read.
void Connection::watch_partial_frame() {
  if (!decoder_->inside_frame()) {
    frame_.reset();
    stop_frame_timer();
    return;
  }
  const base::TimePoint now = loop_.now();
  if (frame_ != decoder_->frames_begun()) {
    frame_ = decoder_->frames_begun();
    frame_began_ = now;
    stop_frame_timer();
  }
  if (!reading_) {
    if (!paused_at_) paused_at_ = now;
    stop_frame_timer();
    return;
  }
  if (paused_at_) {
    frame_began_ += now - std::max(*paused_at_, frame_began_);
    paused_at_.reset();
  }
  if (frame_timer_) return;
  frame_timer_ = loop_.after(limits_.read_timeout - (now - frame_began_), [this] { partial_frame_is_due(); });
}

void Connection::partial_frame_is_due() {
  frame_timer_.reset();
  if (std::exchange(read_lately_, false)) {
    // There may be more in the pipe: give up only after a turn that read nothing.
    frame_timer_ = loop_.at(loop_.now(), [this] { partial_frame_is_due(); });
    return;
  }
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(loop_.now() - frame_began_).count();
  log_.warn("Partial frame dropped", {{"bytes", decoder_->held()}, {"waited_ms", waited}});
  decoder_->drop_partial();
  frame_.reset();
  trim_memory_when_idle();
}

void Connection::stop_frame_timer() { frame_timer_.reset(); }

void Connection::trim_memory_when_idle() {
  if (trim_timer_ || !pool_->keeps_any()) return;
  constexpr auto idle = std::chrono::seconds(1);
  trim_timer_ = loop_.after(idle, [this, uses = pool_->uses()] {
    trim_timer_.reset();
    if (pool_->uses() == uses) pool_->trim();
    trim_memory_when_idle();
  });
}

}  // namespace duet::peer
