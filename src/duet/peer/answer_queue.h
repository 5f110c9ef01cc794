#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

#include "duet/rpc/message.h"

namespace duet::peer {

/// Where answers go.
class AnswerSink {
 public:
  virtual void add(const rpc::EncodedMessage& answer) = 0;

 protected:
  ~AnswerSink() = default;
};

/// Keeps answers in the order of their requests while some of them are not known yet: what is added behind a reserved
/// place leaves when that place is filled. Knows nothing of requests. While nothing is reserved it costs nothing.
class AnswerQueue {
 public:
  /// Where an answer will stand.
  struct Place {
    std::size_t size = 0;  // what it costs beside its text, roughly
    bool known = false;
    std::string answer = {};  // empty: a notification's
  };

  /// `sink` gets what leaves the queue.
  explicit AnswerQueue(AnswerSink& sink) : sink_(sink) {}

  bool empty() const { return places_.empty(); }
  /// How many answers have left, and how many will have when all that have a place now are known.
  std::uint64_t given() const { return given_; }
  std::uint64_t promised() const { return given_ + places_.size(); }
  /// Bytes that are held.
  std::size_t size() const { return size_; }

  /// The place stays valid until it is filled, or the queue is cleared. `held`: what somebody keeps for it elsewhere.
  Place& reserve(std::size_t held = 0);
  void fill(Place& place, std::string answer);
  /// Behind all that has a place.
  void add(const rpc::EncodedMessage& answer) {
    if (!places_.empty()) return keep(answer);
    ++given_;
    sink_.add(answer);
  }
  void clear();

 private:
  void keep(const rpc::EncodedMessage& answer);
  void release_known();

  AnswerSink& sink_;
  std::list<Place> places_;
  std::size_t size_ = 0;
  std::uint64_t given_ = 0;
};

}  // namespace duet::peer
