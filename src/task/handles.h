#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/lifetime.h"
#include "duet/rpc/error.h"
#include "task/intake.h"
#include "task/store.h"

namespace duet::task {

/// A name of this task that nobody has yet.
std::string new_handle(TaskId id);

/// Names of tasks that cannot be guessed, `task-7-` and 26 random characters, for clients that pass them on to others.
///
/// A task has one if somebody has asked for it, and only one. It is kept with the task and goes with it, which is not
/// before a day after the task's end unless a person removes it. For the loop's thread only.
class Handles {
 public:
  using Given = std::function<void(const tl::expected<std::string, rpc::Error>&)>;

  static constexpr std::chrono::hours kept_after_end{24};

  explicit Handles(Store& store) : store_(store) {}
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  /// What a submission has written together with its task, so that it has a handle from its first moment on.
  static Companion for_new_task();
  /// Of a task that is on disk: the one that it has, or else a new one, as soon as that is on disk, too.
  void give(TaskId id, Given given);
  /// The task of this handle, or that there is none.
  tl::expected<TaskId, rpc::Error> find(std::string_view handle);

  static bool has_one(StoreReader& tasks, TaskId id);
  /// In the transaction that erases the task.
  static void forget(StoreWriter& writer, TaskId id);

 private:
  bool forget_if_gone(TaskId id);

  struct Giving {
    std::string secret;
    std::vector<Given> waiting;
  };

  Store& store_;
  std::map<TaskId, Giving> giving_;  // on their way to the disk
  base::Lifetime lifetime_;
};

}  // namespace duet::task
