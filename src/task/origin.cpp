#include "task/origin.h"

#include <optional>
#include <string>

#include "process/process_tree.h"
#include "task/outsider.h"

namespace duet::task {
namespace {

constexpr int most_levels = 4096;
constexpr int most_walks = 10;

// None: somebody on the way up ended meanwhile, so that its children have another parent now.
std::optional<Origin> walk_up(pid_t pid) {
  for (int level = 0; level < most_levels && pid > 1; ++level) {
    if (process::has_in_environment(pid, daemon_assignment)) return Origin::outside;
    if (process::has_in_environment(pid, std::string(nursery_variable) + "=1")) return Origin::task;
    const auto entry = process::read_process(pid);
    if (!entry) return std::nullopt;
    pid = entry->parent;
  }
  return Origin::outside;
}

}  // namespace

Origin origin_of(pid_t pid) {
  for (int walk = 0; walk < most_walks; ++walk) {
    const auto entry = process::read_process(pid);
    if (!entry || entry->is_zombie()) return Origin::gone;
    if (const std::optional<Origin> found = walk_up(pid)) return *found;
  }
  return Origin::gone;
}

}  // namespace duet::task
