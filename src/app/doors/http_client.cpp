#include "app/doors/http_client.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "app/doors/http_door.h"
#include "duet/framing/http_checks.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using framing::HttpFault;
using framing::HttpHead;
using transport::IoResult;

constexpr base::Duration head_time = 10s;
constexpr base::Duration body_pause = 10s;
constexpr base::Duration body_time = 120s;
constexpr base::Duration linger_time = 1s;
constexpr base::Duration farewell_time = 1s;  // for the answer to who has sent its last byte
constexpr std::size_t linger_bytes = 64U * 1024;
constexpr std::size_t most_read_ahead = 64U * 1024;
constexpr std::size_t most_unwritten = 64U * 1024;  // then no further request is looked at
constexpr std::size_t read_at_once = 16U * 1024;

}  // namespace

HttpClient::HttpClient(HttpDoor& door, std::unique_ptr<transport::Channel> channel,
                       const transport::PeerIdentity& identity, std::uint64_t number,
                       std::shared_ptr<const peer::Admission> shown)
    : door_(door),
      channel_(std::move(channel)),
      identity_(identity),
      number_(number),
      shown_(std::move(shown)),
      decoder_(framing::max_body, *door.pool()),
      known_as_(shown_.get()) {}

HttpClient::~HttpClient() {
  exchange_.reset();  // nobody is inside it here
  end();
}

void HttpClient::open(std::string_view first_bytes) {
  channel_->open(*this);
  expect(head_time);
  if (first_bytes.empty()) return;
  heard_at_ = door_.loop().now();
  decoder_.feed(first_bytes);
  advance();
}

void HttpClient::turn_away(HttpFault fault) {
  channel_->open(*this);
  refuse(fault, false);
  flush();
}

void HttpClient::stop() {
  stopping_ = true;
  if (phase_ == Phase::head && out_.empty()) return close();
  const bool owes_answer = exchange_ != nullptr;
  if (phase_ == Phase::head || (phase_ == Phase::stream && !owes_answer)) {
    phase_ = Phase::last_answer;
    flush_later();
  }
}

void HttpClient::end() {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  advancing_.cancel();
  flushing_.cancel();
  if (number_of_stream_ != 0) door_.calls().events->close_stream(number_of_stream_);
  drop_exchange();
  door_.release(std::exchange(reserved_, 0) + std::exchange(repeated_, 0));
  if (channel_) channel_->close();
}

// Later: what it asks for may be what ends us.
void HttpClient::drop_exchange() {
  if (!exchange_) return;
  exchange_->cancel();
  door_.loop().defer([dropped = std::shared_ptr<RpcExchange>(std::move(exchange_))] {});
}

void HttpClient::close() {
  if (closed_) return;
  end();
  door_.forget_later(number_);
}

void HttpClient::on_readable() {
  const bool lingers = phase_ == Phase::lingering || phase_ == Phase::stream;
  std::span<char> room = lingers ? std::span<char>() : decoder_.room();
  const bool in_room = !room.empty();
  if (!in_room) room = std::span(door_.loop().scratch()).first(read_at_once);
  const IoResult moved = channel_->read(room);
  if (moved.state == IoResult::State::blocked) return;
  if (moved.state == IoResult::State::broken) return close();
  if (moved.state == IoResult::State::ended) return take_end();
  if (lingers) return discard(moved.count);
  heard_at_ = door_.loop().now();
  if (in_room) {
    decoder_.commit(moved.count);
  } else {
    decoder_.feed({room.data(), moved.count});
  }
  advance();
}

void HttpClient::on_writable() {
  flush();
  if (!closed_ && out_.empty() && decoder_.held() > 0) advance_later();
}

// What was sent before the answer was read must not break the connection before it is.
void HttpClient::discard(std::size_t count) {
  discarded_ += count;
  if (discarded_ > linger_bytes) close();
}

// Somebody who has sent a request and nothing more may still read its answer, if that comes soon.
void HttpClient::take_end() {
  input_ended_ = true;
  if (phase_ == Phase::lingering || phase_ == Phase::stream) return close();
  expect(farewell_time);
  advance();
}

// The requests that are there, as long as their answers are read; a portion of them, so that others get their turn.
void HttpClient::advance() {
  advancing_.cancel();
  const bool is_held_up = handle_requests();
  if (closed_) return;
  decoder_.keep();
  const bool has_all = input_ended_ && !is_held_up;
  if (has_all && (phase_ == Phase::head || phase_ == Phase::body)) phase_ = Phase::last_answer;
  if (phase_ == Phase::head && decoder_.inside_head() && !std::exchange(has_begun_, true) && !is_first_)
    expect(head_time);
  flush();
  if (!closed_ && is_held_up && out_.empty()) advance_later();
}

void HttpClient::advance_later() {
  advancing_ = door_.loop().after(base::Duration::zero(), [this] { advance(); });
}

// True: so much waits to be written that the rest has to wait.
bool HttpClient::handle_requests() {
  while (!closed_ && (phase_ == Phase::head || phase_ == Phase::body)) {
    if (out_.size() >= most_unwritten) return true;
    const std::optional<framing::HttpPart> part = decoder_.next();
    if (!part) return false;
    if (part->fault) {
      refuse(*part->fault, false);
    } else if (part->head) {
      take_head(*part->head);
    } else {
      take_body(*part->body);
    }
  }
  return false;
}

void HttpClient::take_head(const HttpHead& head) {
  has_begun_ = true;
  is_head_ = head.method == "HEAD";
  closes_ = !head.keeps_alive;
  const HttpDoorCalls& calls = door_.calls();
  const HttpPass pass = pass_of(head, {.names = door_.names(),
                                       .scheme = door_.scheme(),
                                       .admit = calls.admit,
                                       .shown = shown_,
                                       .has_mcp = calls.mcp != nullptr});
  take_pass(pass);
  if (pass.fault) {
    const bool goes_on = framing::survives_refusal(head) && !framing::refusal_of(*pass.fault).closes;
    if (goes_on) decoder_.skip_body();
    return refuse(*pass.fault, goes_on);
  }
  if (route_ == HttpRoute::page) return serve_page(head);
  if (route_ == HttpRoute::websocket) return upgrade(head);
  if (route_ == HttpRoute::events) return begin_stream(head);
  if (route_ == HttpRoute::metrics) return serve_metrics();
  if (route_ == HttpRoute::mcp) mcp_ = std::make_unique<McpPost>(mcp_post_of(head));
  if (!door_.reserve(head.content_length)) return refuse(HttpFault::busy, false);
  reserved_ = head.content_length;
  if (head.expectation == framing::HttpExpectation::to_continue) framing::append_continue(out_);
  phase_ = Phase::body;
  body_began_ = heard_at_;
  expect(body_pause);
  decoder_.read_body();
}

void HttpClient::take_pass(const HttpPass& pass) {
  route_ = pass.route;
  allow_ = pass.allow;
  admission_ = pass.admission;
  if (!admission_ || shown_) return;
  known_as_ = admission_.get();
  door_.know(number_);
}

void HttpClient::flush_later() {
  if (!flushing_) flushing_ = door_.loop().deferred([this] { flush(); });
}

void HttpClient::end_session(const peer::Admission& ended) {
  if (known_as_ == &ended) close();
}

void HttpClient::take_body(std::string_view body) {
  timer_.cancel();
  if (route_ == HttpRoute::login) return log_in(body);
  if (route_ == HttpRoute::logout) return log_out();
  phase_ = Phase::answer;
  if (input_ended_) expect(farewell_time);
  if (route_ == HttpRoute::mcp) {
    begin_mcp(body);
  } else {
    exchange_ = door_.begin_exchange(body, admission_, [this] { answer_call(); });
  }
  reserve_what_is_kept();
}

// An answer may be long in coming, and others want to send, too.
void HttpClient::reserve_what_is_kept() {
  const std::uint64_t kept = exchange_ ? std::min<std::uint64_t>(exchange_->kept(), reserved_) : 0;
  door_.release(reserved_ - kept);
  reserved_ = kept;
}

// False: the connection is gone.
bool HttpClient::write_out() {
  while (sent_ < out_.size()) {
    const IoResult moved = channel_->write(std::string_view(out_).substr(sent_));
    if (moved.state == IoResult::State::broken) return false;
    if (moved.state != IoResult::State::some) {
      out_.erase(0, std::exchange(sent_, 0));
      return true;
    }
    sent_ += moved.count;
  }
  out_.clear();
  door_.release(std::exchange(repeated_, 0));
  if (out_.capacity() > small_answer) out_.shrink_to_fit();
  sent_ = 0;
  return true;
}

bool HttpClient::write_answer() {
  while (out_.empty() && exchange_ && exchange_->is_answered() && exchange_->left() > 0) {
    const IoResult moved = channel_->write(exchange_->next());
    if (moved.state == IoResult::State::broken) return false;
    if (moved.state != IoResult::State::some) return true;
    exchange_->taken(moved.count);
    expect(idle_time);
  }
  return true;
}

void HttpClient::flush() {
  if (!write_out() || !write_answer()) return close();
  if (out_.empty() && exchange_ && exchange_->is_answered() && exchange_->left() == 0) {
    answered();
    advance_later();  // the next request may be here already
  }
  if (out_.empty() && phase_ == Phase::last_answer) return linger();
  update_wants();
  if (out_.empty() && number_of_stream_ != 0 && phase_ == Phase::stream) door_.calls().events->go_on(number_of_stream_);
}

void HttpClient::linger() {
  if (input_ended_) return close();
  phase_ = Phase::lingering;
  channel_->end_output();
  expect(linger_time);
  update_wants();
}

void HttpClient::update_wants() {
  const bool has_room = phase_ == Phase::body || decoder_.held() < most_read_ahead;
  const bool reading = !input_ended_ && has_room && out_.size() < most_unwritten;
  const bool writing = !out_.empty() || (exchange_ && exchange_->is_answered());
  if (reading == reading_ && writing == writing_) return;
  reading_ = reading;
  writing_ = writing;
  channel_->want(reading, writing);
}

void HttpClient::expect(base::Duration within) {
  timer_ = door_.loop().after(within, [this] { be_late(); });
}

void HttpClient::be_late() {
  const bool has_to_wait = phase_ == Phase::answer || phase_ == Phase::stream;
  if (has_to_wait && input_ended_) return close();
  if (has_to_wait && mcp_ && mcp_->takes_stream) return be_late_with_mcp();
  if (phase_ == Phase::stream) {
    if (out_.empty()) out_ = ":\n\n";
    expect(comment_time);
    return flush();
  }
  const base::TimePoint now = door_.loop().now();
  if (phase_ == Phase::body && now - heard_at_ < body_pause && now - body_began_ < body_time) {
    return expect(std::min(heard_at_ + body_pause, body_began_ + body_time) - now);
  }
  const bool has_asked = (phase_ == Phase::head && has_begun_) || phase_ == Phase::body;
  if (!has_asked || !out_.empty()) return close();
  refuse(HttpFault::too_slow, false);
  flush();
}

}  // namespace duet::app
