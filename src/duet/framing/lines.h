#pragma once

#include "duet/framing/frame.h"
#include "duet/framing/input_buffer.h"

namespace duet::framing {

/// One message a line. A `\r` before the newline and blank lines are ignored; a line longer than the
/// limit is reported once, as soon as it is known, and skipped without being stored.
class LineDecoder final : public Decoder {
 public:
  explicit LineDecoder(std::size_t max_line = max_body) : max_line_(max_line), in_(own_pool_) {}
  LineDecoder(std::size_t max_line, BlockPool& pool) : max_line_(max_line), in_(pool) {}

  void feed(std::string_view bytes) override { in_.feed(bytes); }
  void feed_in_place(std::span<char> bytes) override { in_.feed({bytes.data(), bytes.size()}); }
  std::span<char> room() override { return in_.room(); }
  void commit(std::size_t count) override { in_.commit(count); }
  std::optional<Frame> next() override;
  std::optional<Fault> reject() override { return std::nullopt; }
  std::optional<Fault> finish() override { return std::nullopt; }
  Extent fault_extent() const override { return {.bytes = oversize_bytes_, .announced = {}}; }
  bool is_empty() const override { return in_.empty(); }
  bool inside_frame() const override { return in_.view().size() > used_; }
  std::uint64_t frames_begun() const override { return lines_; }
  std::string_view held() const override { return in_.view(); }
  Extent partial_extent() const override { return {.bytes = held().size(), .announced = {}}; }
  void drop_partial() override;

 private:
  bool partial_line_is_oversize(std::string_view view);
  bool too_long(std::string_view partial) const;

  std::size_t max_line_;
  BlockPool own_pool_;  // for a decoder that shares none
  InputBuffer in_;
  std::size_t used_ = 0;            // of the line handed out last
  std::size_t scanned_ = 0;         // no newline before this
  std::size_t oversize_bytes_ = 0;  // of the line that was too long, as far as it was there
  bool skipping_ = false;
  std::uint64_t lines_ = 0;
};

class LineEncoder final : public Encoder {
 public:
  std::size_t begin(char*, std::size_t) override { return 0; }
  std::size_t end(char* at, std::span<char> payload) override;
};

}  // namespace duet::framing
