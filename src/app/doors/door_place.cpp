#include "app/doors/door_place.h"

#include <cerrno>
#include <charconv>
#include <cstdint>

#include "app/project/failure.h"
#include "duet/transport/tcp_acceptor.h"

namespace duet::app {
namespace {

using transport::TcpAddress;

constexpr const char* given_mark = " by the command line\n";

std::string why_no_door(const std::string& what, const std::error_code& error) {
  if (error.value() == EADDRINUSE) return what + "another program listens there: choose another port, or 0 for any";
  if (error.value() == EACCES) return what + "ports below 1024 are for root: choose another";
  if (error.value() == EADDRNOTAVAIL) return what + "this machine has no such address";
  return what + error.message();
}

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = end == text.data() + text.size() || *end == '\n';
  return error == std::errc() && is_whole && number != 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<TcpAddress> DoorPlace::choose(const std::optional<TcpAddress>& given,
                                            const std::optional<TcpAddress>& listen, bool may_be_open) {
  const std::string left = folder_.read_small(word_ + ".open");
  const std::optional<TcpAddress> former = TcpAddress::parse(left.substr(0, left.find_first_of(" \n")));
  folder_.remove(word_ + ".open");
  given_ = given || (former && left.ends_with(given_mark));
  if (given) return given;
  return former && (listen || may_be_open || given_) ? former : listen;
}

base::Fd DoorPlace::listen(const TcpAddress& address) {
  try {
    return address.port() == 0 ? listen_at_last_port(address) : transport::listen_tcp(address);
  } catch (const std::system_error& error) {
    throw Failure(why_no_door("cannot listen at " + address.text() + " for " + name_ + ": ", error.code()));
  }
}

// An open tab finds its daemon again.
base::Fd DoorPlace::listen_at_last_port(const TcpAddress& address) {
  if (const std::optional<std::uint16_t> last = port_in(folder_.read_small(word_ + ".port"))) {
    try {
      return transport::listen_tcp(address.with_port(*last));
    } catch (const std::system_error&) {
      // Somebody else has it now.
    }
  }
  return transport::listen_tcp(address);
}

void DoorPlace::opened(int socket, const TcpAddress& wanted, bool beyond_settings) {
  wanted_ = wanted;
  beyond_settings_ = beyond_settings;
  address_ = TcpAddress::of(socket);
  log_.info("listening", {{word_, address_->text()}});
  remember_port(*address_);
}

void DoorPlace::confirm(const TcpAddress& wanted) {
  wanted_ = wanted;
  beyond_settings_ = false;
}

void DoorPlace::remember_port(const TcpAddress& address) {
  try {
    folder_.write_small(word_ + ".port", std::to_string(address.port()) + '\n');
  } catch (const Failure& failure) {
    log_.warn("the port is not remembered", {{"reason", failure.what()}});
  }
}

void DoorPlace::closed() {
  address_.reset();
  wanted_.reset();
  log_.info("the " + name_ + " door is closed");
}

bool DoorPlace::is_at(const TcpAddress& address) const {
  return address_ && (*address_ == address || address_->with_port(0) == address);
}

void DoorPlace::leave(bool restarting) {
  if (!restarting || !address_ || !beyond_settings_) return;
  try {
    folder_.write_small(word_ + ".open", wanted_->text() + (given_ ? given_mark : "\n"));
  } catch (const Failure& failure) {
    log_.warn("the next daemon does not know of the open door", {{"reason", failure.what()}});
  }
}

}  // namespace duet::app
