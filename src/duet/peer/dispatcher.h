#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "duet/base/log.h"
#include "duet/peer/answer_queue.h"
#include "duet/peer/methods.h"
#include "duet/peer/output.h"
#include "duet/peer/reply.h"
#include "duet/rpc/message.h"

namespace duet::peer {

/// Takes one connection's requests in the order they came, has them handled one after another, and
/// gives out the answers in that order.
///
/// While a handler owes its answer, or while as many bytes of answers as are allowed are not written yet, later
/// messages wait; responses and cancels never do. Of methods that hold nobody up only the answer waits for its turn.
/// This is the one place that calls handlers and catches what they throw.
class Dispatcher {
 public:
  struct Events {
    std::function<void(std::string_view method)> on_waiting;  ///< a request was put off
    std::function<void()> on_settled;                         ///< a late answer came; more may be handled now
    std::function<void(const rpc::Message&)> on_response;     ///< inside a batch
    /// Gets notifications that no method takes; without it they are a warning.
    std::function<void(std::string_view method, std::string_view params)> on_notification;
  };

  /// `most_output` is also the most that the answers of one batch may come to.
  Dispatcher(Connection& connection, const Methods& methods, base::Log& log, rpc::Batches batches, Output& output,
             std::size_t most_output, Events events);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  /// A request, notification, batch or refused message; `text` is what it was decoded from.
  void take(const rpc::Message& message, std::string_view text);
  /// Handles what waits, as far as it may.
  void go_on();
  /// Handles no more while so much is not written yet.
  void limit_output(std::size_t most) { most_output_ = most; }
  /// Drops what has not begun.
  void forget_waiting();
  /// The peer is gone: whoever still owes an answer is told.
  void abandon();

  /// A request that has begun is not answered yet.
  bool owes_answer() const { return pending_ || !late_answers_.empty() || (batch_ && !batch_->late_answers.empty()); }
  /// What the handler that runs now returns goes out at once, not behind other answers.
  bool answers_at_once() const { return late_answers_.empty() && !batch_; }
  bool has_work() const { return pending_ || batch_ || !waiting_.empty(); }
  /// go_on() would do nothing, whatever has been written.
  bool must_wait() const { return pending_ || (batch_ && batch_->only_owes_answers()); }
  std::size_t waiting_bytes() const { return waiting_bytes_ + late_answers_.size() + (batch_ ? batch_->size() : 0); }

 private:
  friend class AnyReply;
  using SlotPointer = std::shared_ptr<AnyReply::Slot>;

  // A message whose turn has not come.
  struct Waiting {
    std::string text;  // none if it is refused already
    std::string id;    // of one that is
    std::optional<rpc::Error> refusal;
    std::uint64_t number;  // tells what came before a cancel from what came after it
    std::size_t size() const;
  };

  struct Batch {
    Batch() : late_answers([this](const std::string& answer) { append(rpc::encoded(answer)); }) {}
    std::string text;
    std::uint64_t number = 0;
    std::vector<std::pair<std::size_t, std::size_t>> members;  // offset and size
    std::size_t next = 0;
    bool urgent_done = false;  // its responses and cancels have acted
    std::string answers;
    AnswerQueue late_answers;
    void append(const rpc::Pieces& answer);
    bool only_owes_answers() const { return next == members.size() && !late_answers.empty(); }
    std::size_t size() const { return text.size() + answers.size() + late_answers.size(); }
  };

  bool may_answer() const { return output_.size() < most_output_; }
  void handle(const rpc::Message& message);
  void put_off(const rpc::Message& message, std::string_view text);
  void handle_first_waiting();
  void start_batch(std::string_view text, std::uint64_t number, bool urgent_done);
  void continue_batch();
  void handle_member(Batch& batch, const rpc::Message& message);
  rpc::Message take_member(Batch& batch) const;
  void act_on_urgent(std::string_view array);
  void act_on_urgent_rest(Batch& batch);
  bool act_if_urgent(const rpc::Message& message);
  void invoke(const rpc::Message& message);
  void call(const Method* method, const Request& request);
  void call_late_handler(const Method& method, const Request& request);
  void cancel(const rpc::Message& message);
  void cancel_running();
  bool was_cancelled(const rpc::Message& message, std::uint64_t number) const;
  void forget_cancels();
  void tell_abandoned(const std::function<void()>& callback, std::string_view method);
  void settle(const SlotPointer& slot, const rpc::Json* answer, const rpc::Error* error);
  void give_out(const AnyReply::Slot& slot, const rpc::Json* answer, const rpc::Error* error);
  void reply_dropped(const SlotPointer& slot);
  void reply_dropped_for_good(const SlotPointer& slot);
  AnswerQueue& late_answers() { return batch_ ? batch_->late_answers : late_answers_; }

  void answer(std::string_view id, std::string_view result);
  void refuse(std::string_view id, const rpc::Error& error);
  void refuse_and_note(std::string_view id, const rpc::Error& error);
  void fail(const Request& request, const rpc::Error& error);
  void note_refusal(base::Level level, const rpc::Error& error, std::string_view method, std::string_view id);
  void emit(const rpc::Pieces& pieces);

  Connection& connection_;
  MethodFinder methods_;
  base::Log& log_;
  rpc::Batches batches_;
  Output& output_;
  std::size_t most_output_;
  std::size_t most_batch_answers_;
  Events events_;

  SlotPointer pending_;                         // whom later requests wait for
  std::unordered_set<SlotPointer> unanswered_;  // who holds nobody up
  AnswerQueue late_answers_;
  bool in_handler_ = false;
  SlotPointer in_late_handler_;
  bool dropped_in_handler_ = false;
  std::shared_ptr<Batch> batch_;
  std::deque<Waiting> waiting_;
  std::uint64_t arrived_ = 0;  // how many messages had to wait, batches that run included
  std::map<std::string, std::uint64_t, std::less<>>
      cancelled_;  // id -> arrived_ at that time; only while something waits
  std::size_t cancelled_bytes_ = 0;
  std::size_t waiting_bytes_ = 0;  // of waiting_ and cancelled_
};

}  // namespace duet::peer
