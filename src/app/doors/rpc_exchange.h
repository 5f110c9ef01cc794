#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/framing/block_pool.h"
#include "duet/peer/conversation.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// One message, or one batch, and its answer: what `POST /rpc` and `POST /mcp` are. Whoever destroys it before the
/// answer is known cancels what is asked. For the loop's thread only.
class RpcExchange {
 public:
  /// Who answers, and how it is spoken to: what is received at once is the message.
  struct Served {
    const peer::Methods& methods;
    peer::Protocol protocol = peer::Protocol::one_message();
    bool warns = true;  ///< of notifications that nobody knows
  };

  /// `answered` is called once, not before the constructor has returned, when the answer is whole or it is known that
  /// there is none; `on_gone` when it ends.
  RpcExchange(transport::Loop& loop, base::Log& log, const Served& served, const peer::Peer& peer,
              std::shared_ptr<framing::BlockPool> pool, std::string_view message, std::function<void()> answered,
              std::function<void()> on_gone = {});
  RpcExchange(const RpcExchange&) = delete;
  RpcExchange& operator=(const RpcExchange&) = delete;
  ~RpcExchange() { cancel(); }

  /// Nobody wants the answer any more: that is its end, though it may be destroyed later.
  void cancel();
  bool is_answered() const { return answered_; }
  /// An answer was owed for a while, though it may have been withdrawn.
  bool has_owed() const { return has_owed_; }
  /// How many bytes of the message are kept, or wait, until it is answered.
  std::size_t kept() const { return conversation_.load(); }
  /// How many bytes of the answer are still to be taken; at first 0 if there is none.
  std::size_t left() const { return conversation_.unwritten_bytes(); }
  std::string_view next() { return conversation_.output(); }
  void taken(std::size_t count) { conversation_.written(count); }

 private:
  void advance();
  void advance_later();

  transport::Loop& loop_;
  std::function<void()> tell_;
  std::function<void()> on_gone_;
  bool answered_ = false;
  bool has_owed_ = false;
  peer::Conversation conversation_;
  transport::Loop::Deferred advancing_;
  transport::Loop::Timer timer_;
};

}  // namespace duet::app
