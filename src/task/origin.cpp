#include "task/origin.h"

#include <optional>
#include <string>

#include "process/process_tree.h"
#include "task/outsider.h"

namespace duet::task {
namespace {

constexpr int most_levels = 4096;
constexpr int most_walks = 10;

struct Above {
  Origin origin = Origin::outside;
  pid_t keeper = 0;
};

// None: somebody on the way up ended meanwhile, so that its children have another parent now.
std::optional<Above> walk_up(pid_t pid) {
  for (int level = 0; level < most_levels && pid > 1; ++level) {
    if (process::has_in_environment(pid, daemon_assignment)) return Above{};
    if (process::has_in_environment(pid, std::string(nursery_variable) + "=1")) return Above{Origin::task, pid};
    const auto entry = process::read_process(pid);
    if (!entry) return std::nullopt;
    pid = entry->parent;
  }
  return Above{};
}

Above look_above(pid_t pid) {
  for (int walk = 0; walk < most_walks; ++walk) {
    const auto entry = process::read_process(pid);
    if (!entry || entry->is_zombie()) return {Origin::gone};
    if (const std::optional<Above> found = walk_up(pid)) return *found;
  }
  return {Origin::gone};
}

}  // namespace

Origin origin_of(pid_t pid) { return look_above(pid).origin; }

std::optional<pid_t> keeper_above(pid_t pid) {
  const Above above = look_above(pid);
  return above.origin == Origin::task ? std::optional(above.keeper) : std::nullopt;
}

}  // namespace duet::task
