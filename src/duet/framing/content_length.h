#pragma once

#include "duet/framing/frame.h"
#include "duet/framing/header_block.h"
#include "duet/framing/input_buffer.h"

namespace duet::framing {

/// Cuts a byte stream into LSP frames and finds its way back after a broken one.
///
/// A faulty frame is reported once; what follows is skipped, silently and without being stored, up
/// to the next header block. That is exact, because no valid JSON text contains a header block. The
/// caller tells by reject() that a body was no JSON: its length may have been wrong, so the search
/// then begins inside it. Of a header with two lengths, one of them perhaps hidden in another line,
/// the last may be that of an intact frame behind the rest of another: after the fault of the whole
/// it is tried, and if it fails too, nothing is said.
class ContentLengthDecoder final : public Decoder {
 public:
  explicit ContentLengthDecoder(std::size_t max_length = max_body) : max_length_(max_length), in_(own_pool_) {}
  ContentLengthDecoder(std::size_t max_length, BlockPool& pool) : max_length_(max_length), in_(pool) {}

  void feed(std::string_view bytes) override { in_.feed(bytes); }
  void feed_in_place(std::span<char> bytes) override { in_.feed({bytes.data(), bytes.size()}); }
  std::span<char> room() override { return in_.room(); }
  void commit(std::size_t count) override { in_.commit(count); }
  std::optional<Frame> next() override;
  std::optional<Fault> reject() override;
  std::optional<Fault> finish() override;
  Extent fault_extent() const override { return fault_extent_; }
  bool is_empty() const override { return in_.empty() && state_ != State::body; }
  bool inside_frame() const override;
  std::uint64_t frames_begun() const override { return frames_; }
  std::string_view held() const override { return in_.view(); }
  Extent partial_extent() const override;
  void drop_partial() override;

 private:
  enum class State : std::uint8_t { header, body, overlong_header, search };
  enum class Shortened : std::uint8_t { no, in_name, in_value };

  void read_header(std::optional<Frame>& frame);
  std::size_t read_plain_header();
  void malformed_header(std::size_t size, std::optional<Frame>& frame);
  void end_of_header(std::size_t block_size, std::optional<Frame>& frame);
  void header_limit_reached(std::optional<Frame>& frame);
  void read_body(std::optional<Frame>& frame);
  void note_hidden_block(std::string_view header);
  bool try_hidden_block();
  bool read_overlong_header();
  bool search();

  bool add_overlong_line(std::string_view line);
  bool shorten_unfinished_line();
  std::optional<Shortened> overlong_part(std::string_view line) const;
  void trim_to(std::size_t kept);
  FoundBlock find_expected_block(std::string_view text, std::size_t end) const;
  FoundBlock find_block_inside(std::string_view body, std::size_t from) const;

  void expect_header();
  void resume_at(const FoundBlock& block);
  void start_search(std::uint64_t payload, bool at_line_start = true);
  void tell(const Extent& extent, Fault fault, std::optional<Frame>& frame);

  std::size_t max_length_;
  BlockPool own_pool_;  // for a decoder that shares none
  InputBuffer in_;
  State state_ = State::header;
  std::uint64_t frames_ = 0;
  std::size_t used_ = 0;  // of the frame handed out last

  HeaderBlock block_;           // of the header being read
  std::size_t line_begin_ = 0;  // header: where the unfinished line starts
  std::size_t scanned_ = 0;     // header: no newline from line_begin_ to here; body, search: no block ends before here
  std::size_t length_ = 0;      // body
  bool is_guess_ = false;       // header, body: see Frame
  std::optional<HeaderBlock> hidden_block_;  // what else the header of the frame may have been meant to be
  Extent fault_extent_;
  Shortened shortened_ = Shortened::no;  // overlong header: whether only the end of the unfinished line is still held

  // Search: where the next header is expected (a payload may still have to pass), counted from the
  // buffer's start, and whether the buffer starts at the start of a line.
  std::uint64_t expected_at_ = 0;
  bool at_line_start_ = true;
};

/// `Content-Length: N`, a blank line, the body.
class ContentLengthEncoder final : public Encoder {
 public:
  std::size_t begin(char* at, std::size_t body_size) override;
  std::size_t end(char*, std::span<char>) override { return 0; }
};

}  // namespace duet::framing
