#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "app/doors/refusal_log.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"
#include "duet/transport/tls_channel.h"
#include "duet/transport/tls_context.h"

namespace duet::app {

/// What the TLS door tells its owner.
struct TlsDoorCalls {
  /// A handshake is done: whoever has this number is known from now on.
  std::function<void(std::uint64_t number, const transport::TlsSession&)> on_known;
  /// It has said what it speaks: HTTP, or lines. The channel is the owner's now.
  std::function<void(std::uint64_t number, std::unique_ptr<transport::Channel>, const transport::PeerIdentity&,
                     std::string_view first_bytes, bool speaks_http)>
      on_arrived;
  /// The connection of that number is closed, whoever had it.
  std::function<void(std::uint64_t number)> on_gone;
};

struct TlsDoorLimits {
  std::size_t handshakes = 64;  ///< at once; and so many may be silent at once after theirs
  /// So many without a handshake may have a connection, those included that are told why it ends. If there are more,
  /// the connection of one that is refused is closed at once, and it may miss the reason.
  std::size_t strangers = 128;
  base::Duration patience = std::chrono::seconds(10);  ///< for the handshake, and then for the first byte
  /// A peer has this long to go on with its handshake before a new one may push it out. Until then the new one waits to
  /// be accepted.
  base::Duration moment = std::chrono::milliseconds(100);
};

/// Shakes hands with whoever comes, and finds out what they speak: by ALPN, else by the first byte. Of those whose
/// handshake is not done, the one that waits longest makes way for the next; so does the one that is silent longest
/// after its handshake. For the loop's thread only.
class TlsDoor final : private transport::Acceptor::Listener {
 public:
  TlsDoor(transport::Loop& loop, base::Log& log, TlsDoorCalls calls, TlsDoorLimits limits = {});
  TlsDoor(const TlsDoor&) = delete;
  TlsDoor& operator=(const TlsDoor&) = delete;
  ~TlsDoor();

  /// Takes clients from there, and from nowhere else. Throws std::system_error.
  void open(std::unique_ptr<transport::Acceptor> acceptor);
  /// For all handshakes that begin from now on; before open().
  void use(std::shared_ptr<const transport::TlsContext> context) { context_ = std::move(context); }
  /// Takes nobody any more, and closes those who have not said what they speak.
  void close();
  /// Takes nobody until the next open(); who is there stays.
  void stop_listening();
  /// Ends the connection of that number, if it has not arrived yet.
  void turn_out(std::uint64_t number);
  /// There may be room again.
  void resume();

 private:
  class Guest;

  bool has_room() override;
  void admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) override;
  Guest* longest_waiting();
  void shaken(Guest& guest);
  void await_first_byte(Guest& guest);
  void arrived(Guest& guest, std::string_view first_bytes, bool speaks_http);
  void refuse(Guest& guest, const transport::TlsFailure& failure);
  void forget_later(Guest& guest);

  transport::Loop& loop_;
  base::Log& log_;
  TlsDoorCalls calls_;
  TlsDoorLimits limits_;
  RefusalLog refusals_;
  std::shared_ptr<const transport::TlsContext> context_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Guest>> guests_;
  std::set<std::uint64_t> shaking_;    // of them, the one that came first first
  std::set<std::uint64_t> silent_;     // of them, those whose handshake is done, in the same order
  std::set<std::uint64_t> strangers_;  // without a handshake, and their connection is not closed yet
  std::vector<std::uint64_t> left_;
  transport::Loop::Deferred forgetting_;
  base::Lifetime lifetime_;
};

}  // namespace duet::app
