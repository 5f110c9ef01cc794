#include "app/daemon/descriptors.h"

#include <algorithm>
#include <string>

#include "app/project/failure.h"

namespace duet::app {
namespace {

constexpr std::size_t least = 64;
constexpr std::size_t own = 40;        // some 28 are open all the time; others for a moment
constexpr std::size_t for_others = 8;  // one in so many: language servers, watched folders
constexpr std::size_t of_task = 3;     // its keeper's socket and record, and a keeper that waits for the next
constexpr std::size_t most_clients = 65536;
constexpr std::size_t most_tasks = 1000;  // max_running can be no larger
constexpr std::size_t enough_for_unix = 512;

}  // namespace

DescriptorBudget DescriptorBudget::of(std::size_t limit) {
  if (limit < least) {
    throw Failure("too few descriptors: this process may have " + std::to_string(limit) + ", and a daemon needs " +
                  std::to_string(least) + "; raise the limit ('ulimit -n')");
  }
  const std::size_t left = (limit - own) - (limit - own) / for_others;
  const std::size_t tasks = std::min(left / 2 / of_task, most_tasks);
  const std::size_t clients = std::min(left - of_task * tasks, most_clients);
  const std::size_t tls = clients / 4;
  const std::size_t unix_least = std::min(clients - clients / 2 - tls, enough_for_unix);
  return {.limit = limit, .clients = clients, .http = clients - tls - unix_least, .tls = tls, .tasks = tasks};
}

}  // namespace duet::app
