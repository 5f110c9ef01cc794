#pragma once

#include "duet/framing/frame.h"

namespace duet::framing {

/// For what is one message already, such as the body of an HTTP request: all that is fed at once is it.
class WholeDecoder final : public Decoder {
 public:
  explicit WholeDecoder(std::size_t max_message = max_body) : max_message_(max_message) {}

  void feed(std::string_view bytes) override;
  std::span<char> room() override { return {}; }
  void commit(std::size_t) override {}
  std::optional<Frame> next() override;
  std::optional<Fault> reject() override { return std::nullopt; }
  std::optional<Fault> finish() override { return std::nullopt; }
  Extent fault_extent() const override { return {.bytes = message_.size(), .announced = {}}; }
  bool is_empty() const override { return !is_new_; }
  bool inside_frame() const override { return false; }
  std::uint64_t frames_begun() const override { return messages_; }
  std::string_view held() const override { return {}; }
  Extent partial_extent() const override { return {}; }
  void drop_partial() override {}

 private:
  std::size_t max_message_;
  std::string_view message_;
  bool is_new_ = false;
  std::uint64_t messages_ = 0;
};

/// Nothing stands before a message, and nothing behind it.
class WholeEncoder final : public Encoder {
 public:
  std::size_t begin(char*, std::size_t) override { return 0; }
  std::size_t end(char*, std::span<char>) override { return 0; }
};

}  // namespace duet::framing
