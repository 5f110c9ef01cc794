#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>

#include "duet/framing/block_pool.h"
#include "duet/framing/frame.h"
#include "duet/rpc/message.h"
#include "duet/transport/channel.h"

namespace duet::peer {

/// A message as it goes over the wire, for one that goes to many.
std::string framed(framing::Encoder& encoder, const rpc::Pieces& pieces);

/// Messages on their way out, framed. Grows in portions, so that much waiting output is neither
/// copied nor held twice; owns almost no memory when everything is written.
class Output {
 public:
  Output(framing::Encoder& encoder, framing::BlockPool& pool) : encoder_(encoder), pool_(pool) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { clear(); }

  void add(const rpc::Pieces& pieces);
  /// What framed() made.
  void add_framed(std::string_view message);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Writes what the channel takes. State::some: everything is out.
  transport::Moved write_to(transport::Channel& channel);
  void clear();

 private:
  // Framed messages, one behind another.
  struct Portion {
    framing::Block block;
    std::size_t size = 0;
  };

  char* make_room(std::size_t more);
  void take(std::size_t added);
  void drop_front_portion();

  framing::Encoder& encoder_;
  framing::BlockPool& pool_;
  std::list<Portion> portions_;  // full ones, before last_; unlike a deque, it owns nothing while it is empty
  Portion last_;
  std::size_t sent_ = 0;  // of the first portion
  std::size_t size_ = 0;
  std::size_t usual_ = 0;  // what last_ held when it was written last
};

}  // namespace duet::peer
