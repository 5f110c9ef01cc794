#include "app/doors/http_client.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <variant>

#include "app/doors/http_door.h"
#include "app/doors/page.h"
#include "app/doors/websocket_handshake.h"
#include "duet/framing/http_checks.h"
#include "duet/framing/http_text.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using framing::HttpFault;
using framing::HttpHead;
using transport::IoResult;

constexpr base::Duration head_time = 10s;
constexpr base::Duration idle_time = 60s;
constexpr base::Duration body_pause = 10s;
constexpr base::Duration body_time = 120s;
constexpr base::Duration comment_time =
    15s;  // so that a reader, and whatever is on the way to it, sees that we are there
constexpr base::Duration linger_time = 1s;
constexpr base::Duration farewell_time = 1s;  // for the answer to who has sent its last byte
constexpr std::size_t linger_bytes = 64U * 1024;
constexpr std::size_t most_read_ahead = 64U * 1024;
constexpr std::size_t most_unwritten = 64U * 1024;  // then no further request is looked at
constexpr std::size_t read_at_once = 16U * 1024;
constexpr std::size_t small_answer = 16U * 1024;  // is copied behind its head, and goes out with it
constexpr std::uint64_t most_of_login = 1024;
constexpr std::string_view json_type = "application/json";

struct HttpPlace {
  std::string_view path;
  HttpRoute route;
  std::string_view method;
  bool for_all = false;  // needs no token
};
constexpr HttpPlace http_places[] = {
    {"/login", HttpRoute::login, "POST", true}, {"/logout", HttpRoute::logout, "POST"},
    {"/rpc", HttpRoute::rpc, "POST"},           {"/events", HttpRoute::events, "GET"},
    {"/ws", HttpRoute::websocket, "GET"},       {"/metrics", HttpRoute::metrics, "GET"},
};
constexpr HttpPlace page_place{"/", HttpRoute::page, "GET", true};

const HttpPlace* place_at(std::string_view path) {
  for (const HttpPlace& place : http_places) {
    if (place.path == path) return &place;
  }
  return find_page_file(path) != nullptr ? &page_place : nullptr;
}

std::optional<std::string_view> bearer_of(const HttpHead& head) {
  constexpr std::string_view scheme = "bearer ";
  if (head.fields.count("authorization") != 1) return std::nullopt;
  const std::string_view value = *head.fields.find("authorization");
  if (!framing::same_word(value.substr(0, scheme.size()), scheme)) return std::nullopt;
  return framing::without_blanks(value.substr(scheme.size()));
}

}  // namespace

HttpClient::HttpClient(HttpDoor& door, std::unique_ptr<transport::Channel> channel,
                       const transport::PeerIdentity& identity, std::uint64_t number)
    : door_(door),
      channel_(std::move(channel)),
      identity_(identity),
      number_(number),
      decoder_(framing::max_body, *door.pool()) {}

HttpClient::~HttpClient() {
  exchange_.reset();  // nobody is inside it here
  end();
}

void HttpClient::open() {
  channel_->open(*this);
  expect(head_time);
}

void HttpClient::turn_away(HttpFault fault) {
  channel_->open(*this);
  refuse(fault, false);
  flush();
}

void HttpClient::stop() {
  stopping_ = true;
  if (phase_ == Phase::head && out_.empty()) return close();
  if (phase_ == Phase::head || phase_ == Phase::stream) {
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
  door_.release(std::exchange(reserved_, 0));
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
  if (const std::optional<HttpFault> fault = fault_of(head)) {
    const bool goes_on = framing::survives_refusal(head) && !framing::refusal_of(*fault).closes;
    if (goes_on) decoder_.skip_body();
    return refuse(*fault, goes_on);
  }
  if (route_ == HttpRoute::page) return serve_page(head);
  if (route_ == HttpRoute::websocket) return upgrade(head);
  if (route_ == HttpRoute::events) return begin_stream(head);
  if (route_ == HttpRoute::metrics) return serve_metrics();
  if (!door_.reserve(head.content_length)) return refuse(HttpFault::busy, false);
  reserved_ = head.content_length;
  if (head.expectation == framing::HttpExpectation::to_continue) framing::append_continue(out_);
  phase_ = Phase::body;
  body_began_ = heard_at_;
  expect(body_pause);
  decoder_.read_body();
}

// In the order of HttpFault.
std::optional<HttpFault> HttpClient::fault_of(const HttpHead& head) {
  if (const auto fault = framing::host_fault(head, door_.names())) return fault;
  if (const auto fault = framing::origin_fault(head, door_.scheme())) return fault;
  const HttpPlace* const place = place_at(head.path);
  if (place == nullptr) return HttpFault::path;
  route_ = place->route;
  const bool is_page = route_ == HttpRoute::page;
  allow_ = is_page ? "GET, HEAD" : place->method;
  if (head.method != place->method && !(is_page && is_head_)) return HttpFault::method;
  if (!place->for_all) {
    if (has_two_tokens(head)) return HttpFault::bad_upgrade;
    admission_ = admission_of(head);
    if (!admission_) return HttpFault::token;
    known_as_ = admission_.get();
    door_.know(number_);
  }
  if (const auto fault = framing::content_fault(head)) return fault;
  const bool is_small = route_ == HttpRoute::login || route_ == HttpRoute::logout;
  if (const auto fault = framing::length_fault(head, is_small ? most_of_login : framing::max_body)) return fault;
  return framing::expectation_fault(head);
}

bool HttpClient::has_two_tokens(const HttpHead& head) const {
  return route_ == HttpRoute::websocket && count_websocket_tokens(head) + (bearer_of(head) ? 1 : 0) > 1;
}

std::shared_ptr<const peer::Admission> HttpClient::admission_of(const HttpHead& head) const {
  std::optional<std::string_view> token = bearer_of(head);
  if (!token && route_ == HttpRoute::websocket) token = websocket_token(head);
  return token ? door_.calls().admit(*token) : nullptr;
}

void HttpClient::refuse(HttpFault fault, bool goes_on) {
  const framing::HttpRefusal& refusal = framing::refusal_of(fault);
  closes_ = closes_ || refusal.closes || !goes_on;
  framing::append_refusal(out_, fault,
                          {.closes = closes_,
                           .is_head = is_head_,
                           .allow = fault == HttpFault::method ? allow_ : std::string_view(),
                           .retry_after = std::exchange(retry_after_, {})});
  door_.log_refusal(identity_, refusal);
  answered();
}

void HttpClient::serve_page(const HttpHead& head) {
  const PageFile& file = *find_page_file(head.path);
  if (framing::has_etag(head, file.etag)) {
    framing::append_not_modified(out_, file.etag, closes_ || stopping_);
  } else {
    framing::append_head(out_, {.content_type = file.type,
                                .content_length = file.text.size(),
                                .closes = closes_ || stopping_,
                                .etag = file.etag});
    if (!is_head_) out_ += file.text;
  }
  decoder_.skip_body();
  answered();
}

void HttpClient::serve_metrics() {
  decoder_.skip_body();
  respond("text/plain; version=0.0.4; charset=utf-8", door_.calls().metrics());
}

void HttpClient::upgrade(const HttpHead& head) {
  const auto offer = websocket_offer(head);
  if (const auto* const fault = std::get_if<HttpFault>(&offer)) {
    decoder_.skip_body();
    return refuse(*fault, true);
  }
  const auto& accepted = std::get<WebSocketOffer>(offer);
  framing::append_switching(out_, accepted.accepted_key, accepted.names_protocol ? websocket_protocol : "");
  const std::string rest(decoder_.take_rest());
  const bool is_told = write_out();
  if (!is_told || !out_.empty()) return close();  // nobody reads so little
  timer_.cancel();
  closed_ = true;
  door_.take_websocket(number_, std::move(channel_), identity_, std::move(admission_), rest);
}

void HttpClient::begin_stream(const HttpHead& head) {
  const std::optional<StreamWish> wish = stream_wish(head.query, head.fields.find("last-event-id"));
  decoder_.skip_body();
  const std::size_t before = out_.size();
  framing::append_event_stream(out_);
  out_ += "retry: 2000\n\n";
  number_of_stream_ = door_.calls().begin_caller();
  phase_ = Phase::stream;
  expect(comment_time);
  if (wish && door_.calls().events->open_stream(number_of_stream_, *this, *wish)) return;
  out_.resize(before);
  phase_ = Phase::head;
  refuse(HttpFault::query, true);
}

bool HttpClient::give(const StreamedEvent& event, std::size_t most_waiting) {
  if (out_.size() - sent_ >= most_waiting) return false;
  out_ += streamed(event);
  flush_later();
  return true;
}

void HttpClient::give_last(const StreamedEvent& event) {
  out_ += streamed(event);
  phase_ = Phase::last_answer;
  expect(idle_time);
  flush_later();
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
  exchange_ = door_.begin_exchange(body, admission_, [this] { answer_call(); });
}

void HttpClient::log_in(std::string_view body) {
  HttpLogin login = door_.calls().log_in(body);
  if (const auto* const refused = std::get_if<RefusedLogin>(&login)) {
    retry_after_ = refused->retry_after;
    return refuse(refused->fault, true);
  }
  respond(json_type, std::get<std::string>(login));
}

void HttpClient::log_out() {
  const std::shared_ptr<const peer::Admission> admission = std::move(admission_);
  known_as_ = nullptr;
  closes_ = true;
  framing::append_no_content(out_, closes_);
  answered();
  door_.calls().log_out(*admission);
}

void HttpClient::answer_call() {
  const std::size_t size = exchange_->left();
  const bool closes = closes_ || stopping_;
  if (size == 0) {
    framing::append_no_content(out_, closes);
  } else {
    framing::append_head(out_, {.content_type = json_type, .content_length = size, .closes = closes});
  }
  closes_ = closes;
  if (size <= small_answer) {
    while (exchange_->left() > 0) {
      const std::string_view part = exchange_->next();
      out_ += part;
      exchange_->taken(part.size());
    }
    answered();
  } else {
    expect(idle_time);
  }
  advance();
}

void HttpClient::respond(std::string_view type, std::string_view body) {
  framing::append_head(out_, {.content_type = type, .content_length = body.size(), .closes = closes_ || stopping_});
  out_ += body;
  answered();
}

// The request is done with; what answers it is still to be written.
void HttpClient::answered() {
  exchange_.reset();
  admission_.reset();
  door_.release(std::exchange(reserved_, 0));
  has_begun_ = is_first_ = is_head_ = false;
  phase_ = closes_ || stopping_ ? Phase::last_answer : Phase::head;
  expect(idle_time);
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
  if (out_.empty() && phase_ == Phase::stream) door_.calls().events->go_on(number_of_stream_);
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
