#include "duet/transport/memory.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace duet::transport {
namespace {

struct Pipe {
  std::size_t capacity;
  std::string bytes;
  bool writer_gone = false;
  bool reader_gone = false;
};

// Calls back through the loop, never from inside the other end's call.
class MemoryChannel final : public Channel, public std::enable_shared_from_this<MemoryChannel> {
 public:
  MemoryChannel(Loop& loop, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : loop_(loop), in_(std::move(in)), out_(std::move(out)) {}

  void join(const std::shared_ptr<MemoryChannel>& other) { other_ = other; }

  void open(Listener& listener) override {
    listener_ = &listener;
    want(true, false);
  }

  void want(bool reading, bool writing) override {
    reading_ = reading;
    writing_ = writing;
    look_later();
  }

  IoResult read(std::span<char> into) override {
    if (in_->bytes.empty()) return {in_->writer_gone ? IoResult::State::ended : IoResult::State::blocked};
    const std::size_t count = in_->bytes.copy(into.data(), into.size());
    in_->bytes.erase(0, count);
    tell_other();
    return {IoResult::State::some, count};
  }

  IoResult write(std::string_view bytes) override {
    if (out_->reader_gone) return {IoResult::State::broken, 0, EPIPE};
    const std::size_t count = std::min(bytes.size(), out_->capacity - out_->bytes.size());
    if (count == 0) return {IoResult::State::blocked};
    out_->bytes.append(bytes.substr(0, count));
    tell_other();
    return {IoResult::State::some, count};
  }

  void end_output() override {
    out_->writer_gone = true;
    tell_other();
  }

  void close() override {
    listener_ = nullptr;
    out_->writer_gone = true;
    in_->reader_gone = true;
    tell_other();
  }

 private:
  void tell_other() {
    if (const auto other = other_.lock()) other->look_later();
  }

  void look_later() {
    if (looking_) return;
    looking_ = true;
    loop_.defer([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->look();
    });
  }

  void look() {
    looking_ = false;
    const bool writable = out_->reader_gone || out_->bytes.size() < out_->capacity;
    if (listener_ != nullptr && writing_ && writable) listener_->on_writable();
    const bool readable = !in_->bytes.empty() || in_->writer_gone;
    if (listener_ != nullptr && reading_ && readable) {
      listener_->on_readable();
      if (listener_ != nullptr && reading_) look_again_if_readable();
    }
    if (listener_ != nullptr && !reading_ && !writing_ && out_->reader_gone) listener_->on_hangup();
  }

  void look_again_if_readable() {
    if (!in_->bytes.empty() || in_->writer_gone) look_later();
  }

  Loop& loop_;
  std::shared_ptr<Pipe> in_;
  std::shared_ptr<Pipe> out_;
  std::weak_ptr<MemoryChannel> other_;
  Listener* listener_ = nullptr;
  bool reading_ = false;
  bool writing_ = false;
  bool looking_ = false;
};

// The loop may still hold a call for a channel when its owner lets go of it.
class Handle final : public Channel {
 public:
  explicit Handle(std::shared_ptr<MemoryChannel> channel) : channel_(std::move(channel)) {}
  ~Handle() override { channel_->close(); }
  void open(Listener& listener) override { channel_->open(listener); }
  void want(bool reading, bool writing) override { channel_->want(reading, writing); }
  IoResult read(std::span<char> into) override { return channel_->read(into); }
  IoResult write(std::string_view bytes) override { return channel_->write(bytes); }
  void end_output() override { channel_->end_output(); }
  void close() override { channel_->close(); }

 private:
  std::shared_ptr<MemoryChannel> channel_;
};

}  // namespace

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> memory_pair(Loop& loop, std::size_t capacity) {
  const auto there = std::make_shared<Pipe>(Pipe{.capacity = capacity, .bytes = {}});
  const auto back = std::make_shared<Pipe>(Pipe{.capacity = capacity, .bytes = {}});
  const auto left = std::make_shared<MemoryChannel>(loop, back, there);
  const auto right = std::make_shared<MemoryChannel>(loop, there, back);
  left->join(right);
  right->join(left);
  return {std::make_unique<Handle>(left), std::make_unique<Handle>(right)};
}

}  // namespace duet::transport
