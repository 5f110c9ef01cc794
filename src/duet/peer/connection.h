#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "duet/api.h"
#include "duet/base/log.h"
#include "duet/peer/conversation.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::peer {

/// Why a connection is no more.
enum class Ending : std::uint8_t { input_ended, stopped, peer_gone, unreadable };

/// What the owner of a connection wants to hear. All optional.
struct ConnectionEvents {
  std::function<void(Ending)> on_closed = {};  ///< the last call; destroy the connection in a later turn, not in here
  std::function<void()> on_load_changed = {};
  std::function<void()> on_unwritable = {};  ///< a client's: the peer reads no more; what it sends is still read
  ConversationEvents conversation = {};      ///< but for on_wake and hand_over, which are the connection's
};

/// Joins a conversation to a channel and a loop: reads what the conversation wants, writes what it gives, and wakes it
/// when time is up.
///
/// All frames of one read are handled before one write. Memory of large messages comes from `pool`, which connections
/// may share, and goes back to the system when the pool has been idle for a second. For the loop's thread only.
class DUET_API Connection final : private transport::Channel::Listener {
 public:
  Connection(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, const Protocol& protocol,
             const Methods& methods, base::Log& log, ConnectionEvents events = {}, const Peer& peer = {},
             std::shared_ptr<framing::BlockPool> pool = nullptr);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// With what was read from the channel already, if anything was.
  void open(std::string_view first_bytes = {});
  Conversation& conversation() { return conversation_; }
  const Conversation& conversation() const { return conversation_; }

  /// See Conversation.
  CallId call(std::string_view method, const rpc::Json& params, base::Duration patience, CallCallback callback) {
    return conversation_.call(method, params, patience, std::move(callback));
  }
  template <rpc::TextType Text>
  CallId call(std::string_view method, const Text& params, base::Duration patience, CallCallback callback) = delete;
  bool notify(std::string_view method, const rpc::Json& params) { return conversation_.notify(method, params); }
  template <rpc::TextType Text>
  bool notify(std::string_view method, const Text& params) = delete;
  bool send(Announcement& message, std::size_t most_waiting) { return conversation_.send(message, most_waiting); }
  void stop() { conversation_.stop(); }
  void close_with(std::uint16_t code, std::string_view reason) { conversation_.close_with(code, reason); }
  void ask_to_stop() { conversation_.ask_to_stop(); }
  const Peer& peer() const { return conversation_.peer(); }
  std::size_t load() const { return conversation_.load(); }

  /// Reads what is there now, e.g. because the process at the other end has ended. A handler may ask for it, but not
  /// one of this connection, nor what this connection calls back otherwise: they are in the middle of a read.
  void drain();
  /// At once, whatever waits.
  void close(Ending ending = Ending::stopped);
  bool is_closed() const { return conversation_.is_closed(); }
  /// errno of the read or write that failed; 0: none did.
  int failure() const { return failure_; }

 private:
  void on_readable() override;
  void on_writable() override;
  void on_hangup() override;

  bool read(std::span<char> scratch);
  void advance();
  void resume();
  void write_output();
  void write_failed(int error);
  void update_wants();
  void update_timer();
  void advance_later();
  void tell_load();

  transport::Loop& loop_;
  std::unique_ptr<transport::Channel> channel_;
  std::shared_ptr<framing::BlockPool> pool_;
  ConnectionEvents events_;
  Conversation conversation_;

  bool closed_ = false;
  int failure_ = 0;
  bool input_ended_ = false;
  bool output_broken_ = false;
  bool reading_ = true;  // what the channel was told
  bool writing_ = false;
  bool woken_ = false;     // since the load was told
  bool told_idle_ = true;  // channel, loop and owner were told what an idle conversation would tell them
  std::size_t told_load_ = 0;
  transport::Loop::Deferred advancing_;
  transport::Loop::Timer timer_;
  base::TimePoint timer_at_;
};

}  // namespace duet::peer
