#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "duet/api.h"
#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/base/unique_function.h"
#include "duet/peer/methods.h"
#include "duet/peer/outcome.h"
#include "duet/peer/protocol.h"
#include "duet/rpc/json.h"

namespace duet::framing {
struct Frame;
enum class Fault : std::uint8_t;
}  // namespace duet::framing
namespace duet::rpc {
class EncodedMessage;
struct Message;
}  // namespace duet::rpc

namespace duet::peer {

class Announcement;
class Calls;
class Dispatcher;
class LostText;
class Output;
class WebSocketLink;

/// As what somebody was let in who had to show who he is.
struct Admission {
  std::string door;  ///< where he came in
  std::string name;
  std::string role;                           ///< what he may call: see Methods::set_guard()
  std::optional<base::UtcTime> expires = {};  ///< none: never
};

/// Who is at the other end, as far as the transport can tell.
struct Peer {
  std::uint64_t connection = 0;
  std::int64_t pid = 0;
  std::uint64_t uid = 0;
  std::shared_ptr<const Admission> admission = {};  ///< none: he needed none, and may call everything
};

/// Bytes that were no proper message, where the protocol has faults told.
struct LostMessage {
  std::string_view reason;  ///< as in `error.data.reason`
  std::string_view text;    ///< how they begin
  bool is_printed = false;  ///< text where a header should be
};

/// What the owner of a conversation wants to hear. All optional.
struct ConversationEvents {
  /// Something is to be written or done although nobody called receive(), end_of_input() or tick().
  std::function<void()> on_wake = {};
  /// Called on any thread: does the work later on the thread of the conversation, or drops it when that is impossible.
  /// It may be called after the conversation has gone. Without it a Reply is for the conversation's thread only.
  std::function<void(base::UniqueFunction<void()>)> hand_over = {};
  std::function<void()> on_input_ended = {};
  std::function<void(std::string_view method)> on_waiting = {};  ///< a request waits for an earlier one's answer
  std::function<void(std::string_view method, std::string_view params)> on_notification = {};  ///< of an unknown method
  std::function<void(const LostMessage&)> on_lost = {};
  std::function<void(CallId)> on_late_answer = {};  ///< to a call that was cancelled or has timed out
  std::function<void()> on_noise = {};              ///< once: a MiB came, and not one message
};

/// One conversation, both ways, without I/O: bytes and time in; bytes, calls of handlers and the next deadline out.
///
/// It owns framing, order of answers, batches, calls of our own, cancels and limits. It has no descriptor, no loop, no
/// thread and no clock. Handlers and callbacks run inside receive(), end_of_input(), tick() and resume() only. What is
/// held for the peer is bounded in bytes: partial input, waiting requests, unwritten answers, calls without an answer.
class DUET_API Conversation {
 public:
  Conversation(const Protocol& protocol, const Methods& methods, ConversationEvents events = {});
  /// Memory of large messages comes from `pool`, which conversations may share.
  Conversation(const Protocol& protocol, const Methods& methods, ConversationEvents events, base::Log& log,
               const Peer& peer = {}, std::shared_ptr<framing::BlockPool> pool = nullptr);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation();

  /// Bytes that came, in any portions. What is not handled in here has a deadline(), or waits for an answer.
  void receive(std::string_view bytes, base::TimePoint now);
  /// The same for bytes that may be changed, which saves a copy where a framing has to.
  void receive_in_place(std::span<char> bytes, base::TimePoint now);
  /// Where to read into while part of a message is held, which saves a copy; often empty: receive() takes them then.
  std::span<char> room();
  /// So many bytes were put there.
  void receive_in_room(std::size_t count, base::TimePoint now);
  /// Of a WebSocket it is a disconnect: see close().
  void end_of_input(base::TimePoint now);
  /// False: reading pauses, because too much waits or because it is ending.
  bool wants_input() const;

  /// What is to be written next; there may be more behind it. Empty: everything is written.
  std::string_view output();
  void written(std::size_t count);

  /// When tick() has something to do; a time in the past means now.
  std::optional<base::TimePoint> deadline() const;
  void tick(base::TimePoint now);
  /// Does what can be done without knowing the time: requests that waited, failures of calls. Of requests it handles a
  /// portion, as large as what is read at once; has_more_to_do() tells whether others are left.
  void resume();
  /// resume() would do something.
  bool has_more_to_do() const;
  /// It would handle a request that waits.
  bool can_handle_more() const;
  /// False: nothing depends on the time now, and receive() may be told TimePoint(), which means that it is not known.
  bool is_timed() const;
  /// Nothing waits and nothing is due: what is told of the conversation now is what was told when it began.
  bool is_idle() const;

  /// Asks the peer. The callback gets exactly one outcome, never before call() has returned. The patience runs from the
  /// next time that is told. While the conversation is being destroyed, and calls back for the last time, nothing can
  /// be asked any more: 0 is returned, and no outcome comes. Params are an object or a list, or Json() for none: any
  /// C++ value of that shape. Text that is JSON already is a Json: see Json::parse() and Json::trusted().
  CallId call(std::string_view method, const rpc::Json& params, base::Duration patience, CallCallback callback);
  template <rpc::TextType Text>
  CallId call(std::string_view method, const Text& params, base::Duration patience, CallCallback callback) = delete;
  /// Nobody wants the answer any more: its callback is never called. A call that waits to be written is never sent, for
  /// one that was sent the peer is told by `$/cancelRequest`. True: the peer has seen nothing of it.
  bool cancel(CallId call);
  /// False: so much waits to be written already that the notification was dropped.
  bool notify(std::string_view method, const rpc::Json& params);
  template <rpc::TextType Text>
  bool notify(std::string_view method, const Text& params) = delete;
  /// The same for one that goes to many, with a bound of its own.
  bool send(Announcement& message, std::size_t most_waiting);

  /// Reads no more; what runs may finish; requests that have not begun are dropped, and calls of our own, whose answers
  /// cannot come any more, end. Then it is over; of a WebSocket when the peer has answered our Close, 1001.
  void stop();
  /// The same at once, with what is written so far and for a WebSocket a Close that says why: whoever still owes an
  /// answer is told that nobody wants it.
  void close_with(std::uint16_t code, std::string_view reason);
  /// Any thread, also while a handler runs: nothing new is begun. Whoever asks sees to it that stop() follows.
  void ask_to_stop() { stop_asked_.store(true, std::memory_order_relaxed); }
  bool is_asked_to_stop() const { return stop_asked_.load(std::memory_order_relaxed); }
  /// Nothing is owed and nothing waits after its input has ended or it was stopped.
  bool is_over() const;
  /// At once, whatever waits.
  void close();
  bool is_closed() const { return phase_ == Phase::closed; }
  bool is_stopping() const { return phase_ == Phase::stopping; }
  /// Nothing can be sent any more: it is closed, or our Close was the last.
  bool is_closing() const { return phase_ >= Phase::closing; }

  /// From now on a list is a batch, or is refused, whatever the protocol says.
  void allow_batches(bool allowed);
  /// From now on so much may wait here, if that is less than the protocol's bound.
  void limit_waiting(std::size_t most);
  /// Refuses the message that has only come in part; what still comes of it is skipped. False: there is none.
  bool refuse_partial_message();

  bool owes_answer() const;
  /// How many answers have gone out.
  std::uint64_t answers_given() const;
  /// For a handler that has just answered its request: how many will have when that answer has. It may wait for others
  /// that are not known yet, or for the rest of its batch.
  std::uint64_t answers_promised(const Request& request) const;
  /// Bytes held for this peer.
  std::size_t load() const;
  std::size_t partial_bytes() const;
  std::size_t unwritten_bytes() const;
  std::size_t pending_calls() const;
  bool is_inside_message() const;
  /// When bytes came last, as far as time was told.
  base::TimePoint heard_at() const { return heard_at_; }
  const Peer& peer() const { return peer_; }
  const Protocol& protocol() const { return protocol_; }

 private:
  enum class Phase : std::uint8_t { open, ending, stopping, closing, closed };  // closing: our Close is the last frame

  void handle_frames(base::TimePoint now, bool is_much = false);
  std::size_t looked_at(const framing::Frame& frame) const;
  void handle(const framing::Frame& frame);
  void handle_and_tell(const framing::Frame& frame);
  bool refuse(const framing::Frame& frame);
  void handle_fault(framing::Fault fault);
  void handle_control();
  void end_link_read(base::TimePoint now);
  void end_at_once(std::string close_payload);
  bool close_is_due() const;
  void send_close();
  bool send(std::string_view message, std::size_t most_waiting);
  void handle_unreadable(const framing::Frame& frame);
  void handle_response(const rpc::Message& message);
  void lose(std::string_view reason, std::string_view id);
  void lose_answer(std::string_view id);
  void end_skipped_message();
  void tell_of_oversize();
  void tell_of_noise();
  std::size_t waiting_bytes() const;
  std::size_t most_of_our_own() const;
  bool withdraw(CallId call);
  void end_failed_calls();
  void time_out_calls(base::TimePoint now);
  void notify_of_cancel(CallId call);
  void wake();

  void watch_partial_message(base::TimePoint now);
  base::TimePoint message_deadline() const;
  void drop_overdue_message(base::TimePoint now);
  void drop_partial_message();

  Protocol protocol_;
  std::shared_ptr<framing::BlockPool> pool_;
  base::Log& log_;
  ConversationEvents events_;
  Peer peer_;
  std::unique_ptr<framing::Decoder> decoder_;
  std::unique_ptr<framing::Encoder> encoder_;
  std::unique_ptr<Output> output_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<LostText> lost_text_;  // only where faults are told
  std::unique_ptr<WebSocketLink> link_;  // only of a WebSocket

  Phase phase_ = Phase::open;
  std::atomic<bool> stop_asked_ = false;
  bool is_going_ = false;  // its destructor runs
  std::size_t most_waiting_;
  std::set<CallId> unsent_calls_;  // they are not to be sent; their callbacks are still to be called
  base::TimePoint heard_at_;
  std::uint64_t messages_ = 0;
  bool told_of_noise_ = false;
  bool oversize_is_untold_ = false;
  std::optional<std::string_view> body_;  // of the message that is handled now
  bool follows_skipped_ = false;          // the next message stands behind one that is skipped

  // The partial message that is being timed.
  std::optional<std::uint64_t> timed_message_;
  base::TimePoint began_at_;
  std::optional<base::TimePoint> paused_at_;  // while we do not read
  bool heard_lately_ = false;                 // since the last tick
};

/// A message as it goes over the wire.
DUET_API std::string framed_notification(const Protocol& protocol, std::string_view method, const rpc::Json& params);
template <rpc::TextType Text>
std::string framed_notification(const Protocol& protocol, std::string_view method, const Text& params) = delete;

}  // namespace duet::peer
