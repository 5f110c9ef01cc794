#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <utility>

#include "duet/rpc/message.h"

namespace duet::peer {

/// Keeps answers in the order of their requests while some of them are not known yet: what is added behind a reserved
/// place leaves when that place is filled. Knows nothing of requests. While nothing is reserved it costs nothing.
class AnswerQueue {
 public:
  /// Where an answer will stand.
  struct Place {
    bool known = false;
    std::string answer = {};  // empty: a notification's
  };
  using Sink = std::function<void(const std::string& answer)>;

  /// `sink` gets what leaves the queue.
  explicit AnswerQueue(Sink sink) : sink_(std::move(sink)) {}

  bool empty() const { return places_.empty(); }
  /// Bytes that are held.
  std::size_t size() const { return size_; }

  /// The place stays valid until it is filled, or the queue is cleared.
  Place& reserve();
  void fill(Place& place, std::string answer);
  void add(const rpc::Pieces& answer);
  void clear();

 private:
  static constexpr std::size_t place_bytes = 96;  // what a place costs beside its text, roughly

  void let_go();

  Sink sink_;
  std::list<Place> places_;
  std::size_t size_ = 0;
};

}  // namespace duet::peer
