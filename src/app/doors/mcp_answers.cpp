// How an HttpClient answers `POST /mcp`: with one JSON text, or with a stream once there is something to tell before
// the answer, or nothing for a while.

#include <algorithm>
#include <string>
#include <utility>

#include "app/doors/http_client.h"
#include "app/doors/http_door.h"
#include "duet/framing/http_response.h"

namespace duet::app {
namespace {

constexpr unsigned accepted = 202;
constexpr int most_unread_comments = 4;

std::string taken_answer(RpcExchange& exchange) {
  std::string answer;
  while (exchange.left() > 0) {
    const std::string_view part = exchange.next();
    answer += part;
    exchange.taken(part.size());
  }
  return answer;
}

}  // namespace

void HttpClient::begin_mcp(std::string_view body) {
  if (const auto fault = door_.calls().mcp->fault_of_notification(mcp_->fields, body)) {
    return answer_mcp_with(mcp_refusal(*fault));
  }
  McpCaller caller{.admission = admission_, .fields = std::move(mcp_->fields), .is_late = stopping_};
  if (mcp_->takes_stream) {
    caller.notify = [this](std::string_view method, const rpc::Json& params) { tell_mcp(method, params); };
    if (!input_ended_) expect(comment_time);
  }
  exchange_ = door_.begin_mcp(body, std::move(caller), [this] { answer_mcp(); });
}

void HttpClient::begin_mcp_stream() {
  // So that a proxy passes on what comes.
  framing::append_head(out_, {.content_type = "text/event-stream",
                              .content_length = std::nullopt,
                              .closes = true,
                              .fields = "X-Accel-Buffering: no\r\n"});
  closes_ = true;
  phase_ = Phase::stream;
  if (!input_ended_) expect(comment_time);
}

void HttpClient::tell_mcp(std::string_view method, const rpc::Json& params) {
  if (phase_ == Phase::answer) begin_mcp_stream();
  if (closed_ || phase_ != Phase::stream) return;
  if (out_.size() - sent_ >= most_untold) {
    // What it misses cannot be made good: the end tells it so. Later, since whoever tells may be telling others, too.
    flushing_ = door_.loop().deferred([this] { close(); });
    return;
  }
  out_ += mcp_event(peer::framed_notification(peer::Protocol::one_message(), method, params));
  flush_later();
}

void HttpClient::answer_mcp() {
  const std::string answer = taken_answer(*exchange_);
  const bool is_dropped = answer.empty() && exchange_->has_owed() && stopping_;
  if (is_dropped) return close();
  if (phase_ == Phase::stream) return answer_mcp_stream(answer);
  const bool is_streamed = !answer.empty() && !mcp_->takes_json && mcp_status(answer) == 200;
  if (is_streamed) {
    begin_mcp_stream();
    return answer_mcp_stream(answer);
  }
  answer_mcp_with(answer);
  advance();
}

// Until it is read.
void HttpClient::reserve_for_answer(std::size_t size) {
  const std::uint64_t repeated = std::min<std::uint64_t>(size, reserved_);
  reserved_ -= repeated;
  repeated_ += repeated;
}

void HttpClient::answer_mcp_with(std::string_view answer) {
  reserve_for_answer(answer.size());
  closes_ = closes_ || stopping_;
  framing::append_head(out_, {.status = answer.empty() ? accepted : mcp_status(answer),
                              .content_type = answer.empty() ? "" : "application/json",
                              .content_length = answer.size(),
                              .closes = closes_});
  out_ += answer;
  answered();
}

void HttpClient::answer_mcp_stream(std::string_view answer) {
  reserve_for_answer(answer.size());
  if (!answer.empty()) out_ += mcp_event(answer);
  answered();
  advance();
}

// Nobody is asked to wait longer without a sign; who does not read these is given up.
void HttpClient::be_late_with_mcp() {
  if (phase_ == Phase::answer) begin_mcp_stream();
  if (out_.empty()) {
    out_ = ":\n\n";
    mcp_->unread_comments = 0;
  } else if (++mcp_->unread_comments >= most_unread_comments) {
    return close();
  }
  expect(comment_time);
  flush();
}

}  // namespace duet::app
