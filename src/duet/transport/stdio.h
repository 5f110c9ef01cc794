#pragma once

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/base/quiet_writer.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// A channel over a process's own stdin and stdout, whatever they are: pipes, sockets, a terminal,
/// files. The input is the loop's blocking input. No flag of a descriptor that other processes share is
/// changed; output that could block is written through a description of our own where the system
/// lets us have one, else in portions that cannot block. No write raises SIGPIPE: see
/// base::QuietWriter.
class DUET_API StdioChannel final : public Channel, private Loop::Watcher {
 public:
  StdioChannel(Loop& loop, base::Fd input, base::Fd output);
  ~StdioChannel() override;

  void open(Listener& listener) override;
  void want(bool reading, bool writing) override;
  IoResult read(std::span<char> into) override;
  IoResult write(std::string_view bytes) override;
  void close() override;

  int input() const { return input_.get(); }

 private:
  enum class Output : std::uint8_t { never_blocks, socket, own_description, shared_description };

  struct Writable final : Loop::Watcher {
    explicit Writable(StdioChannel& owner) : channel(owner) {}
    void on_ready(std::uint32_t) override { channel.listener_->on_writable(); }
    StdioChannel& channel;
  };

  void on_ready(std::uint32_t) override { listener_->on_readable(); }
  void choose_output();
  void stop_waiting_for_output();

  Loop& loop_;
  base::Fd input_;
  base::Fd output_;
  Output kind_ = Output::never_blocks;
  bool is_terminal_;
  Writable writable_;
  bool writing_ = false;
  base::QuietWriter writer_;
  Listener* listener_ = nullptr;
};

/// The stdout guard: moves descriptor 1 away to a private one and points it at stderr, so that no
/// stray print of a library or a child can get between two frames.
DUET_API base::Fd take_stdout();

}  // namespace duet::transport
