#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/container/set.hpp>

#include "task/task.h"

namespace duet::task {

/// A task in the queue, with what scheduling needs.
struct QueuedTask {
  std::int64_t priority = 0;
  std::uint32_t retries = 0;
  std::uint32_t attempts = 0;  ///< that have begun
  std::uint32_t spared = 0;    ///< of those, how many do not count against its retries
  std::string agent = {};
  std::string group = default_group;
};

/// What a queued task waits for by itself, whatever its group and its agent allow.
enum class Block : std::uint8_t {
  after,      ///< other tasks; as often as there are some
  leftovers,  ///< processes of an earlier attempt; as often as there are some
  pause,      ///< its next attempt
  delay,      ///< the time that it was asked for
  held,       ///< somebody holds it
  cancel,     ///< a cancel is on its way
  edit,       ///< an edit is on its way
  reading,    ///< the store cannot be read
};

/// The queued tasks: which one is next, and what the others wait for.
///
/// A task may start when nothing blocks it. Inside a group the highest priority is next, and of those the oldest.
/// Groups take turns: of those that have a task which may start, the one whose last start is the longest ago is next.
/// So between two starts of one group each other group that could start a task has started one. Who is next is found
/// without looking at more than the groups and agents that have tasks. Pure: no clock, no store.
class TaskQueue {
 public:
  /// Tell of a group, or of an agent, whether one more task of it may run now.
  struct Doors {
    std::function<bool(const std::string& group)> group = [](const std::string&) { return true; };
    std::function<bool(const std::string& agent)> agent = [](const std::string&) { return true; };
  };
  static constexpr std::size_t block_kinds = 8;
  using Blocks = std::array<std::uint16_t, block_kinds>;

  bool contains(TaskId id) const { return tasks_.contains(id); }
  std::optional<QueuedTask> find(TaskId id) const;
  std::size_t size() const { return tasks_.size(); }
  /// By what it is blocked, and how often.
  Blocks blocks(TaskId id) const;
  bool is_blocked(TaskId id, Block why) const { return blocks(id).at(static_cast<std::size_t>(why)) > 0; }

  void add(TaskId id, const QueuedTask& task);
  void remove(TaskId id);
  /// It has another priority or group from now on; what blocks it stays.
  void change(TaskId id, std::int64_t priority, const std::string& group);
  /// It waits for one thing more, or for one less. Nothing happens if it is not in the queue. What is not counted is
  /// there or not.
  void block(TaskId id, Block why);
  void unblock(TaskId id, Block why);

  /// Lets `id` wait for `dependency`, which must not have ended.
  void wait_for(TaskId id, TaskId dependency);
  void stop_waiting_for(TaskId id, TaskId dependency);
  bool has_dependents(TaskId dependency) const { return dependents_.contains(dependency); }
  /// Those that waited for it, whether it succeeded or not; they are still blocked, and still in the queue.
  std::vector<TaskId> take_dependents(TaskId dependency);
  /// Those that wait for it, directly or through others.
  std::unordered_set<TaskId> all_dependents(TaskId dependency) const;

  /// The one to start next, which leaves the queue.
  std::optional<std::pair<TaskId, QueuedTask>> take_next(const Doors& doors);
  std::optional<std::pair<TaskId, QueuedTask>> take_next() { return take_next(Doors()); }
  /// How many tasks of its group and agent may start and come before it, up to a thousand.
  static constexpr std::size_t most_counted = 1000;
  std::size_t count_before(TaskId id) const;

  std::size_t queued_in_group(std::string_view group) const;
  std::size_t queued_for_agent(std::string_view agent) const;
  /// All that ever had a task.
  std::vector<std::string> groups() const;

 private:
  using Rank = std::pair<std::int64_t, TaskId>;  // smaller starts sooner
  /// Tasks of one agent in one group.
  struct Lane {
    const std::string& group;
    const std::string& agent;
    boost::container::set<Rank> ready = {};  // 16 bytes less a task than std::set
    std::size_t queued = 0;
  };
  struct Group {
    std::map<std::string, std::unique_ptr<Lane>, std::less<>> lanes = {};
    std::uint64_t last_turn = 0;
  };
  // With no more than is needed: there may be a hundred thousand.
  struct Entry {
    Lane* lane = nullptr;
    std::int64_t priority = 0;
    std::uint32_t retries = 0;
    std::uint32_t attempts = 0;
    std::uint32_t spared = 0;
    std::uint32_t stay = 0;  // tells a stay in the queue from an earlier one of the same task
    std::uint16_t after = 0;
    std::uint16_t leftovers = 0;
    std::uint8_t flags = 0;  // of all other blocks

    bool is_ready() const { return after == 0 && leftovers == 0 && flags == 0; }
  };
  using Waiting = std::pair<TaskId, std::uint32_t>;  // with its stay

  static Rank rank(TaskId id, const Entry& entry);
  static QueuedTask task_of(const Entry& entry);
  Lane& lane_of(const std::string& group, const std::string& agent);
  bool is_waiting(const Waiting& waiting) const;
  void set_block(TaskId id, Block why, bool more);
  static Lane* first_lane(const Group& group, const Doors& doors);

  std::unordered_map<TaskId, Entry> tasks_;
  std::map<std::string, Group, std::less<>> groups_;
  Lane* last_lane_ = nullptr;  // that was asked for: lanes stay, and most tasks go where the last one went
  std::unordered_map<TaskId, std::vector<Waiting>> dependents_;
  std::uint32_t stays_ = 0;
  std::uint64_t turns_ = 0;
};

}  // namespace duet::task
