#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/utc_text.h"
#include "duet/rpc/object_text.h"
#include "task/sqlite.h"
#include "task/task.h"

namespace duet::task {

/// How many tasks there are in each state.
using StateCounts = std::array<std::int64_t, 5>;

inline constexpr std::size_t store_version = 4;  // its `user_version`
/// Makes the tables of a new store, or those of an older version into today's; leaves a newer one as it is.
/// `take_over` is called inside the transaction that makes the table of events in a store that had none. Throws
/// SqliteError.
void migrate(const Database& database, const std::function<void()>& take_over = {});

/// Something that has happened, as the journal has it.
struct Event {
  std::uint64_t seq = 0;    ///< counts from 1, without gaps
  std::string kind = {};    ///< without `event.`
  TaskId task = 0;          ///< 0: it concerns no task
  std::string params = {};  ///< a JSON object, with the seq
  /// When the task was taken, if that is what is told: `taskQueued` is also told of one that waits for its next
  /// attempt.
  std::optional<base::UtcTime> arrived_at = {};
};

/// A task that has not ended, with what scheduling needs.
struct ActiveTask {
  TaskId id = 0;
  std::int64_t priority = 0;
  std::uint32_t retries = 0;
  std::vector<TaskId> after = {};
  std::string agent = {};
  std::string group = default_group;
  bool held = false;
  std::optional<base::UtcTime> not_before = {};
  std::optional<std::chrono::milliseconds> delay = {};  ///< that made it `not_before`, if it was one
  Progress progress = {};
};

/// A task that is taken, as it is written down.
struct NewTask {
  TaskId id = 0;
  std::int64_t priority = 0;
  std::string prompt = {};
  std::string agent = {};
  std::string group = default_group;
  std::uint32_t retries = 0;
  std::vector<TaskId> after = {};
  base::UtcTime created_at = {};
  std::optional<base::UtcTime> not_before = {};
  std::optional<std::chrono::milliseconds> delay = {};  ///< that made it `not_before`, if it was one
  Labels labels = {};
  std::string metadata = {};  ///< shown_metadata_text() of the submission
  std::string key = {};       ///< empty: none
  std::string body = {};      ///< to_body() of the submission
};

/// What of a queued task can be changed, all of it.
struct Edited {
  Task task = {};          ///< with what has changed: prompt, priority, group, not_before, labels, metadata
  ActiveTask active = {};  ///< with `after` and `delay`
  std::string body = {};   ///< to_body() of what is asked for now
};

/// Which tasks are listed, and in which order.
struct ListQuery {
  enum class Sort : std::uint8_t { newest, oldest, priority, ended };  // ended: the last one to end first

  std::optional<State> state = {};
  std::size_t limit = 20;
  std::optional<TaskId> from = {};  ///< goes on behind this one; by age only
  std::optional<std::string> group = {};
  std::optional<std::string> agent = {};
  std::optional<base::UtcTime> since = {};  ///< created then or later
  Labels labels = {};                       ///< has all of them
  Sort sort = Sort::newest;
  /// Others than a rule's are not wanted. A hint for a queue that many machines share: there may be others all the
  /// same.
  bool of_rules = false;
};

/// A task that has ended, with what is needed to remove it.
struct EndedTask {
  TaskId id = 0;
  State state = State::completed;
  std::uint32_t attempts = 0;
  base::UtcTime at = {};          ///< its end, by the clock on the wall
  std::uint32_t output_gone = 0;  ///< of so many attempts, from the first on, the output was let go
  std::uint64_t end_seq = 0;      ///< of the event of its end
};

/// Changes tasks, and tells of it in the same transaction. For whoever commits.
class StoreWriter {
 public:
  explicit StoreWriter(const Database& database);

  void insert(const NewTask& task);
  /// The event of an end is told next.
  void update(TaskId id, const Progress& progress);
  void set_result(TaskId id, std::string_view result);
  void erase_result(TaskId id);
  void set_held(TaskId id, bool held);
  void forget_delay(TaskId id);
  /// The key goes on to stand for what was asked for at first.
  void edit(const Edited& edited);
  /// What one more attempt has used. Returns what all have.
  Usage add_usage(TaskId id, const Usage& usage);
  /// All of its output goes: `gone` has the number of all attempts, and how much they wrote that was still there.
  void let_go_of_output(TaskId id, const GoneOutput& gone);
  void erase(TaskId id);
  /// Ids go on behind this one, also if its task is erased.
  void keep_last_id(TaskId id);

  /// A value under a name, for whoever needs to know something after a restart.
  void remember(std::string_view name, std::string_view value);
  void forget(std::string_view name);

  /// Writes an event into the journal. `params` get the event's `seq`.
  void tell(std::string_view kind, TaskId task, rpc::ObjectText params, std::optional<base::UtcTime> arrived_at = {});
  /// For params of events; valid until the next call.
  std::string_view text_of(base::UtcTime time);
  /// Removes the events before this one.
  void trim_events(std::uint64_t oldest);
  /// What was told in the transaction that has been committed.
  std::vector<Event> take_told();
  /// The transaction was rolled back: its numbers are given again.
  void take_back_told();

 private:
  Statement insert_;
  Statement insert_request_;
  Statement update_;
  Statement set_result_;
  Statement set_held_;
  Statement forget_delay_;
  Statement edit_;
  Statement replace_request_;
  Statement add_usage_;
  Statement let_go_;
  std::array<Statement, 3> erase_;
  Statement remember_;
  Statement forget_;
  Statement tell_;
  Statement trim_;
  std::uint64_t last_seq_;
  std::vector<Event> told_;
  base::UtcText times_;
  std::array<char, base::UtcText::size> time_text_{};
};

/// Looks at what is committed. For the loop's thread.
class StoreReader {
 public:
  /// Of prompts and results in a list.
  static constexpr std::size_t most_listed = 1024;

  explicit StoreReader(const Database& database);

  std::optional<Task> find(TaskId id);
  struct Standing {
    State state;
    std::uint32_t attempts;
    GoneOutput gone;
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
  /// The same for whatever else is asked for. What is neither by state nor by group looks at all tasks.
  void list(const ListQuery& query, const std::function<bool(const Task&)>& each);
  /// What scheduling needs of one that has not ended.
  std::optional<ActiveTask> find_active(TaskId id);
  void each_active(const std::function<void(ActiveTask)>& each);
  StateCounts counts();
  /// The last id that was given, whatever has become of its task.
  TaskId newest();
  /// The tasks that queued ones come after, each with the first that does.
  std::map<TaskId, TaskId> needed();
  /// Those that it comes after and is not past: it has not begun since.
  std::vector<TaskId> after(TaskId id);
  /// The queued ones that come after this one.
  std::vector<TaskId> dependents(TaskId id);
  /// Those that have ended, before a time on the wall if one is given.
  std::vector<TaskId> ended(std::optional<State> state, std::optional<base::UtcTime> before);
  /// From this `end_seq` on; those that ended first come first, whatever the clock on the wall was set to. `each` may
  /// end it.
  void first_ended(std::uint64_t from, const std::function<bool(const EndedTask&)>& each);

  /// The same for those whose output has not been let go. There is no index for it, which every submit would pay for:
  /// who asks again knows where the first one was.
  void first_with_output(std::uint64_t from, const std::function<bool(const EndedTask&)>& each);

  std::optional<std::string> recall(std::string_view name);
  /// In the order of their names.
  using EachRemembered = std::function<void(std::string_view name, std::string_view value)>;
  void each_remembered(std::string_view prefix, const EachRemembered& each);

  /// At most `limit` events after this one, in order.
  void events_after(std::uint64_t seq, std::size_t limit, const std::function<void(Event)>& each);
  /// The newest first. `each` may end it.
  void newest_events(const std::function<bool(Event)>& each);

 private:
  static void read_ended(Statement& statement, const std::function<bool(const EndedTask&)>& each);

  const Database& database_;
  Statement find_;
  Statement standing_;
  Statement find_key_;
  Statement body_;
  Statement list_;
  Statement list_by_state_;
  Statement active_;
  Statement find_active_;
  Statement counts_;
  Statement newest_;
  Statement first_ended_;
  Statement first_with_output_;
  Statement recall_;
  Statement each_remembered_;
  Statement events_after_;
  Statement newest_events_;
};

}  // namespace duet::task
