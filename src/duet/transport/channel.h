#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "duet/api.h"

namespace duet::transport {

/// What a read or a write came to.
struct IoResult {
  enum class State : std::uint8_t { some, blocked, ended, broken };
  State state = State::blocked;
  std::size_t count = 0;
  int error = 0;  ///< errno of State::broken
};

/// The seam between bytes and messages: something that can be read and written without waiting.
///
/// A channel calls its listener when it can be read or written, as long as that is wanted; it
/// buffers nothing itself. Whoever opened it closes it; after close() the listener is not called.
class DUET_API Channel {
 public:
  class Listener {
   public:
    virtual void on_readable() = 0;
    virtual void on_writable() = 0;
    /// Both directions are gone; nothing more can be delivered.
    virtual void on_hangup() = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~Channel() = default;
  virtual void open(Listener& listener) = 0;
  virtual void want(bool reading, bool writing) = 0;
  virtual IoResult read(std::span<char> into) = 0;
  virtual IoResult write(std::string_view bytes) = 0;
  /// Nothing more is written: where the transport can tell, the peer sees the end, and may still be read.
  virtual void end_output() {}
  /// What was read is acknowledged now, where the transport would wait for an answer to go with it.
  virtual void acknowledge() {}
  virtual void close() = 0;
};

}  // namespace duet::transport
