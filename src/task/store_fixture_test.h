#pragma once

#include <fcntl.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/fd.h"
#include "duet/transport/await_test.h"
#include "duet/transport/loop.h"
#include "duet/transport/temporary_folder_test.h"
#include "task/store.h"
#include "task/store_files.h"
#include "task/transition.h"

namespace duet::task {

inline base::Fd open_folder(const std::string& path) {
  return base::Fd(base::check_call(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open"));
}

/// A new task, without its event.
inline Change insertion(NewTask task, const Submission& submission, std::function<void(bool kept)> done) {
  task.priority = submission.priority.value_or(0);
  task.prompt = submission.prompt;
  task.agent = "shell";
  task.retries = submission.retries.value_or(0);
  task.after = submission.after;
  task.metadata = shown_metadata_text(submission);
  task.key = submission.key;
  task.body = to_body(submission);
  return {.apply = [task = std::move(task)](StoreWriter& writer) { writer.insert(task); }, .done = std::move(done)};
}

/// Takes what version 4 added away again.
inline void make_version_3(const Database& database) {
  database.run("DROP INDEX task_by_group; DROP INDEX task_with_after;");
  for (const char* column : {"in_group", "held", "not_before", "delay", "labels", "spared", "key_body", "cpu_us",
                             "max_memory", "output_bytes", "output_kept", "output_gone", "output_gone_bytes"}) {
    database.run((std::string("ALTER TABLE task DROP COLUMN ") + column).c_str());
  }
  database.run("PRAGMA user_version=3");
}

/// A store in a folder of its own, which can be closed, opened again, and made to fail.
class StoreBox {
 public:
  explicit StoreBox(std::string path = {}) : path_(path.empty() ? folder.path().string() : std::move(path)) {}

  Store& open() {
    store.reset();
    directory = open_folder(path_);
    auto place = std::make_unique<StoreFolder>(
        directory.get(), StoreFolder::Options{.fault = [this](StoreVfs::Step step, std::string_view file) {
          if (step == StoreVfs::Step::write) return write_fault.load();
          ++syncs;
          return (file == store_file) == fault_in_main_file ? sync_fault.load() : SQLITE_OK;
        }});
    store.emplace(
        loop, std::move(place),
        [this](const Store::Health& health) {
          healths.push_back(health);
          if (on_health) on_health(health);
        },
        options);
    return *store;
  }

  static Submission asked(std::string prompt) { return {.prompt = std::move(prompt)}; }

  /// Adds a task; `answer` is set when it is on disk or refused.
  void add(TaskId id, const Submission& submission, std::optional<bool>& answer) {
    store->write(
        insertion({.id = id, .created_at = loop.clock().utc()}, submission, [&answer](bool kept) { answer = kept; }));
  }
  bool add(TaskId id, const Submission& submission = asked("do it")) {
    std::optional<bool> answer;
    add(id, submission, answer);
    return turn_until([&] { return answer.has_value(); }) && *answer;
  }
  bool update(TaskId id, const Progress& progress, std::optional<std::string> result = {}) {
    bool done = false;
    note(id, progress, std::move(result), [&done] { done = true; });
    return turn_until([&] { return done; });
  }
  /// A fact that nobody waits for.
  void note(TaskId id, const Progress& progress, std::optional<std::string> result, std::function<void()> done) {
    store->write({.apply = write_of({.id = id, .to = progress, .result = std::move(result)}),
                  .done = [done = std::move(done)](bool /*kept*/) { done(); },
                  .kind = Change::Kind::patient_fact});
  }

  template <typename Done>
  bool turn_until(Done done) {
    const auto deadline = loop.now() + transport::test_patience;
    while (!done() && loop.now() < deadline) loop.turn(deadline);
    return done();
  }

  std::optional<Task> find(TaskId id) {
    return store->read([id](StoreReader& tasks) { return tasks.find(id); }).value();
  }

  std::string file(const std::string& name) const { return path_ + '/' + name; }

  transport::TemporaryFolder folder;
  transport::Loop loop;
  base::Fd directory;
  Committer::Options options;
  std::vector<Store::Health> healths;
  std::function<void(const Store::Health&)> on_health;
  std::atomic<int> write_fault = SQLITE_OK;
  std::atomic<int> sync_fault = SQLITE_OK;
  std::atomic<bool> fault_in_main_file = false;  // else in the log
  std::atomic<int> syncs = 0;
  std::optional<Store> store;

 private:
  std::string path_;
};

}  // namespace duet::task
