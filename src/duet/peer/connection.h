#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "duet/api.h"
#include "duet/base/log.h"
#include "duet/framing/block_pool.h"
#include "duet/framing/frame.h"
#include "duet/peer/calls.h"
#include "duet/peer/dispatcher.h"
#include "duet/peer/methods.h"
#include "duet/peer/output.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::peer {

/// The two ways of putting messages into bytes, and what goes with each.
enum class Door : std::uint8_t {
  stdio,   ///< LSP framing, no batches, partial frames time out
  socket,  ///< a message a line, batches
};

struct ConnectionLimits {
  std::size_t max_message = framing::max_body;
  /// Answers not yet written plus requests not yet handled; past that, reading pauses. Calls and notifications of our
  /// own may fill half of it, so that two peers that flood each other keep reading.
  std::size_t max_waiting = 64U * 1024 * 1024;
  /// From a frame's first byte to its last (Door::stdio).
  base::Duration read_timeout = std::chrono::seconds(30);
};

/// Why a connection is no more.
enum class Ending : std::uint8_t { input_ended, stopped, peer_gone, unreadable };

/// Who is at the other end, as far as the transport can tell.
struct Peer {
  std::uint64_t connection = 0;
  std::int64_t pid = 0;
  std::uint64_t uid = 0;
};

/// What the owner of a connection wants to hear. All optional.
struct ConnectionEvents {
  std::function<void(Ending)> on_closed;  ///< the last call; destroy the connection in a later turn, not in here
  std::function<void()> on_input_ended;
  std::function<void(std::string_view method)> on_waiting;  ///< a request waits for an earlier one's answer
  std::function<void()> on_load_changed;
  std::function<void(std::string_view method, std::string_view params)> on_notification;  ///< of an unknown method
};

/// One conversation, both ways: bytes in, messages to the Dispatcher, answers out; and calls of our
/// own to the peer.
///
/// All frames of one read are handled before one write. What waits is bounded in bytes, and reading
/// goes on until that bound, so a peer that writes much before it reads does not get stuck. Memory of
/// large messages comes from `pool`, which connections may share, and goes back to the system when
/// the pool has been idle for a second. For the loop's thread only.
class DUET_API Connection final : private transport::Channel::Listener {
 public:
  Connection(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, Door door, const Methods& methods,
             base::Log& log, ConnectionEvents events = {}, ConnectionLimits limits = {}, Peer peer = {},
             std::shared_ptr<framing::BlockPool> pool = nullptr);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void open();

  /// Asks the peer. The callback gets exactly one outcome, never before call() has returned.
  void call(std::string_view method, std::string_view params, base::Duration patience, Calls::Callback callback);
  /// False: so much waits to be written already that the notification was dropped.
  bool notify(std::string_view method, std::string_view params);
  /// The same for a message that framed() made, with a bound of its own.
  bool send(std::string_view message, std::size_t most_waiting);

  /// Reads no more; what runs may finish; requests that have not begun are dropped. Then it closes.
  void stop();
  /// Any thread, also while a handler runs: nothing new is begun. Whoever asks sees to it that stop() follows.
  void ask_to_stop() { stop_asked_.store(true, std::memory_order_relaxed); }
  /// At once, whatever waits.
  void close(Ending ending = Ending::stopped);
  /// From now on so much may wait here, if that is less than the connection's own bound.
  void limit_waiting(std::size_t most);

  bool is_closed() const { return phase_ == Phase::closed; }
  bool owes_answer() const { return dispatcher_.owes_answer(); }
  /// For a handler: what it returns goes out at once, not behind answers that are not known yet.
  bool answers_at_once() const { return dispatcher_.answers_at_once(); }
  /// errno of the read or write that failed; 0: none did.
  int failure() const { return failure_; }
  /// Bytes of answers and requests that wait.
  std::size_t load() const { return output_.size() + dispatcher_.waiting_bytes(); }
  const Peer& peer() const { return peer_; }

 private:
  enum class Phase : std::uint8_t { open, ending, stopping, closed };

  void on_readable() override;
  void on_writable() override;
  void on_hangup() override;

  void take_frames();
  void take(const framing::Frame& frame);
  void take_fault(rpc::Error error, std::string_view id);
  void take_response(const rpc::Message& message);
  void end_of_input();
  void settle_down();
  void write_output();
  void fail(const transport::Moved& moved, Ending ending);
  void update_wants();
  void flush_later();

  void watch_partial_frame();
  void partial_frame_is_due();
  void stop_frame_timer();
  void trim_memory_when_idle();
  std::size_t most_of_our_own() const { return std::max<std::size_t>(most_waiting_ / 2, 1); }

  transport::Loop& loop_;
  std::unique_ptr<transport::Channel> channel_;
  std::shared_ptr<framing::BlockPool> pool_;
  std::unique_ptr<framing::Decoder> decoder_;
  std::unique_ptr<framing::Encoder> encoder_;
  base::Log& log_;
  ConnectionEvents events_;
  ConnectionLimits limits_;
  Peer peer_;
  Door door_;
  rpc::Batches batches_;

  Output output_;
  Calls calls_;
  Dispatcher dispatcher_;

  Phase phase_ = Phase::open;
  Ending ending_ = Ending::stopped;
  int failure_ = 0;
  std::atomic<bool> stop_asked_ = false;
  std::size_t most_waiting_;
  bool reading_ = true;  // what the channel was told
  bool writing_ = false;
  bool flush_planned_ = false;
  std::size_t told_load_ = 0;
  bool sent_lately_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::optional<transport::Loop::Timer> trim_timer_;

  // The partial frame that is being timed.
  std::optional<transport::Loop::Timer> frame_timer_;
  std::optional<std::uint64_t> frame_;
  base::TimePoint frame_began_;
  std::optional<base::TimePoint> paused_at_;
  bool read_lately_ = false;
};

}  // namespace duet::peer
