#include "duet/framing/http_request.h"

#include <algorithm>
#include <utility>

namespace duet::framing {

void HttpRequestDecoder::feed(std::string_view bytes) {
  if (state_ != State::ended) in_.feed(bytes);
}

std::optional<HttpPart> HttpRequestDecoder::next() {
  std::optional<HttpPart> part;
  in_.drop(std::exchange(used_, 0));
  if (state_ == State::skipped_body) skip();
  if (state_ == State::head) {
    read_head(part);
  } else if (state_ == State::body) {
    hand_out_body(part);
  } else if (state_ == State::ended) {
    in_.drop(in_.view().size());
  }
  if (!part) in_.keep();
  return part;
}

void HttpRequestDecoder::read_head(std::optional<HttpPart>& part) {
  if (in_.empty()) return;
  switch (scan_.advance(in_.view())) {
    case HttpHeadScan::Found::nothing:
      return;
    case HttpHeadScan::Found::fault:
      return end(scan_.fault(), part);
    case HttpHeadScan::Found::head:
      state_ = State::decision;
      part.emplace().head = scan_.head(in_.view());
      length_ = part->head->content_length;
  }
}

void HttpRequestDecoder::hand_out_body(std::optional<HttpPart>& part) {
  if (length_ > max_body_) return end(HttpFault::too_large, part);
  const auto size = static_cast<std::size_t>(length_);
  if (in_.view().size() < size) return;
  state_ = State::head;
  used_ = size;
  part.emplace().body = in_.view().substr(0, size);
}

void HttpRequestDecoder::skip() {
  const std::size_t here = in_.view().size();
  const std::size_t count = length_ < here ? static_cast<std::size_t>(length_) : here;
  in_.drop(count);
  length_ -= count;
  if (length_ == 0) state_ = State::head;
}

void HttpRequestDecoder::end(HttpFault fault, std::optional<HttpPart>& part) {
  state_ = State::ended;
  in_.drop(in_.view().size());
  part.emplace().fault = fault;
}

void HttpRequestDecoder::read_body() {
  in_.drop(scan_.size());
  scan_ = {};
  state_ = State::body;
}

void HttpRequestDecoder::skip_body() {
  read_body();
  state_ = State::skipped_body;
}

std::string_view HttpRequestDecoder::take_rest() {
  in_.drop(scan_.size());
  state_ = State::ended;
  return in_.view();
}

}  // namespace duet::framing
