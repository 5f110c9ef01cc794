#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "duet/base/lifetime.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"
#include "simulate/machine.h"
#include "simulate/population.h"

namespace duet::simulate {

/// A method of the simulated daemon whose answer comes late.
inline constexpr char slow_method[] = "slow";

/// What connects a client and the daemon's server: bytes that were written and not read yet, either way.
struct ClientWire {
  std::string to_client = {};
  std::string to_daemon = {};
  std::size_t capacity = 0;  ///< of what is on its way to the client
  bool client_gone = false;
  bool daemon_gone = false;
  std::function<void()> wake_client = {};  ///< something has come, or the daemon has gone
  std::function<void()> wake_daemon = {};  ///< something has come or was read, or the client has gone
};

/// The daemon's end of a wire, in the place of a socket. What a dead daemon writes reaches nobody.
class ClientLine final : public transport::Channel {
 public:
  ClientLine(transport::Loop& loop, Population& population, const Process& daemon, std::shared_ptr<ClientWire> wire);
  ClientLine(const ClientLine&) = delete;
  ClientLine& operator=(const ClientLine&) = delete;
  ~ClientLine() override;

  void open(Listener& listener) override;
  void want(bool reading, bool writing) override;
  transport::IoResult read(std::span<char> into) override;
  transport::IoResult write(std::string_view bytes) override;
  void close() override;

 private:
  void look_soon();
  void look();

  transport::Loop& loop_;
  Population& population_;
  const Process& daemon_;
  std::shared_ptr<ClientWire> wire_;
  Listener* listener_ = nullptr;
  bool reading_ = false;
  bool writing_ = false;
  transport::Loop::Timer look_;
  base::Lifetime lifetime_;
};

}  // namespace duet::simulate
