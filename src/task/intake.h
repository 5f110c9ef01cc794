#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/error.h"
#include "task/agents.h"
#include "task/ledger.h"
#include "task/store.h"
#include "task/task.h"
#include "task/task_queue.h"

namespace duet::task {

/// A task that was taken.
struct Accepted {
  TaskId id = 0;
  State state = State::queued;
};

/// Looks at submissions, refuses what cannot be done, and makes tasks of the rest: with the next id, on disk before
/// anybody hears of them. The same key with the same body is the same task. For the loop's thread only.
class Intake {
 public:
  using Submitted = std::function<void(const tl::expected<Accepted, rpc::Error>&)>;
  /// A new task is on disk.
  using Taken = std::function<void(TaskId, QueuedTask, const std::vector<TaskId>& after)>;

  static constexpr std::size_t most_dependencies = 1000;

  Intake(const base::Clock& clock, Store& store, Ledger& ledger, const Agents& agents, Taken taken);

  /// `capacity`: how many tasks may be queued. Throws rpc::Error if it is refused at once.
  void submit(Submission submission, std::size_t capacity, Submitted submitted);

 private:
  // A submission with a key on its way to the disk, and those who sent the same one meanwhile.
  struct Arriving {
    std::string body;
    std::vector<Submitted> others;
  };

  bool answer_by_key(const Submission& submission, const std::string& body, const Submitted& submitted);
  void check_dependencies(const std::vector<TaskId>& after) const;
  void arrived(const std::string& key, const Submitted& submitted, const tl::expected<Accepted, rpc::Error>& answer);

  const base::Clock& clock_;
  Store& store_;
  Ledger& ledger_;
  const Agents& agents_;
  Taken taken_;
  TaskId last_id_;
  std::size_t arriving_ = 0;
  std::unordered_map<std::string, Arriving> arriving_keys_;
};

}  // namespace duet::task
