#pragma once

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/base/quiet_writer.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// A channel over a connected socket, or over a pair of descriptors such as pipes. Sockets are read
/// and written without their file description being touched; other descriptors are set non-blocking,
/// so they must be ours alone. No write raises SIGPIPE; to a pipe: see base::QuietWriter. What the loop cannot watch
/// (ENOSPC) has hung up.
class DUET_API FdChannel final : public Channel {
 public:
  FdChannel(Loop& loop, base::Fd socket);
  FdChannel(Loop& loop, base::Fd input, base::Fd output);
  ~FdChannel() override;

  void open(Listener& listener) override;
  void want(bool reading, bool writing) override;
  IoResult read(std::span<char> into) override;
  IoResult write(std::string_view bytes) override;
  void end_output() override;
  void acknowledge() override;
  void close() override;

  int input() const { return input_.get(); }

 private:
  // One descriptor and what the loop has been told about it.
  struct Side final : Loop::Watcher {
    Side(FdChannel& owner, int fd) : channel(owner), descriptor(fd) {}
    void on_ready(std::uint32_t ready) override { channel.on_ready(*this, ready); }
    FdChannel& channel;
    int descriptor;
    std::uint32_t events = 0;
    Loop::Watch watch = {};
  };

  void on_ready(Side& side, std::uint32_t events);
  void set_events(Side& side, std::uint32_t events);
  void watch(Side& side);
  bool is_socket() const { return !output_; }

  Loop& loop_;
  base::Fd input_;
  base::Fd output_;  // none for a socket
  Side reading_;
  Side writing_;
  Loop::Deferred hangup_;
  base::QuietWriter writer_;
  Listener* listener_ = nullptr;
};

}  // namespace duet::transport
