#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "duet/framing/frame.h"
#include "duet/framing/http_head.h"
#include "duet/framing/input_buffer.h"

namespace duet::framing {

/// A head, a body, or what went wrong instead.
struct HttpPart {
  std::optional<HttpHead> head;
  std::optional<std::string_view> body;
  std::optional<HttpFault> fault;
};

/// Cuts a byte stream into HTTP/1.1 requests. Bytes may arrive in any portions; the requests are the
/// same. Linear in time, bounded in memory, no I/O, no clock, never throws on bad input.
///
/// Use: feed() or room()/commit(), then next() until it has nothing, then again. After a head nothing
/// comes until its owner has said by read_body(), skip_body() or take_rest() what is to become of
/// what follows, also when the head announces no body. After a fault nothing ever comes: the
/// connection is to be closed, and what still arrives is dropped. It is for the owner to leave bytes
/// unread while it decides or answers. What next() gave is valid until the next call of any kind.
class HttpRequestDecoder {
 public:
  explicit HttpRequestDecoder(std::size_t most = max_body) : max_body_(most), in_(own_pool_) {}
  HttpRequestDecoder(std::size_t most, BlockPool& pool) : max_body_(most), in_(pool) {}

  void feed(std::string_view bytes);  ///< borrowed until next() returns nullopt
  /// Where to read into directly while something is held; empty when nothing is held.
  std::span<char> room() { return in_.room(); }
  void commit(std::size_t count) { in_.commit(count); }

  std::optional<HttpPart> next();  ///< nullopt: needs more bytes, or a decision

  void read_body();  ///< next() gives it once it is whole; a fault if it is larger than the decoder's limit
  void skip_body();  ///< it is passed over, and not kept
  /// Owns what was borrowed, for an owner who asks for more only later. What next() gave goes.
  void keep() {
    in_.drop(std::exchange(used_, 0));
    in_.keep();
  }
  /// For an upgrade: what was read behind the head. No request follows.
  std::string_view take_rest();

  bool inside_head() const { return state_ == State::head && in_.view().size() > used_; }
  bool inside_body() const { return state_ == State::body || state_ == State::skipped_body; }
  bool awaits_decision() const { return state_ == State::decision; }
  bool has_ended() const { return state_ == State::ended; }  ///< after a fault or take_rest()
  std::size_t held() const { return in_.view().size(); }     ///< bytes kept

 private:
  enum class State : std::uint8_t { head, decision, body, skipped_body, ended };

  void read_head(std::optional<HttpPart>& part);
  void hand_out_body(std::optional<HttpPart>& part);
  void skip();
  void end(HttpFault fault, std::optional<HttpPart>& part);

  std::size_t max_body_;
  BlockPool own_pool_;  // for a decoder that shares none
  InputBuffer in_;
  State state_ = State::head;
  HttpHeadScan scan_;
  std::size_t used_ = 0;      // of the body handed out last
  std::uint64_t length_ = 0;  // of the body, or what is still to be skipped of it
};

}  // namespace duet::framing
