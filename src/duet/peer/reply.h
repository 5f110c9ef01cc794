#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "duet/api.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"

namespace duet::peer {

class Dispatcher;
struct OpenRequest;

/// The right to answer one request, once. Movable, so that it can be kept until the answer is known;
/// let go of without an answer, the request is refused as an internal error. After the caller has
/// cancelled or gone an answer does nothing.
///
/// A Reply may be used and destroyed on any thread, by one at a time: what it does on another thread than the loop's is
/// posted to the loop, and dropped when the loop is gone. Of a Conversation without a Connection, see
/// ConversationEvents::hand_over.
class DUET_API AnyReply {
 public:
  AnyReply(AnyReply&&) noexcept = default;
  AnyReply& operator=(AnyReply&& other) noexcept;
  AnyReply(const AnyReply&) = delete;
  AnyReply& operator=(const AnyReply&) = delete;
  ~AnyReply();

  void fail(const rpc::Error& error);
  /// Ends it without an answer, as far as the protocol lets a request stay without one. For the conversation's thread.
  void withdraw();

  /// Nobody waits for the answer any more.
  bool abandoned() const;
  /// Called once when the caller cancels or goes away before the answer; at once if that has happened already. Always
  /// on the conversation's thread, and never when its loop is gone.
  void on_abandoned(std::function<void()> callback);

 protected:
  void answer(rpc::Json&& result);

 private:
  friend class Dispatcher;
  explicit AnyReply(std::shared_ptr<OpenRequest> request) : request_(std::move(request)) {}
  void let_go();
  template <typename Action>
  void hand_over(Action action);

  std::shared_ptr<OpenRequest> request_;
};

/// A reply whose answer is a Result: what the method's description says is what goes out. A `Reply<>` takes anything.
template <typename Result = rpc::Json>
class Reply : public AnyReply {
 public:
  explicit Reply(AnyReply&& reply) : AnyReply(std::move(reply)) {}

  void ok(const Result& result) { answer(rpc::Json(result)); }
  /// The same, spelt already.
  template <std::same_as<rpc::JsonOf<Result>> Text>
  void ok(const Text& result) {
    answer(rpc::Json::view(result.text()));
  }
};

template <>
class Reply<rpc::Json> : public AnyReply {
 public:
  explicit Reply(AnyReply&& reply) : AnyReply(std::move(reply)) {}

  void ok(const rpc::Json& result) { answer(rpc::Json::view(result.text())); }
  void ok(rpc::Json&& result) { answer(std::move(result)); }
};

template <>
class Reply<void> : public AnyReply {
 public:
  explicit Reply(AnyReply&& reply) : AnyReply(std::move(reply)) {}

  void ok() { answer(rpc::Json::view("null")); }
};

/// A reply for a callback that must be copyable, as std::function demands.
template <typename Result>
std::shared_ptr<Reply<Result>> shared(Reply<Result> reply) {
  return std::make_shared<Reply<Result>>(std::move(reply));
}

}  // namespace duet::peer
