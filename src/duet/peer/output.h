#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "duet/framing/block_pool.h"
#include "duet/framing/frame.h"
#include "duet/peer/answer_queue.h"
#include "duet/peer/outcome.h"
#include "duet/rpc/json.h"
#include "duet/rpc/message.h"

namespace duet::peer {

/// A message as it goes over the wire, for one that goes to many.
std::string framed(framing::Encoder& encoder, const rpc::EncodedMessage& pieces);

/// Params as they go out: none if they are null, which JSON-RPC does not know.
inline std::string_view text_of_params(const rpc::Json& params) {
  return params.text() == "null" ? std::string_view() : params.text();
}

std::string framed_notification(framing::Encoder& encoder, std::string_view method, const rpc::Json& params);

/// Messages on their way out, framed, in the order they were added. Grows in portions, so that much waiting output is
/// neither copied nor held twice; owns almost no memory when everything is written.
class Output final : public AnswerSink {
 public:
  Output(framing::Encoder& encoder, framing::BlockPool& pool) : encoder_(encoder), pool_(pool) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { clear(); }

  void add(const rpc::EncodedMessage& pieces) override;
  /// What framed() made.
  void add_framed(std::string_view message);
  /// A call of ours, which can be withdrawn until front() has shown it. Its id is larger than those before.
  void add_call(CallId id, const rpc::EncodedMessage& pieces);
  /// True: it was not written, and never will be.
  bool withdraw(CallId id);
  bool is_waiting(CallId id) const { return waiting_.contains({id, 0}); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// What is to be written next; empty: all is.
  std::string_view front();
  void written(std::size_t count);
  void clear();

 private:
  // Framed messages, one behind another.
  struct Portion {
    framing::Block block;
    std::size_t size = 0;
  };
  // Of a call that can still be withdrawn: its id and 0. Of a message behind one: its id and a count.
  using WaitingKey = std::pair<CallId, std::uint64_t>;

  char* make_room(std::size_t more);
  void append(std::string_view message);
  void wait(WaitingKey key, std::string message);
  void added(std::size_t bytes);
  void add_waiting();
  void drop_front_portion();

  framing::Encoder& encoder_;
  framing::BlockPool& pool_;
  std::list<Portion> portions_;  // full ones, before last_; unlike a deque, it owns nothing while it is empty
  Portion last_;
  std::map<WaitingKey, std::string> waiting_;  // behind last_, in the order they were added
  std::size_t sent_ = 0;                       // of the first portion
  std::size_t size_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::size_t usual_ = 0;  // what last_ held when it was written last
};

}  // namespace duet::peer
