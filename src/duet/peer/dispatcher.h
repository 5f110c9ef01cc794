#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "duet/base/log.h"
#include "duet/peer/methods.h"
#include "duet/peer/output.h"
#include "duet/peer/reply.h"
#include "duet/rpc/message.h"

namespace duet::peer {

/// Takes one connection's requests in the order they came, has them handled one after another, and
/// gives out the answers in that order.
///
/// While a handler owes its answer, or while `most_output` bytes of answers are not written yet, later
/// messages wait. This is the one place that calls handlers and catches what they throw.
class Dispatcher {
 public:
  struct Events {
    std::function<void(std::string_view method)> on_waiting;  ///< a request was put off
    std::function<void()> on_settled;                         ///< a late answer came; more may be handled now
    /// Gets notifications that no method takes; without it they are a warning.
    std::function<void(std::string_view method, std::string_view params)> on_notification;
  };

  Dispatcher(Connection& connection, const Methods& methods, base::Log& log, rpc::Batches batches, Output& output,
             std::size_t most_output, Events events);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  /// A request, notification, batch or refused message; `text` is what it was decoded from.
  void take(const rpc::Message& message, std::string_view text);
  /// Handles what waits, as far as it may.
  void go_on();
  /// Drops what has not begun.
  void forget_waiting();
  /// The peer is gone: whoever still owes an answer is told.
  void abandon();

  bool owes_answer() const { return pending_ != nullptr; }
  bool has_work() const { return pending_ || batch_ || !waiting_.empty(); }
  std::size_t waiting_bytes() const { return waiting_bytes_; }

 private:
  friend class Reply;

  // A message whose turn has not come.
  struct Waiting {
    std::string text;
    std::string id;
    std::optional<rpc::Error> refusal;
    std::size_t size() const { return sizeof(Waiting) + text.size() + id.size(); }
  };

  struct Batch {
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> members;  // offset and size
    std::size_t next = 0;
    std::string answers;
  };

  bool may_answer() const { return output_.size() < most_output_; }
  bool is_free() const { return !pending_ && may_answer(); }
  void handle(const rpc::Message& message);
  void put_off(const rpc::Message& message, std::string_view text);
  void handle_first_waiting();
  void start_batch(std::string_view text);
  void continue_batch();
  void invoke(const rpc::Message& message);
  void call_handler(const Method& method, const Request& request);
  void call_late_handler(const Method& method, const Request& request);
  void cancel(const rpc::Message& message);
  void settle(const Answer* answer, const rpc::Error* error);
  void reply_dropped();
  void reply_dropped_for_good();

  void answer(std::string_view id, std::string_view result);
  void refuse(std::string_view id, const rpc::Error& error);
  void fail(const Request& request, const rpc::Error& error);
  void note_refusal(base::Level level, const rpc::Error& error, std::string_view method, std::string_view id);
  void emit(const rpc::Pieces& pieces);

  Connection& connection_;
  const Methods& methods_;
  base::Log& log_;
  rpc::Batches batches_;
  Output& output_;
  std::size_t most_output_;
  Events events_;

  std::shared_ptr<Reply::Slot> pending_;
  std::string pending_id_;  // empty: a notification
  std::string pending_method_;
  bool in_handler_ = false;
  bool dropped_in_handler_ = false;
  std::unique_ptr<Batch> batch_;
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace duet::peer
