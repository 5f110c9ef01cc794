#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/fd.h"
#include "task/run.h"
#include "task/run_record.h"

namespace duet::task {

/// All that a keeper has to know, as bytes for a descriptor: an assignment may have megabytes. The input goes beside
/// it.
struct Order {
  Assignment assignment;
  std::string mark = {};  ///< see Fingerprint
  mode_t umask = 022;
  std::chrono::milliseconds grace{5000};     ///< between TERM and KILL
  std::chrono::milliseconds farewell{2000};  ///< how long, when it is gone, the daemon's acknowledgement is waited for
  std::string cgroup = {};                   ///< the folder of the one to make for the limits, if there are any
};

/// Sends it to a keeper, with its record. Throws std::system_error if it cannot be put into a packet; false, with
/// errno, if the packet could not be sent.
bool send_order(int socket, const Order& order, const RunRecord& record);

struct ReceivedOrder {
  Order order;     ///< without its input
  base::Fd input;  ///< empty: none
  RunRecord record;
};
/// Waits for one; what is no order is skipped. None when the other end is gone.
std::optional<ReceivedOrder> receive_order(int socket);

/// As bytes, without the input.
std::string encode(const Order& order);
/// None if it is not what encode() made.
std::optional<Order> decode_order(std::string_view bytes);

}  // namespace duet::task
