#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "duet/base/log.h"
#include "duet/base/unique_function.h"
#include "duet/peer/answer_queue.h"
#include "duet/peer/methods.h"
#include "duet/peer/output.h"
#include "duet/peer/protocol.h"
#include "duet/peer/reply.h"
#include "duet/rpc/message.h"

namespace duet::peer {

/// Has work done on the thread of a conversation; for any thread. It drops the work when that is impossible.
using HandOver = std::function<void(base::UniqueFunction<void()>)>;

/// A request whose handler has begun and answers later. Its Reply and the Dispatcher share it. What does not change
/// once it is open, and whether it is open, may be looked at on any thread.
struct OpenRequest {
  using ById = std::multimap<std::string_view, std::shared_ptr<OpenRequest>>;

  bool is_open() const { return dispatcher.load(std::memory_order_acquire) != nullptr; }
  /// The caller is not on the conversation's thread, and there is a way to it.
  bool is_elsewhere() const { return hand_over && thread != std::this_thread::get_id(); }
  /// For the conversation's thread. After the answer nobody calls it any more.
  void listen(std::function<void()> callback) {
    if (was_abandoned) return callback();
    if (is_open()) on_abandoned = std::move(callback);
  }

  std::atomic<Dispatcher*> dispatcher = nullptr;  // none: answered or abandoned
  std::thread::id thread;
  std::shared_ptr<const HandOver> hand_over;
  std::string id;        // empty: a notification
  std::string usual_id;  // the same as it is usually spelt; empty: it is
  std::string method;
  AnswerQueue* queue = nullptr;  // none: later requests wait for this answer
  AnswerQueue::Place* place = nullptr;
  ById::iterator entry = {};
  bool was_abandoned = false;
  std::function<void()> on_abandoned = {};
  std::string_view key() const { return usual_id.empty() ? id : usual_id; }
  std::size_t size() const { return sizeof(OpenRequest) + id.size() + usual_id.size() + method.size(); }
};

/// Takes the messages of one conversation in the order they came, has them handled one after another, and gives out the
/// answers in that order.
///
/// While a handler owes its answer, or while as many bytes of answers as are allowed are not written yet, later
/// messages wait; responses and cancels never do. Of pipelined methods only the answer waits for its turn. What has
/// waited, and the members of a batch, are handled in portions, so that others get their turn between them. This is the
/// one place that decodes messages, calls handlers and catches what they throw.
class Dispatcher {
 public:
  struct Events {
    std::function<void(std::string_view method)> on_waiting = {};  ///< a request was put off
    std::function<void()> on_answered = {};  ///< later than its handler returned: there is more to do
    std::function<void(const rpc::Message&)> on_response = {};
    /// Of a protocol that tells faults: JSON, but neither a request, nor a notification, nor a response.
    std::function<void(const rpc::Message&)> on_improper = {};
    /// Gets notifications that no method takes; without it they are a warning.
    std::function<void(std::string_view method, std::string_view params)> on_notification = {};
    HandOver hand_over;  ///< none: a Reply is for the conversation's thread only
  };

  Dispatcher(Conversation& conversation, const Methods& methods, base::Log& log, const Protocol& protocol,
             Output& output, Events events);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  /// A text that has just come. False: it is not JSON, and nothing was done. With a fault of its frame it is refused
  /// for that, whatever it asks.
  bool handle(std::string_view text, const rpc::Error* fault = nullptr);
  /// Answers what cannot be read, in its turn.
  void refuse_unreadable(const rpc::Error& error);
  /// Handles a portion of what waits, as far as it may; can_go_on() tells whether there is more.
  void go_on();
  void allow_batches(bool allowed) { batches_ = allowed ? rpc::Batches::allowed : rpc::Batches::refused; }
  /// Handles no more while so much is not written yet.
  void limit_output(std::size_t most) { most_output_ = most; }
  /// Drops what has not begun.
  void forget_waiting();
  /// The peer is gone: whoever still owes an answer is told.
  void abandon();

  /// A request that has begun is not answered yet.
  bool owes_answer() const { return !open_.empty(); }
  /// How many answers have gone out, and how many will have when what was answered so far has. A batch has one answer,
  /// unless it has none: `is_notification` tells of what the handler that runs now answers.
  std::uint64_t answers_given() const { return answers_.given(); }
  std::uint64_t answers_promised(bool is_notification) const {
    return answers_.promised() + (batch_ && !is_notification ? 1 : 0);
  }
  bool has_work() const { return holding_ || batch_ || !waiting_.empty(); }
  /// Nothing waits here, and nobody owes an answer.
  bool is_idle() const { return open_.empty() && answers_.empty() && !has_work(); }
  /// go_on() would do something.
  bool can_go_on() const { return has_work() && !must_wait() && may_answer(); }
  std::size_t waiting_bytes() const { return waiting_bytes_ + answers_.size() + (batch_ ? batch_->size() : 0); }
  /// Of the request whose answer all others wait for; without order of all that are not answered. They are no reason to
  /// read less: a cancel has to be read.
  std::size_t held_bytes() const { return in_order_ ? (holding_ ? holding_->size() : 0) : open_bytes_; }

 private:
  friend class AnyReply;
  using RequestPointer = std::shared_ptr<OpenRequest>;

  // A message whose turn has not come.
  struct Waiting {
    std::string text;  // none if it is refused already
    std::string id;    // of one that is
    std::optional<rpc::Error> refusal;
    std::uint64_t number;  // tells what came before a cancel from what came after it; a batch has one for each member
    std::size_t size() const;
  };

  // A batch that has begun. It gathers the answers of its members.
  struct Batch final : AnswerSink {
    void add(const rpc::EncodedMessage& answer) override;
    std::string text;
    std::uint64_t number = 0;                                  // of its first member
    std::vector<std::pair<std::size_t, std::size_t>> members;  // offset and size
    std::size_t next = 0;
    bool urgent_done = false;  // its responses and cancels have acted
    std::string gathered;
    AnswerQueue answers{*this};
    std::string_view member(std::size_t index) const;
    std::uint64_t number_of(std::size_t index) const { return number + index; }
    std::size_t answer_bytes() const { return gathered.size() + answers.size(); }
    bool has_begun_all() const { return next == members.size(); }
    bool only_owes_answers() const { return has_begun_all() && !answers.empty(); }
    std::size_t size() const { return text.size() + answer_bytes(); }
  };

  // Why a text is looked at.
  enum class Look : std::uint8_t {
    arrival,  // it has just come
    early,    // it waits; what is urgent in it acts now
    turn,     // its turn has come
  };
  struct Source {
    Look look = Look::arrival;
    const rpc::Error* fault = nullptr;  // of its frame
    std::uint64_t number = 0;
    Batch* batch = nullptr;  // that it is a member of
  };

  bool may_answer() const { return output_.size() + answers_.size() < most_output_; }
  void spend(std::size_t bytes) { portion_left_ -= std::min(bytes, portion_left_); }
  bool must_wait() const { return holding_ || (batch_ && batch_->only_owes_answers()); }
  bool is_free() const { return !has_work() && may_answer(); }

  bool look_at(std::string_view text, const Source& source);
  void begin(const rpc::Message& message, const Source& source);
  void refuse_improper(const rpc::Message& message);
  void act(const rpc::Message& urgent, const Source& source);
  void put_off(const rpc::Message& message, std::string_view text, const rpc::Error* fault);
  void put_off(Waiting waiting);
  void begin_first_waiting();

  bool is_urgent(const rpc::Message& message) const;
  void start_batch(std::string_view text, const Source& source);
  void continue_batch();
  void act_on_urgent(Batch& batch);
  void end_batch(const Batch& batch);
  void end_detached(const AnswerQueue* queue);

  void invoke(const rpc::Message& message);
  void refuse_if_not_permitted(const Method& method);
  void call(const Method* method, const Request& request);
  void call_late_handler(const Method& method, const Request& request);
  void fail(const Request& request, const rpc::Error& error, bool is_logged);

  void cancel(const rpc::Message& message, std::uint64_t number);
  void cancel_open(const RequestPointer& request);
  bool was_cancelled(const rpc::Message& message, std::uint64_t number) const;
  void forget_cancels();
  void tell_abandoned(const std::function<void()>& callback, std::string_view method);

  void finish(const RequestPointer& request, const rpc::Json& answer);
  void finish(const RequestPointer& request, const rpc::Error& error, bool is_logged = false);
  void close(const RequestPointer& request, const rpc::EncodedMessage* answer);
  void leave_unanswered(const RequestPointer& request);
  const Batch* batch_of(const OpenRequest& request) const;
  void reply_dropped(const RequestPointer& request);
  void refuse_dropped(const RequestPointer& request);

  AnswerQueue& answers() { return batch_ ? batch_->answers : answers_; }
  void refuse(std::string_view id, const rpc::Error& error);
  void refuse_and_note(std::string_view id, const rpc::Error& error);
  void note_refusal(const rpc::Error& error, std::string_view method, std::string_view id);

  Conversation& conversation_;
  MethodFinder methods_;
  base::Log& log_;
  rpc::Batches batches_;
  const std::size_t max_batch_;
  const bool in_order_;
  const bool strict_ids_;
  const Protocol::Cancels cancels_;
  bool tells_faults_;
  Output& output_;
  std::size_t most_output_;
  const std::size_t most_batch_answers_;
  const std::size_t portion_;     // bytes of messages that are handled at once
  std::size_t portion_left_ = 0;  // of the one that is being handled
  Events events_;
  std::shared_ptr<const HandOver> hand_over_;  // it outlives the conversation if a Reply does

  OpenRequest::ById open_;
  std::size_t open_bytes_ = 0;
  RequestPointer holding_;  // whom later requests wait for; one of open_
  AnswerQueue answers_;
  bool in_handler_ = false;
  RequestPointer in_late_handler_;
  bool dropped_in_handler_ = false;
  std::shared_ptr<Batch> batch_;
  std::list<std::shared_ptr<Batch>> detached_;  // without order: begun to the last member, and waiting for answers
  std::deque<Waiting> waiting_;
  std::uint64_t arrived_ = 0;  // how many messages had to wait, and members of batches
  std::map<std::string, std::uint64_t, std::less<>>
      cancelled_;  // id -> the number of the last message it concerns; only while something waits
  std::size_t cancelled_bytes_ = 0;
  std::size_t waiting_bytes_ = 0;  // of waiting_ and cancelled_
};

}  // namespace duet::peer
