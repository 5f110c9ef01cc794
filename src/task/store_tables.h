#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "task/sqlite.h"
#include "task/task.h"

namespace duet::task {

/// How many tasks there are in each state.
using StateCounts = std::array<std::int64_t, 5>;

inline constexpr std::size_t store_version = 1;  // its `user_version`
/// Makes the tables of a new store, or those of an older version into today's; leaves a newer one as it is. Throws
/// SqliteError.
void migrate(const Database& database);

/// A task that has not ended, with what scheduling needs.
struct ActiveTask {
  TaskId id = 0;
  std::int64_t priority = 0;
  std::uint32_t retries = 0;
  std::vector<TaskId> after = {};
  std::string agent = {};
  Progress progress = {};
};

/// A task that has ended, with what is needed to remove it.
struct EndedTask {
  TaskId id = 0;
  State state = State::completed;
  std::uint32_t attempts = 0;
};

/// Changes tasks. For the committer's thread, inside a transaction.
class TaskWriter {
 public:
  explicit TaskWriter(const Database& database);

  /// A new task, queued, `body` being to_body() of its submission; its result is not looked at.
  void insert(const Task& task, const ActiveTask& active, std::string_view key, std::string_view body);
  void update(TaskId id, const Progress& progress);
  void set_result(TaskId id, std::string_view result);
  void erase(TaskId id);
  void remember(std::string_view name, std::string_view value);

 private:
  Statement insert_;
  Statement insert_request_;
  Statement update_;
  Statement set_result_;
  std::array<Statement, 3> erase_;
  Statement remember_;
};

/// Looks at what is committed. For the loop's thread.
class TaskReader {
 public:
  /// Of prompts and results in a list.
  static constexpr std::size_t most_listed = 1024;

  explicit TaskReader(const Database& database);

  std::optional<Task> find(TaskId id);
  struct Standing {
    State state;
    std::uint32_t attempts;
  };
  std::optional<Standing> standing(TaskId id);
  struct Keyed {
    TaskId id;
    State state;
    std::string body;
  };
  std::optional<Keyed> find_key(std::string_view key);
  /// What to_body() made of the submission; empty if there is no such task.
  std::string body(TaskId id);

  /// The newest ones of those before `before`, newest first; prompts and results are cut. `each` may end it.
  void list(std::optional<State> state, TaskId before, std::size_t limit, const std::function<bool(const Task&)>& each);
  void each_active(const std::function<void(ActiveTask)>& each);
  StateCounts counts();
  TaskId newest();
  /// Those that ended first come first.
  std::vector<EndedTask> ended_before(base::UtcTime time, std::size_t limit);

  std::optional<std::string> recall(std::string_view name);

 private:
  Statement find_;
  Statement standing_;
  Statement find_key_;
  Statement body_;
  Statement list_;
  Statement list_by_state_;
  Statement active_;
  Statement counts_;
  Statement newest_;
  Statement ended_before_;
  Statement recall_;
};

}  // namespace duet::task
