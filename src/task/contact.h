#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"
#include "task/run.h"

namespace duet::task {

/// All that a keeper knows of its run.
struct Report {
  std::optional<Started> started = {};
  std::optional<Outcome> outcome = {};
  bool gone = false;
};

/// What a keeper and a daemon tell each other about a run. What a keeper has to say at length is in its record; only
/// what could not be written there is sent.
struct Message {
  enum class Kind : std::uint32_t {
    look = 1,      ///< keeper: something new is in the record
    output,        ///< keeper: there is output up to `value`
    terminated,    ///< keeper: TERM was sent
    follow,        ///< daemon: say once that there is output beyond `value`
    cancel,        ///< daemon: end the run
    acknowledged,  ///< daemon: the outcome is in the store
    report,        ///< keeper: this is how it is, and not all of it is in the record
    ask,           ///< daemon: send a report, the record cannot be read
  };

  Kind kind = Kind::look;
  std::uint32_t attempt = 0;
  std::uint64_t task = 0;
  std::uint64_t value = 0;
  std::optional<Report> report = {};  ///< of that kind only

  RunId run() const { return {task, attempt}; }
};

/// Where a keeper can be met. The socket is connected to it; the file stays for others.
struct KeeperLink {
  base::Fd socket = {};
  std::string name = {};

  explicit operator bool() const { return static_cast<bool>(socket); }
};

/// False if the other end is gone, or does not read; then the link is of no use any more. Never waits.
bool send_message(int socket, const Message& message);

struct Received {
  std::optional<Message> message = {};
  bool closed = false;
};
/// Neither of both: there is nothing at the moment. What is not a message is skipped.
Received receive_message(int socket);

/// Bytes, no more than `max_packet_bytes`, and descriptors.
struct Packet {
  std::string bytes = {};
  std::vector<base::Fd> descriptors = {};
};
inline constexpr std::size_t max_packet_bytes = 16 * 1024;
/// False, with errno, if it could not be sent. Never waits.
bool send_packet(int socket, std::string_view bytes, std::span<const int> descriptors);
/// Waits for one; none when the other end is gone.
std::optional<Packet> receive_packet(int socket);

/// A socket in that folder, mode 0600, at which a keeper can be met, however long the folder's path is. Throws
/// std::system_error.
base::Fd listen_in(int folder, const std::string& name);
/// Empty, with errno, if nobody is there.
base::Fd connect_in(int folder, const std::string& name);
/// The next one who wants to talk and is of our user, or root; empty if there is none.
base::Fd accept_contact(int listener);

}  // namespace duet::task
