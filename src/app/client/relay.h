#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "duet/framing/block_pool.h"
#include "duet/framing/frame.h"
#include "duet/peer/output.h"
#include "duet/peer/protocol.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"
#include "duet/transport/channel.h"

namespace duet::app {

/// Carries messages between a client, in the framing that it speaks, and the daemon, which speaks lines.
///
/// A message goes on as it is spelt, batches included; only line ends between its tokens become blanks. What is no
/// message is answered here, as a server would: the daemon sees nothing of it. Each side is read only while the other
/// one takes what was read, so that no more waits here than `most_waiting` and one message in each direction. Both
/// channels are of one loop and not open yet. For the loop's thread only.
class Relay {
 public:
  static constexpr std::size_t most_waiting = 1U << 20U;

  /// Why there is nothing more to carry.
  enum class Ending : std::uint8_t {
    done,         ///< the client's input has ended, and it has every answer
    client_gone,  ///< it does not read any more
    unreadable,   ///< its input is broken
    daemon_gone,  ///< all that the daemon has written is with the client
    refused,      ///< the daemon refused the events that were asked for; see refusal()
    oversize,     ///< the daemon wrote a message that is larger than max_answer
  };
  struct Events {
    std::function<void()> on_last_request;  ///< the daemon has all that the client has written, and it writes no more
    std::function<void(Ending)> on_end;     ///< once
  };

  Relay(std::unique_ptr<transport::Channel> client, peer::Protocol::Framing framing,
        std::unique_ptr<transport::Channel> daemon, Events events);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  /// Asks for events before anything that the client asks for. The client hears nothing before that is answered, and
  /// nothing of the answer. Before open().
  void subscribe(const rpc::Json& params);
  void open();
  /// Nobody reads what is written to the client.
  void client_has_gone() { end(Ending::client_gone); }

  /// The `error` of a refused subscription.
  const std::string& refusal() const { return refusal_; }

 private:
  struct Side final : transport::Channel::Listener {
    Side(Relay& owner, std::unique_ptr<transport::Channel> carrier, const peer::Protocol& protocol);
    void on_readable() override { relay.read(*this); }
    void on_writable() override { relay.settle(); }
    void on_hangup() override { relay.read_rest(*this); }

    Relay& relay;
    std::unique_ptr<transport::Channel> channel;
    framing::BlockPool pool;
    std::unique_ptr<framing::Decoder> decoder;
    std::unique_ptr<framing::Encoder> encoder;
    peer::Output output;
    bool has_ended = false;   // nothing more comes from it
    bool takes_none = false;  // nothing more can be written to it
  };

  bool read_some(Side& side);
  void read(Side& side);
  void read_rest(Side& side);
  void take_end(Side& side, bool is_broken);
  void take_from_client(const framing::Frame& frame);
  void take_unreadable(const framing::Frame& frame);
  void take_from_daemon(const framing::Frame& frame);
  void take_subscription(std::string_view message);
  void answer(std::string_view id, const rpc::Error& error);
  static void pass_on(std::string_view message, Side& to);

  void settle();
  void write(Side& side);
  void want();
  void end(Ending ending);

  Events events_;
  Side client_;
  Side daemon_;
  std::vector<char> room_;
  std::size_t own_answers_ = 0;   // bytes, since the client had read everything
  std::size_t owed_answers_ = 0;  // to requests that were passed on; those of batches are not counted
  bool awaits_subscription_ = false;
  bool told_last_request_ = false;
  bool has_ended_ = false;
  std::string refusal_;
};

}  // namespace duet::app
