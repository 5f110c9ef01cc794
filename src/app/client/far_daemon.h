#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "app/client/endpoint.h"
#include "app/client/far_place.h"
#include "duet/base/fd.h"

namespace duet::transport {
class TlsContext;
}

namespace duet::app {

/// A daemon of another machine, over TLS: it has to show who it is, and so have we.
///
/// The identity is read once, with the first connection. While hands are shaken the loop turns, so connect() is not for
/// what the loop calls. A connection whose other end falls silent for a minute is taken for lost. try_connect() takes a
/// second, and on a slow line more, up to what connect() was given.
class FarDaemon final : public Endpoint {
 public:
  FarDaemon(FarPlace place, std::string program);

  std::unique_ptr<transport::Channel> connect(transport::Loop& loop, std::chrono::milliseconds patience) override;
  std::unique_ptr<transport::Channel> try_connect(transport::Loop& loop) override;
  std::optional<Failure> refusal() const override;
  std::string place() const override { return place_.url.place(); }
  /// The last connection has ended, and not because the daemon ended it.
  bool was_cut() const;

 private:
  struct Link;

  std::unique_ptr<transport::Channel> shake_hands(transport::Loop& loop, std::chrono::milliseconds patience);
  void read_identity();
  base::Fd reach(std::chrono::milliseconds patience) const;

  FarPlace place_;
  std::string program_;
  std::shared_ptr<const transport::TlsContext> context_;
  std::shared_ptr<Link> link_;              // the last one; its channel has it, too
  std::chrono::milliseconds patience_{0};   // that connect() was given
  std::chrono::milliseconds moment_{1000};  // that try_connect() takes; twice as long after each that was too short
};

}  // namespace duet::app
