#pragma once

#include <array>
#include <string>

#include "duet/transport/channel.h"

namespace duet::transport {

/// The owner of a channel under test: reads when it is told to, and writes down what happened.
class ChannelRecorder final : public Channel::Listener {
 public:
  explicit ChannelRecorder(Channel& channel) : channel_(channel) { channel.open(*this); }

  void on_readable() override {
    std::array<char, 4096> room;
    const IoResult moved = channel_.read(room);
    if (moved.state == IoResult::State::some) text.append(room.data(), moved.count);
    if (moved.state == IoResult::State::blocked) ++empty_reads;
    if (moved.state == IoResult::State::broken) error = moved.error;
    if (moved.state == IoResult::State::some || moved.state == IoResult::State::blocked) return;
    ended = moved.state == IoResult::State::ended;
    channel_.want(false, false);
  }
  void on_writable() override {
    ++writable;
    channel_.want(true, false);
  }
  void on_hangup() override {
    ++hangups;
    channel_.close();
  }

  std::string text;
  bool ended = false;
  int error = 0;
  int empty_reads = 0;
  int writable = 0;
  int hangups = 0;

 private:
  Channel& channel_;
};

/// Writes until the channel takes no more; returns how many bytes it took.
inline std::size_t fill(Channel& channel) {
  const std::string bytes(1024, 'x');
  std::size_t count = 0;
  for (;;) {
    const IoResult moved = channel.write(bytes);
    if (moved.state != IoResult::State::some) return count;
    count += moved.count;
  }
}

}  // namespace duet::transport
