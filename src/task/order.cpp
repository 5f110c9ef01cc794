#include "task/order.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "task/contact.h"
#include "task/packing.h"

namespace duet::task {
namespace {

constexpr std::uint64_t version = 2;
constexpr std::uint64_t version_with_claim = 3;  // the same, and a claim behind it
constexpr std::uint64_t with_farewell = 2;  // added to either: the same, and an unusual farewell at the end; next is 6

template <typename Number>
void put_optional(Packer& out, const std::optional<Number>& number) {
  out.put(number.has_value());
  out.put(std::bit_cast<std::uint64_t>(number.value_or(Number{})));
}

template <typename Number>
std::optional<Number> take_optional(Unpacker& in) {
  const bool is_there = in.number() != 0;
  const auto number = std::bit_cast<Number>(in.number());
  return is_there ? std::optional(number) : std::nullopt;
}

void put_limits(Packer& out, const process::Limits& limits) {
  put_optional(out, limits.memory);
  put_optional(out, limits.processes);
  put_optional(out, limits.cpu);
}

process::Limits take_limits(Unpacker& in) {
  process::Limits limits;
  limits.memory = take_optional<std::uint64_t>(in);
  limits.processes = take_optional<std::uint64_t>(in);
  limits.cpu = take_optional<double>(in);
  return limits;
}

void put_claim(Packer& out, const Claim& claim) {
  out.put(claim.fence);
  out.put(claim.worker);
  out.put(claim.leased);
}

Claim take_claim(Unpacker& in) {
  Claim claim{.fence = in.number()};
  claim.worker = in.text();
  claim.leased = in.number() != 0;
  return claim;
}

// A file without a name. Read-only, so that a task cannot change what it is given.
base::Fd memory_file(std::string_view bytes) {
  const base::Fd file(base::check_call(memfd_create("duet", MFD_CLOEXEC), "memfd_create"));
  while (!bytes.empty()) {
    const ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    base::check_call(count < 0 ? -1 : 0, "write to memory");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  return base::Fd(base::check_call(open(path.c_str(), O_RDONLY | O_CLOEXEC), "open"));
}

std::string read_memory_file(int fd) {
  struct stat status {};
  base::check_call(fstat(fd, &status), "fstat");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

// What a packet begins with. The order follows, or is in a descriptor after the record if it is too long for that; the
// input's descriptor is the last one.
struct PacketHead {
  char kind[6];
  std::uint8_t is_apart;
  std::uint8_t has_input;
};

constexpr char order_kind[6] = {'o', 'r', 'd', 'e', 'r', '1'};

}  // namespace

bool send_order(int socket, const Order& order, const RunRecord& record) {
  const std::string encoded = encode(order);
  PacketHead head{};
  std::copy_n(order_kind, sizeof order_kind, head.kind);
  head.is_apart = encoded.size() + sizeof head > max_packet_bytes ? 1 : 0;
  head.has_input = order.assignment.input ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  std::vector<int> descriptors{record.get()};
  base::Fd apart;
  base::Fd input;
  if (head.is_apart != 0) {
    apart = memory_file(encoded);
    descriptors.push_back(apart.get());
  } else {
    bytes += encoded;
  }
  if (head.has_input != 0) {
    input = memory_file(*order.assignment.input);
    descriptors.push_back(input.get());
  }
  return send_packet(socket, bytes, descriptors);
}

std::optional<ReceivedOrder> receive_order(int socket) {
  while (auto packet = receive_packet(socket)) {
    PacketHead head{};
    if (packet->bytes.size() < sizeof head) continue;
    std::memcpy(&head, packet->bytes.data(), sizeof head);
    const std::size_t expected = 1U + (head.is_apart != 0 ? 1U : 0U) + (head.has_input != 0 ? 1U : 0U);
    if (!std::equal(head.kind, head.kind + sizeof head.kind, order_kind)) continue;
    if (packet->descriptors.size() != expected) continue;
    auto order = head.is_apart != 0 ? decode_order(read_memory_file(packet->descriptors[1].get()))
                                    : decode_order(std::string_view(packet->bytes).substr(sizeof head));
    if (!order) continue;
    ReceivedOrder received{.order = std::move(*order), .input = {}, .record = {}};
    received.record = RunRecord(std::move(packet->descriptors.front()));
    if (head.has_input != 0) received.input = std::move(packet->descriptors.back());
    return received;
  }
  return std::nullopt;
}

std::string encode(const Order& order) {
  const Assignment& assignment = order.assignment;
  Packer out;
  const bool has_farewell = order.farewell != Order().farewell;
  out.put((assignment.claim ? version_with_claim : version) + (has_farewell ? with_farewell : 0));
  out.put(assignment.run.task);
  out.put(assignment.run.attempt);
  out.put(assignment.arguments.size());
  for (const std::string& argument : assignment.arguments) out.put(argument);
  out.put(assignment.environment.size());
  for (const auto& [name, value] : assignment.environment) {
    out.put(name);
    out.put(value);
  }
  out.put(assignment.directory);
  out.put(assignment.time_limit.has_value());
  out.put(static_cast<std::uint64_t>(assignment.time_limit.value_or(std::chrono::milliseconds(0)).count()));
  out.put(order.mark);
  out.put(order.umask);
  out.put(static_cast<std::uint64_t>(order.grace.count()));
  put_limits(out, assignment.limits);
  out.put(order.cgroup);
  if (assignment.claim) put_claim(out, *assignment.claim);
  if (has_farewell) out.put(static_cast<std::uint64_t>(order.farewell.count()));
  return out.take();
}

std::optional<Order> decode_order(std::string_view bytes) {
  Unpacker in(bytes);
  Order order;
  Assignment& assignment = order.assignment;
  std::uint64_t its_version = in.number();
  const bool has_farewell = its_version > version_with_claim;
  if (has_farewell) its_version -= with_farewell;
  if (its_version != version && its_version != version_with_claim) return std::nullopt;
  assignment.run.task = in.number();
  assignment.run.attempt = static_cast<std::uint32_t>(in.number());
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) assignment.arguments.push_back(in.text());
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    std::string name = in.text();
    assignment.environment.emplace(std::move(name), in.text());
  }
  assignment.directory = in.text();
  const bool limited = in.number() != 0;
  const std::chrono::milliseconds limit(in.number());
  if (limited) assignment.time_limit = limit;
  order.mark = in.text();
  order.umask = static_cast<mode_t>(in.number());
  order.grace = std::chrono::milliseconds(in.number());
  assignment.limits = take_limits(in);
  order.cgroup = in.text();
  if (its_version == version_with_claim) assignment.claim = take_claim(in);
  if (has_farewell) order.farewell = std::chrono::milliseconds(in.number());
  if (!in.is_complete() || assignment.arguments.empty()) return std::nullopt;
  return order;
}

}  // namespace duet::task
