#include "duet/transport/tls_farewell.h"

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace duet::transport {
namespace {

constexpr auto farewell_patience = std::chrono::seconds(1);
constexpr std::size_t most_read_past = 64 * 1024;

// Its own timer owns it, so that it ends with the loop at the latest.
class Farewell final : private Channel::Listener {
 public:
  Farewell(Loop& loop, std::unique_ptr<Channel> channel, std::string last_bytes, std::shared_ptr<void> place)
      : loop_(loop), place_(std::move(place)), channel_(std::move(channel)), left_(std::move(last_bytes)) {}

  static void begin(const std::shared_ptr<Farewell>& self) {
    self->timer_ = self->loop_.after(farewell_patience, [self] { self->finish(); });
    self->channel_->open(*self);
    self->send();
  }

 private:
  void on_readable() override {
    std::array<char, 4096> room;
    const IoResult moved = channel_->read(room);
    if (moved.state == IoResult::State::blocked) return;
    read_past_ += moved.count;
    if (moved.state != IoResult::State::some || read_past_ > most_read_past) finish();
  }
  void on_writable() override { send(); }
  void on_hangup() override { finish(); }

  void send() {
    while (!left_.empty()) {
      const IoResult moved = channel_->write(left_);
      if (moved.state == IoResult::State::blocked) return channel_->want(true, true);
      if (moved.state != IoResult::State::some) return finish();
      left_.erase(0, moved.count);
    }
    channel_->want(true, false);
    channel_->end_output();
  }

  // The peer's end and the timer may both come in one turn. The timer, or the channel, is calling us: they are
  // destroyed when that has returned.
  void finish() {
    if (!channel_) return;
    channel_->close();
    loop_.defer([timer = std::move(timer_), channel = std::move(channel_), place = std::move(place_)] {});
  }

  Loop& loop_;
  std::shared_ptr<void> place_;
  std::unique_ptr<Channel> channel_;
  std::string left_;
  std::size_t read_past_ = 0;
  Loop::Timer timer_;
};

}  // namespace

void see_off(Loop& loop, std::unique_ptr<Channel> channel, std::string last_bytes, std::shared_ptr<void> place) {
  Farewell::begin(std::make_shared<Farewell>(loop, std::move(channel), std::move(last_bytes), std::move(place)));
}

}  // namespace duet::transport
