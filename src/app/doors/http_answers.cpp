// How an HttpClient answers what it was asked for.

#include <string>
#include <utility>
#include <variant>

#include "app/doors/http_client.h"
#include "app/doors/http_door.h"
#include "app/doors/page.h"
#include "app/doors/websocket_handshake.h"
#include "duet/framing/http_checks.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using framing::HttpHead;

constexpr std::string_view json_type = "application/json";

}  // namespace

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
  mcp_.reset();
  admission_.reset();
  door_.release(std::exchange(reserved_, 0));
  has_begun_ = is_first_ = is_head_ = false;
  phase_ = closes_ || stopping_ ? Phase::last_answer : Phase::head;
  expect(idle_time);
}

}  // namespace duet::app
