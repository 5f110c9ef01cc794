#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "duet/framing/frame.h"
#include "duet/rpc/message.h"
#include "duet/transport/channel.h"

namespace duet::peer {

/// Messages on their way out, framed. Grows in portions, so that much waiting output is neither
/// copied nor held twice; owns almost no memory when everything is written.
class Output {
 public:
  explicit Output(framing::Encoder& encoder) : encoder_(encoder) {}

  void add(const rpc::Pieces& pieces);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Writes what the channel takes. State::some: everything is out.
  transport::Moved write_to(transport::Channel& channel);
  void clear();

 private:
  void drop_front_portion();

  framing::Encoder& encoder_;
  std::deque<std::string> portions_;  // full ones, before last_
  std::string last_;
  std::size_t sent_ = 0;  // of the first portion
  std::size_t size_ = 0;
  std::size_t usual_ = 0;  // what last_ held when it was written last
};

}  // namespace duet::peer
