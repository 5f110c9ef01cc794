#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "duet/base/clock.h"
#include "duet/transport/channel.h"

namespace duet::app::mcp {

/// The channel to the client: writes one line at a time, as clients expect it, and knows when the client was heard
/// last. What is written must be whole lines. Owns the channel that it stands before.
class ClientChannel final : public transport::Channel {
 public:
  ClientChannel(std::unique_ptr<transport::Channel> channel, const base::Clock& clock)
      : channel_(std::move(channel)), clock_(clock), heard_at_(clock.now()) {}

  void open(Listener& listener) override { channel_->open(listener); }
  void want(bool reading, bool writing) override { channel_->want(reading, writing); }
  transport::IoResult read(std::span<char> into) override {
    const transport::IoResult got = channel_->read(into);
    if (got.state == transport::IoResult::State::some) heard_at_ = clock_.now();
    return got;
  }
  transport::IoResult write(std::string_view bytes) override {
    return channel_->write(bytes.substr(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1));
  }
  void end_output() override { channel_->end_output(); }
  void close() override { channel_->close(); }

  base::TimePoint heard_at() const { return heard_at_; }

 private:
  std::unique_ptr<transport::Channel> channel_;
  const base::Clock& clock_;
  base::TimePoint heard_at_;
};

}  // namespace duet::app::mcp
