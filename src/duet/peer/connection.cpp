#include "duet/peer/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "duet/framing/block_pool.h"

namespace duet::peer {
namespace {

using transport::IoResult;

ConversationEvents joined_to(const transport::Loop& loop, ConversationEvents events, std::function<void()> wake) {
  events.on_wake = std::move(wake);
  events.hand_over = [remote = loop.remote()](transport::Task task) { remote.post(std::move(task)); };
  return events;
}

// What a large message has used goes back to the system when nobody needed it for a second.
void trim_when_idle(transport::Loop& loop, const std::shared_ptr<framing::BlockPool>& pool) {
  if (pool->trim_is_planned || !pool->keeps_any()) return;
  pool->trim_is_planned = true;
  loop.after(std::chrono::seconds(1),
             [&loop, pool, uses = pool->uses()] {
               pool->trim_is_planned = false;
               if (pool->uses() == uses) pool->trim();
               trim_when_idle(loop, pool);
             })
      .detach();
}

}  // namespace

Connection::Connection(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, const Protocol& protocol,
                       const Methods& methods, base::Log& log, ConnectionEvents events, const Peer& peer,
                       std::shared_ptr<framing::BlockPool> pool)
    : loop_(loop),
      channel_(std::move(channel)),
      pool_(pool ? std::move(pool) : std::make_shared<framing::BlockPool>()),
      events_(std::move(events)),
      conversation_(protocol, methods, joined_to(loop, std::move(events_.conversation), [this] { advance_later(); }),
                    log, peer, pool_) {}

Connection::~Connection() {
  events_ = {};
  close();
}

void Connection::open(std::string_view first_bytes) {
  channel_->open(*this);
  if (!first_bytes.empty()) conversation_.receive(first_bytes, loop_.now());
  told_idle_ = conversation_.protocol().framing != Protocol::Framing::websocket;  // whose silence is timed from now on
  if (!first_bytes.empty() || !told_idle_) advance();
}

void Connection::on_readable() {
  if (read(loop_.scratch())) advance();
}

void Connection::on_writable() { advance(); }

void Connection::on_hangup() { close(Ending::peer_gone); }

// False: nothing was there, or it is closed.
bool Connection::read(std::span<char> scratch) {
  std::span<char> room = conversation_.room();
  const bool in_room = !room.empty();
  if (!in_room) room = scratch.first(std::min(scratch.size(), conversation_.protocol().read_at_once));
  const IoResult moved = channel_->read(room);
  switch (moved.state) {
    case IoResult::State::blocked:
      return false;
    case IoResult::State::broken:
      failure_ = moved.error;
      close(Ending::unreadable);
      return false;
    case IoResult::State::ended:
      input_ended_ = true;
      conversation_.end_of_input(loop_.now());
      if (conversation_.protocol().framing == Protocol::Framing::websocket) close(Ending::peer_gone);
      return true;
    case IoResult::State::some:
      break;
  }
  const base::TimePoint now = conversation_.is_timed() ? loop_.now() : base::TimePoint();
  if (in_room) {
    conversation_.receive_in_room(moved.count, now);
  } else {
    conversation_.receive_in_place(room.first(moved.count), now);
  }
  return true;
}

void Connection::drain() {
  constexpr int most_reads = 2048;                  // others that hold the pipe may go on writing
  std::vector<char> apart(loop_.scratch().size());  // what another connection has read may be in the loop's own
  for (int reads = 0; reads < most_reads && !is_closed() && !input_ended_ && read(apart); ++reads) {
  }
  advance();
}

// What follows every event: answers go out, then the connection is what its conversation says. After nearly every
// request that is what it was before.
void Connection::advance() {
  write_output();
  if (told_idle_ && !woken_ && conversation_.is_idle() && !pool_->keeps_any()) return;
  if (conversation_.has_more_to_do()) resume();  // a portion: what is left has a deadline, which is now
  if (is_closed()) return close();               // a handler may have closed the conversation
  if (conversation_.is_over()) return close(conversation_.is_stopping() ? Ending::stopped : Ending::input_ended);
  update_wants();
  update_timer();
  trim_when_idle(loop_, pool_);
  tell_load();
  // What an idle conversation waits for is the end of a silence, and to be told of it too early does no harm.
  told_idle_ = reading_ && !writing_ && (!timer_ || conversation_.is_idle()) && told_load_ == 0;
}

void Connection::resume() {
  conversation_.resume();
  write_output();
}

void Connection::write_output() {
  if (is_closed()) return;
  while (conversation_.unwritten_bytes() > 0) {
    const std::string_view bytes = conversation_.output();
    const IoResult moved =
        output_broken_ ? IoResult{IoResult::State::some, bytes.size()} : channel_->write(bytes);  // nobody reads it
    if (moved.state == IoResult::State::broken) return write_failed(moved.error);
    if (moved.state != IoResult::State::some) return;
    conversation_.written(moved.count);
  }
}

// A server has nobody left to serve. To a client may still come what was sent before.
void Connection::write_failed(int error) {
  failure_ = error;
  if (conversation_.protocol().faults == Protocol::Faults::answered) return close(Ending::peer_gone);
  output_broken_ = true;
  if (events_.on_unwritable) events_.on_unwritable();
  write_output();
}

void Connection::close(Ending ending) {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  channel_->close();
  conversation_.close();
  if (events_.on_load_changed && told_load_ != 0) events_.on_load_changed();
  if (events_.on_closed) events_.on_closed(ending);
}

void Connection::update_wants() {
  const bool reading = conversation_.wants_input();
  const bool writing = !conversation_.output().empty();
  if (reading == reading_ && writing == writing_) return;
  reading_ = reading;
  writing_ = writing;
  channel_->want(reading, writing);
}

// A timer that is early does no harm: one that fires finds out when the next is due. None may stay without need, since
// stdio reads without asking only while no timer runs.
void Connection::update_timer() {
  const std::optional<base::TimePoint> deadline = conversation_.deadline();
  if (timer_ && deadline && timer_at_ <= *deadline) return;
  timer_.cancel();
  if (!deadline) return;
  timer_at_ = *deadline;
  timer_ = loop_.at(*deadline, [this] {
    conversation_.tick(loop_.now());
    told_idle_ = false;  // the next timer has to be set
    advance();
  });
}

void Connection::advance_later() {
  woken_ = true;
  if (!advancing_) advancing_ = loop_.deferred([this] { advance(); });
}

// Who was refused for want of room is told of it, though all is written before anybody looks.
void Connection::tell_load() {
  const std::size_t load = conversation_.load();
  if (load == told_load_ && !woken_) return;
  woken_ = false;
  told_load_ = load;
  if (events_.on_load_changed) events_.on_load_changed();
}

}  // namespace duet::peer
