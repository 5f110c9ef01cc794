#include <algorithm>
#include <string>
#include <utility>

#include "task/refusal.h"
#include "task/supervisor.h"

// How ended tasks are removed by those who ask for it. Retention does so by itself.

namespace duet::task {
namespace {

constexpr std::size_t removed_at_once = 100;

}  // namespace

bool Supervisor::is_needed_somewhere(TaskId id) const {
  return queue_.has_dependents(id) || intake_.is_needed(id) || needed_.contains(id);
}

// None: it goes.
std::optional<Supervisor::Removal::Kept> Supervisor::why_kept(TaskId id, const std::map<TaskId, TaskId>& needed) {
  const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  if (!standing || !*standing || leaving_.contains(id) || retention_.is_removing(id)) {
    return Removal::Kept{id, "unknown", "there is no such task"};
  }
  const State state = (*standing)->state;
  if (!has_ended(state) || restarting_.contains(id)) {
    return Removal::Kept{id, "not-ended", "it is " + std::string(name_of(state))};
  }
  if (const auto by = needed.find(id); by != needed.end()) {
    return Removal::Kept{id, "needed", to_text(by->second) + " comes after it", by->second};
  }
  if (is_needed_somewhere(id)) return Removal::Kept{id, "needed", "another task comes after it"};
  if (latest_run(id) != runs_.end()) return Removal::Kept{id, "busy", "processes of it are still there"};
  if (follower_.is_telling(id)) return Removal::Kept{id, "busy", "its output is being told"};
  return std::nullopt;
}

void Supervisor::remove(std::vector<TaskId> ids, Removed removed) {
  if (stopping_) return removed(tl::unexpected(is_stopping()));
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  // What is on its way to the disk may be the end of one of them, or one that comes after it.
  store_.after_changes(
      lifetime_.bind([this, ids = std::move(ids), removed = std::move(removed)] { remove_some(ids, {}, removed); }));
}

// Of these tasks some that go, taken from the end; the others are kept, with why.
std::vector<EndedTask> Supervisor::take_removable(std::vector<TaskId>& ids, const std::map<TaskId, TaskId>& needed,
                                                  Removal& removal) {
  std::vector<EndedTask> going;
  while (!ids.empty() && going.size() < removed_at_once) {
    const TaskId id = ids.back();
    ids.pop_back();
    if (auto kept = why_kept(id, needed)) {
      removal.kept.push_back(std::move(*kept));
      continue;
    }
    const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id).value(); });
    if (!standing) continue;
    going.push_back({.id = id, .state = standing->state, .attempts = standing->attempts});
    leaving_.insert(id);
  }
  return going;
}

// A few at a time, since each has files.
void Supervisor::remove_some(std::vector<TaskId> ids, Removal removal, Removed removed) {
  const auto needed = store_.read([](StoreReader& tasks) { return tasks.needed(); });
  const auto newest = store_.read([](StoreReader& tasks) { return tasks.newest(); });
  if (!needed || !newest) return removed(tl::unexpected(needed ? newest.error() : needed.error()));
  const std::vector<EndedTask> going = take_removable(ids, *needed, removal);
  if (going.empty()) {
    std::ranges::sort(removal.removed);
    std::ranges::sort(removal.kept, {}, &Removal::Kept::id);
    return removed(removal);
  }
  Change change{.bytes = 512 + going.size() * sizeof(EndedTask)};
  change.apply = [going, newest = *newest](StoreWriter& writer) {
    erase_tasks(writer, going, "request");
    writer.keep_last_id(newest);
  };
  change.done = [this, going, ids = std::move(ids), removal = std::move(removal),
                 removed = std::move(removed)](bool kept) mutable {
    for (const EndedTask& task : going) leaving_.erase(task.id);
    if (!kept) return removed(tl::unexpected(store_.refusal()));
    for (const EndedTask& task : going) {
      --counts_.at(static_cast<std::size_t>(task.state));
      retention_.remove_outputs(task);
      removal.removed.push_back(task.id);
    }
    remove_some(std::move(ids), std::move(removal), std::move(removed));
  };
  store_.write(std::move(change));
}

void Supervisor::clean(std::optional<State> state, std::optional<std::chrono::milliseconds> older, Removed removed) {
  std::optional<base::UtcTime> before;
  if (older) before = loop_.clock().utc() - *older;
  auto ids = store_.read([&](StoreReader& tasks) { return tasks.ended(state, before); });
  if (!ids) return removed(tl::unexpected(ids.error()));
  remove(std::move(*ids), std::move(removed));
}

}  // namespace duet::task
