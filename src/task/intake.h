#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/error.h"
#include "task/agents.h"
#include "task/store.h"
#include "task/submitted.h"
#include "task/task.h"
#include "task/task_queue.h"

namespace duet::task {

/// A new task as the queue takes it, with what it waits for.
struct Arrival {
  TaskId id = 0;
  QueuedTask task = {};
  std::optional<std::chrono::milliseconds> delay = {};
  std::optional<base::UtcTime> not_before = {};  ///< with that delay, or as it was asked for
  std::vector<TaskId> after = {};                ///< had not failed when the task was taken
  std::optional<TaskId> failed = {};  ///< of those it comes after: it had ended without success, and so has this one
};

/// Looks at submissions, refuses what cannot be done, and makes tasks of the rest: with the next id, on disk before
/// anybody hears of them. The same key with the same body is the same task. For the loop's thread only.
class Intake {
 public:
  using Submitted = task::Submitted;
  /// A new task is on disk.
  using Taken = std::function<void(const Arrival&)>;
  /// How many tasks are queued, and how many may be.
  struct Capacity {
    std::size_t queued = 0;
    std::size_t capacity = 0;
  };
  /// Whether tasks may be in a group of this name; else why not.
  using CheckGroup = std::function<std::optional<rpc::Error>(const std::string& group)>;

  /// `last_id`: of the newest task in the store.
  Intake(const base::Clock& clock, Store& store, const Agents& agents, TaskId last_id, CheckGroup check_group,
         Taken taken);

  /// Answers at once if it refuses, else when the task is on disk.
  void submit(Submission&& submission, Capacity room, Submitted&& submitted, Companion&& companion);

  /// It comes after a task that is still on its way to the disk, as one does that was sent right behind that, or others
  /// wait for that already. Ids are given in the order that submissions came in.
  bool must_wait(const Submission& submission) const { return !waiting_.empty() || is_arriving(submission.after); }
  /// Has it submitted when it need not wait any more. False: so much waits already that it is to be refused.
  bool wait(const Submission& submission, std::function<void()> submit);

  /// A task that is on its way to the disk comes after this one, which is needed until then.
  bool is_needed(TaskId id) const { return needed_.contains(id); }
  /// Whether one more task would be too many.
  bool is_full(Capacity room) const { return room.queued + arriving_ >= room.capacity; }

 private:
  // A task on its way to the disk, in one place for all who have to do with it: what writes it may be called again.
  struct Arriving {
    NewTask task = {};
    std::vector<TaskId> after = {};     // of those it comes after, those that have not failed
    std::optional<TaskId> failed = {};  // the first that has
    Submitted submitted = {};
    std::function<void(StoreWriter&, TaskId)> also = {};
    std::vector<Submitted> others = {};  // who sent the same key meanwhile
  };
  using Refusal = std::optional<rpc::Error>;

  // A submission that comes after a task on its way to the disk, or behind such a submission.
  struct Waiting {
    std::vector<TaskId> after;
    std::size_t bytes;
    std::function<void()> submit;
  };

  bool is_arriving(const std::vector<TaskId>& ids) const;
  void go_on();
  static Refusal check(Submission& submission);
  tl::expected<bool, rpc::Error> answer_by_key(const Submission& submission, const std::string& body,
                                               const Submitted& submitted);
  Refusal look_at_dependencies(const std::vector<TaskId>& after, Arriving& arriving) const;
  NewTask new_task(Submission&& submission, std::string agent, std::string body);
  void write(const std::shared_ptr<Arriving>& arriving, Change::Kind kind);
  void arrived(Arriving& arriving, bool kept);

  const base::Clock& clock_;
  Store& store_;
  const Agents& agents_;
  CheckGroup check_group_;
  Taken taken_;
  TaskId last_id_;
  std::size_t arriving_ = 0;
  TaskId settled_;  // up to this one no task is on its way to the disk
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::map<TaskId, std::size_t> needed_;
  std::unordered_map<std::string, std::shared_ptr<Arriving>> arriving_keys_;
};

}  // namespace duet::task
