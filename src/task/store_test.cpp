#include "task/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>

#include "task/store_fixture_test.h"
#include "task/store_vfs.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

std::vector<TaskId> listed(Store& store, std::optional<State> state, TaskId before, std::size_t limit) {
  std::vector<TaskId> ids;
  store.read([&](StoreReader& tasks) {
    tasks.list(state, before, limit, [&](const Task& task) {
      ids.push_back(task.id);
      return true;
    });
  });
  return ids;
}

TEST(Store, ItsFilesAreForTheOwnerOnly) {
  const mode_t before = umask(0);
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  umask(before);
  for (const char* name : {"tasks.db", "tasks.db-wal", "tasks.db-shm"}) EXPECT_EQ(mode_of(box.file(name)), 0600U);
}

TEST(Store, KeepsATaskWithAllThatBelongsToIt) {
  StoreBox box;
  box.open();
  Submission submission = StoreBox::asked(std::string(5000, 'p') + "\u00e4\"'\\ \n$()");
  submission.priority = -7;
  submission.key = "once";
  submission.retries = 2;
  ASSERT_TRUE(box.add(7, submission));
  Progress progress{.state = State::failed, .attempts = 3};
  progress.started_at = base::UtcTime(1'700'000'000'123ms);
  progress.completed_at = base::UtcTime(1'700'000'001'456ms);
  progress.pid = 4711;
  progress.signal = "SIGKILL";
  progress.error = {Reason::signal, "ended by SIGKILL"};
  ASSERT_TRUE(box.update(7, progress, "out\xFF\0put"));

  box.open();
  const std::optional<Task> task = box.find(7);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->prompt, submission.prompt);
  EXPECT_EQ(task->priority, -7);
  EXPECT_EQ(task->progress.state, State::failed);
  EXPECT_EQ(task->progress.attempts, 3U);
  EXPECT_EQ(task->progress.started_at, progress.started_at);
  EXPECT_EQ(task->progress.completed_at, progress.completed_at);
  EXPECT_EQ(task->progress.pid, 4711);
  EXPECT_EQ(task->progress.exit_code, std::nullopt);
  EXPECT_EQ(task->progress.signal, "SIGKILL");
  EXPECT_EQ(task->progress.error->reason, Reason::signal);
  EXPECT_EQ(task->result, "out\xFF\0put");
  const auto keyed = box.store->read([](StoreReader& tasks) { return tasks.find_key("once"); }).value();
  ASSERT_TRUE(keyed);
  EXPECT_EQ(keyed->id, 7U);
  EXPECT_EQ(keyed->body, to_body(submission));
  EXPECT_FALSE(box.find(8));
}

TEST(Store, AnEndedTaskThatWasStoredAsHeldIsNotShownAsSuch) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  const auto is_held_after_a_hold = [&box] {
    bool done = false;
    box.store->write(
        {.apply = [](StoreWriter& writer) { writer.set_held(1, true); }, .done = [&](bool) { done = true; }});
    return box.turn_until([&] { return done; }) && box.find(1)->held;
  };
  EXPECT_TRUE(is_held_after_a_hold());
  ASSERT_TRUE(box.update(1, {.state = State::cancelled}));
  EXPECT_FALSE(is_held_after_a_hold());
}

TEST(Store, WhatAttemptsHaveUsedIsAddedUp) {
  using std::chrono::microseconds;
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(7));
  EXPECT_EQ(box.find(7)->usage, std::nullopt);
  const auto end = [&](State state, const Usage& usage) {
    bool done = false;
    Progress to{.state = state, .attempts = 1};
    if (state == State::queued) to.retry_at = base::UtcTime(1ms);
    box.store->write({.apply = write_of({.id = 7, .to = to, .usage = usage}), .done = [&](bool) { done = true; }});
    ASSERT_TRUE(box.turn_until([&] { return done; }));
  };
  std::vector<Event> told;
  box.store->publish_to([&](std::vector<Event> events) { told.insert(told.end(), events.begin(), events.end()); });
  end(State::queued, {microseconds(1'500'000), 1000, 10});
  end(State::completed, {microseconds(1'000), 900, 7});
  EXPECT_EQ(box.find(7)->usage, (Usage{microseconds(1'501'000), 1000, 17}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].params.find("cpuSeconds"), std::string::npos);
  EXPECT_NE(told[1].params.find(R"("cpuSeconds":1.501,"maxMemory":1000,"outputBytes":17)"), std::string::npos)
      << told[1].params;
}

TEST(Store, WorksInAFolderWhosePathHasAThousandBytes) {
  const transport::TemporaryFolder root;
  const std::string path = fs::path(root.file_of_length(1000, "x")).parent_path();
  StoreBox box(path);
  box.open();
  ASSERT_TRUE(box.add(1));
  box.open();
  EXPECT_TRUE(box.find(1));
  EXPECT_TRUE(fs::exists(path + "/tasks.db-wal"));
}

TEST(Store, ListsTheNewestFirstFromAnyPlaceAndByState) {
  StoreBox box;
  box.open();
  for (TaskId id = 1; id <= 9; ++id) ASSERT_TRUE(box.add(id));
  for (const TaskId id : {2U, 5U, 8U}) ASSERT_TRUE(box.update(id, {.state = State::running}));
  EXPECT_EQ(listed(*box.store, {}, 100, 3), (std::vector<TaskId>{9, 8, 7}));
  EXPECT_EQ(listed(*box.store, {}, 4, 10), (std::vector<TaskId>{3, 2, 1}));
  EXPECT_EQ(listed(*box.store, State::running, 8, 10), (std::vector<TaskId>{5, 2}));
  EXPECT_EQ(listed(*box.store, State::failed, 100, 10), (std::vector<TaskId>{}));
}

TEST(Store, ListsByEndWhateverTheIdsAre) {
  StoreBox box;
  box.open();
  for (TaskId id = 1; id <= 5; ++id) ASSERT_TRUE(box.add(id));
  const auto end = [&](TaskId id, State state) {
    Progress progress{.state = state};
    progress.completed_at = base::UtcTime(1'700'000'000'000ms);  // the same for all: the order is not that of a clock
    return box.update(id, progress);
  };
  ASSERT_TRUE(end(4, State::completed) && end(2, State::failed) && end(5, State::completed) &&
              end(1, State::cancelled));
  const auto by_end = [&](std::optional<State> state, std::size_t limit) {
    std::vector<TaskId> ids;
    const ListQuery query{.state = state, .limit = limit, .sort = ListQuery::Sort::ended};
    box.store->read(
        [&](StoreReader& tasks) { tasks.list(query, [&](const Task& task) { return ids.push_back(task.id), true; }); });
    return ids;
  };
  EXPECT_EQ(by_end({}, 3), (std::vector<TaskId>{1, 5, 2}));
  EXPECT_EQ(by_end(State::completed, 3), (std::vector<TaskId>{5, 4}));
  ASSERT_TRUE(box.update(1, {.state = State::queued}));
  EXPECT_EQ(by_end({}, 1), std::vector<TaskId>{5});
}

TEST(Store, ListsTheBeginningOfAPromptAndNeverHalfACharacter) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1, StoreBox::asked(std::string(1023, 'a') + "\u00e4" + std::string(9000, 'b'))));
  box.store->read([](StoreReader& tasks) {
    tasks.list({}, 100, 10, [](const Task& task) {
      EXPECT_EQ(task.prompt, std::string(1023, 'a'));
      return true;
    });
  });
}

TEST(Store, OfVersion3IsTakenOver) {
  StoreBox box;
  box.open();
  Submission submission = StoreBox::asked("x");
  submission.key = "k";
  ASSERT_TRUE(box.add(7, submission));
  box.store.reset();
  {
    StoreVfs vfs;
    make_version_3(Database(box.file("tasks.db"), SQLITE_OPEN_READWRITE, vfs.name()));
  }
  box.open();
  const std::optional<Task> task = box.find(7);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->group, default_group);
  EXPECT_FALSE(task->held);
  EXPECT_FALSE(task->not_before);
  EXPECT_TRUE(task->labels.empty());
  const auto keyed = box.store->read([](StoreReader& tasks) { return tasks.find_key("k"); }).value();
  EXPECT_EQ(keyed->body, to_body(submission));
  EXPECT_TRUE(box.add(8));
}

TEST(Store, ChangesOfOneTurnCostOneSync) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  ASSERT_TRUE(box.add(2));
  const int before = box.syncs;
  std::vector<std::optional<bool>> answers(64);
  for (std::size_t i = 0; i < answers.size(); ++i) box.add(10 + i, StoreBox::asked("x"), answers[i]);
  ASSERT_TRUE(box.turn_until([&] { return answers.back().has_value(); }));
  EXPECT_EQ(box.syncs - before, 1);
  for (const auto& answer : answers) EXPECT_EQ(answer, true);
}

TEST(Store, WhatIsNotOnDiskYetIsNotSeen) {
  StoreBox box;
  box.open();
  std::optional<bool> answer;
  box.add(1, StoreBox::asked("x"), answer);
  EXPECT_FALSE(box.find(1));
  ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(box.find(1));
}

TEST(Store, RefusesWhatAFullDiskCannotTakeAndRecovers) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(box.add(2));
  ASSERT_EQ(box.healths.size(), 1U);
  EXPECT_EQ(box.healths[0].problem, "the disk is full");
  EXPECT_FALSE(box.healths[0].lost);
  box.write_fault = SQLITE_OK;
  EXPECT_TRUE(box.add(3));
  EXPECT_TRUE(box.store->is_healthy());
  box.open();
  EXPECT_TRUE(box.find(1));
  EXPECT_FALSE(box.find(2));
  EXPECT_TRUE(box.find(3));
}

TEST(Store, RecoversFromAFullDiskByItself) {
  StoreBox box;
  box.open();
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(box.add(1));
  box.write_fault = SQLITE_OK;
  EXPECT_TRUE(box.turn_until([&] { return box.store->is_healthy(); }));
}

TEST(Store, WhatNobodyWaitsForSharesCommits) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.syncs = 0;
  const base::TimePoint began = box.loop.now();
  int left = 50;
  for (int i = left; i > 0; --i) {
    box.note(1, {.state = State::running}, {}, [&] { --left; });
    const base::TimePoint next = box.loop.now() + std::chrono::microseconds(500);
    while (box.loop.now() < next) box.loop.turn(next);
  }
  ASSERT_TRUE(box.turn_until([&] { return left == 0; }));
  EXPECT_LE(box.syncs, (box.loop.now() - began) / std::chrono::milliseconds(4) + 2);
}

// The thread whose syncs are counted, of the next task.
std::thread::id committing_thread(StoreBox& box, TaskId id) {
  std::thread::id thread;
  box.store->write({.apply = [&](StoreWriter&) { thread = std::this_thread::get_id(); }});
  EXPECT_TRUE(box.add(id));
  return thread;
}

TEST(Store, ALoopThatIsNotHeldUpCommitsByItself) {
  StoreBox box;
  box.options.quick_commit = 10s;
  box.open();
  EXPECT_EQ(committing_thread(box, 1), std::this_thread::get_id());
  EXPECT_EQ(committing_thread(box, 2), std::this_thread::get_id());
}

TEST(Store, SlowCommitsAreLeftToAThread) {
  StoreBox box;
  box.options.quick_commit = 0s;
  box.open();
  EXPECT_NE(committing_thread(box, 1), std::this_thread::get_id());
  EXPECT_NE(committing_thread(box, 2), std::this_thread::get_id());
  box.options.may_use_thread = false;
  box.open();
  EXPECT_EQ(committing_thread(box, 3), std::this_thread::get_id());
}

TEST(Store, MuchAtOnceIsLeftToAThreadAndSoIsWhatNobodyWaitsFor) {
  StoreBox box;
  box.options.quick_commit = 10s;
  box.options.few_bytes = 2000;
  box.open();
  EXPECT_EQ(committing_thread(box, 1), std::this_thread::get_id());
  std::thread::id thread;
  bool done = false;
  const auto look_at_thread = [&](Change::Kind kind, std::size_t bytes) {
    done = false;
    box.store->write({.apply = [&](StoreWriter&) { thread = std::this_thread::get_id(); },
                      .done = [&](bool) { done = true; },
                      .kind = kind,
                      .bytes = bytes});
    EXPECT_TRUE(box.turn_until([&] { return done; }));
    return thread;
  };
  EXPECT_NE(look_at_thread(Change::Kind::request, 4000), std::this_thread::get_id());
  EXPECT_NE(look_at_thread(Change::Kind::patient_fact, 100), std::this_thread::get_id());
  EXPECT_EQ(look_at_thread(Change::Kind::fact, 100), std::this_thread::get_id());
}

TEST(Store, WhileCommitsFailTheyAreLeftToAThread) {
  StoreBox box;
  box.options.quick_commit = 10s;
  box.open();
  EXPECT_EQ(committing_thread(box, 1), std::this_thread::get_id());
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(box.add(2));
  std::thread::id thread;
  bool done = false;
  box.write_fault = SQLITE_OK;
  box.store->write(
      {.apply = [&](StoreWriter&) { thread = std::this_thread::get_id(); }, .done = [&](bool) { done = true; }});
  ASSERT_TRUE(box.turn_until([&] { return done; }));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(committing_thread(box, 3), std::this_thread::get_id());
}

TEST(Store, OneThatThrowsWhenItsHealthChangesCostsNobodyAnAnswer) {
  StoreBox box;
  box.open();
  box.on_health = [](const Store::Health& health) {
    if (health.problem.empty()) throw std::runtime_error("a defect");
  };
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(box.add(1));
  box.write_fault = SQLITE_OK;
  std::optional<bool> answer;
  box.add(2, StoreBox::asked("x"), answer);
  EXPECT_THROW(box.turn_until([&] { return answer.has_value() && box.store->is_healthy() && box.healths.size() > 1; }),
               std::runtime_error);
  EXPECT_EQ(answer, true);
  bool acknowledged = false;
  box.store->when_idle([&] { acknowledged = true; });
  EXPECT_TRUE(box.turn_until([&] { return acknowledged; }));
}

TEST(Store, WhatIsAskedIsReadAsItWasWrittenHoweverLongItIs) {
  StoreBox box;
  box.open();
  TaskId id = 0;
  for (const std::size_t size : {0U, 1U, 900U, 1000U, 1024U, 1100U, 5000U, 100'000U}) {
    const Submission submission{.prompt = std::string(size, 'p'), .key = "key " + std::to_string(size)};
    std::optional<bool> answer;
    box.add(++id, submission, answer);
    ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
    const std::string body = to_body(submission);
    EXPECT_EQ(box.store->read([&](StoreReader& tasks) { return tasks.body(id); }).value(), body);
    EXPECT_EQ(box.store->read([&](StoreReader& tasks) { return tasks.find_key(submission.key); }).value()->body, body);
    EXPECT_EQ(box.find(id)->prompt, submission.prompt);
  }
}

TEST(Store, WhatComesWhileTheThreadCommitsIsTheNextCommit) {
  StoreBox box;
  box.options.quick_commit = 0s;
  box.open();
  std::promise<void> begun;
  std::promise<void> go_on;
  std::vector<int> done;
  box.store->write({.apply =
                        [&](StoreWriter&) {
                          begun.set_value();
                          go_on.get_future().wait();
                        },
                    .done = [&](bool) { done.push_back(0); }});
  box.loop.turn(box.loop.now());
  box.loop.turn(box.loop.now());
  begun.get_future().wait();
  for (int i = 1; i < 4; ++i) {
    box.store->write({.apply = [](StoreWriter&) {}, .done = [&done, i](bool) { done.push_back(i); }});
    box.loop.turn(box.loop.now());
  }
  EXPECT_TRUE(done.empty());
  go_on.set_value();
  ASSERT_TRUE(box.turn_until([&] { return done.size() == 4; }));
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Store, WhatHasHappenedIsWrittenAsSoonAsItCanBe) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.write_fault = SQLITE_FULL;
  bool done = false;
  box.note(1, {.state = State::completed}, "result", [&] { done = true; });
  EXPECT_FALSE(box.add(2));
  EXPECT_FALSE(done);
  EXPECT_EQ(box.find(1)->progress.state, State::queued);
  box.write_fault = SQLITE_OK;
  ASSERT_TRUE(box.turn_until([&] { return done; }));
  EXPECT_EQ(box.find(1)->progress.state, State::completed);
  EXPECT_EQ(box.find(1)->result, "result");
}

TEST(Store, AfterAFailedSyncNothingIsTakenUntilAllIsWrittenAgain) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.sync_fault = SQLITE_IOERR_FSYNC;
  EXPECT_FALSE(box.add(2));
  EXPECT_FALSE(box.add(3));
  EXPECT_NE(box.store->health().problem.find("sync failed"), std::string::npos);
  box.sync_fault = SQLITE_OK;
  EXPECT_TRUE(box.add(4));
  box.open();
  EXPECT_TRUE(box.find(1));
  EXPECT_FALSE(box.find(2));
  EXPECT_FALSE(box.find(3));
  EXPECT_TRUE(box.find(4));
}

TEST(Store, AfterAFailedSyncTheMainFileHasToBeSyncedAsWell) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.sync_fault = SQLITE_IOERR_FSYNC;
  EXPECT_FALSE(box.add(2));
  box.fault_in_main_file = true;
  EXPECT_FALSE(box.add(3));
  box.sync_fault = SQLITE_OK;
  EXPECT_TRUE(box.add(4));
}

TEST(Store, WhatAFailedSyncRefusedIsNotThereAfterACrash) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.sync_fault = SQLITE_IOERR_FSYNC;
  EXPECT_FALSE(box.add(2));
  // The files as a killed daemon leaves them.
  const transport::TemporaryFolder copy;
  for (const char* name : {"tasks.db", "tasks.db-wal"}) fs::copy(box.file(name), copy.file(name));
  StoreBox after(copy.path());
  after.open();
  EXPECT_TRUE(after.find(1));
  EXPECT_FALSE(after.find(2));
}

TEST(Store, NoticesThatItsFilesWereRemovedOrReplaced) {
  for (const char* name : {"tasks.db", "tasks.db-wal"}) {
    for (const bool replaced : {false, true}) {
      StoreBox box;
      box.open();
      ASSERT_TRUE(box.add(1));
      fs::rename(box.file(name), box.file("elsewhere"));
      if (replaced) fs::copy(box.file("elsewhere"), box.file(name));
      EXPECT_FALSE(box.add(2)) << name;
      EXPECT_TRUE(box.store->health().lost) << name;
      EXPECT_FALSE(box.add(3)) << name;
    }
  }
}

TEST(Store, NoticesThatItsFolderIsGone) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  fs::remove_all(box.folder.path());
  EXPECT_FALSE(box.add(2));
  EXPECT_TRUE(box.store->health().lost);
}

TEST(Store, AnotherProgramsLockIsNamed) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  StoreVfs vfs;
  const Database other(box.file("tasks.db"), SQLITE_OPEN_READWRITE, vfs.name());
  other.run("BEGIN IMMEDIATE");
  EXPECT_FALSE(box.add(2));
  EXPECT_EQ(box.store->health().problem, "another program has locked the store");
  other.run("ROLLBACK");
  EXPECT_TRUE(box.add(3));
}

TEST(Store, AnotherProgramsLockHoldsUpOnlyTheThread) {
  StoreBox box;
  box.options.quick_commit = 10s;
  box.open();
  EXPECT_EQ(committing_thread(box, 1), std::this_thread::get_id());
  StoreVfs vfs;
  const Database other(box.file("tasks.db"), SQLITE_OPEN_READWRITE, vfs.name());
  other.run("BEGIN IMMEDIATE");
  std::optional<bool> answer;
  box.add(2, StoreBox::asked("x"), answer);
  for (int i = 0; i < 5; ++i) box.loop.turn(box.loop.now());
  EXPECT_FALSE(answer) << "the thread may still get the lock";
  other.run("ROLLBACK");
  ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer, true);
  EXPECT_TRUE(box.healths.empty());
}

TEST(Store, RemembersValuesByName) {
  StoreBox box;
  box.open();
  for (const char* value : {"first", "second"}) {
    bool kept = false;
    box.store->write({.apply = [value](StoreWriter& writer) { writer.remember("automation", value); },
                      .done = [&](bool is_kept) { kept = is_kept; }});
    ASSERT_TRUE(box.turn_until([&] { return kept; }));
  }
  box.open();
  const auto recall = [&](const char* name) {
    return box.store->read([name](StoreReader& tasks) { return tasks.recall(name); }).value();
  };
  EXPECT_EQ(recall("automation"), "second");
  EXPECT_EQ(recall("nothing"), std::nullopt);
}

TEST(Store, SaysWhenEverythingIsWritten) {
  StoreBox box;
  box.open();
  std::optional<bool> answer;
  bool acknowledged = false;
  box.add(1, StoreBox::asked("x"), answer);
  box.store->when_idle([&] { acknowledged = true; });
  ASSERT_TRUE(box.turn_until([&] { return acknowledged; }));
  EXPECT_EQ(answer, true);
}

TEST(Store, IsSettledInTroubleWhenEveryRequestWasAnswered) {
  StoreBox box;
  box.options.quick_commit = 0s;
  box.open();
  box.write_fault = SQLITE_FULL;
  box.note(1, {.state = State::running}, {}, [] {});
  box.loop.turn(box.loop.now());
  std::optional<bool> answer;
  box.add(1, StoreBox::asked("x"), answer);  // while the thread finds that it cannot write
  bool acknowledged = false;
  box.store->when_idle([&] {
    acknowledged = true;
    EXPECT_EQ(answer, false);
  });
  EXPECT_TRUE(box.turn_until([&] { return acknowledged; }));
}

TEST(Store, WhatWasChangedJustBeforeTheEndIsKept) {
  StoreBox box;
  box.open();
  std::optional<bool> answer;
  box.add(1, StoreBox::asked("x"), answer);
  box.open();
  EXPECT_TRUE(box.find(1));
}

Change tells(const char* kind, std::function<void(bool kept)> done) {
  return {.apply = [kind](StoreWriter& writer) { writer.tell(kind, 0, {}); }, .done = std::move(done)};
}

TEST(Store, WhatOneCallbackThrowsConcernsNoOther) {
  StoreBox box;
  box.open();
  std::vector<std::string> told;
  box.store->publish_to([&](const std::vector<Event>& events) {
    for (const Event& event : events) told.push_back(event.kind);
  });
  std::optional<bool> second;
  bool acknowledged = false;
  box.store->write(tells("one", [](bool /*kept*/) { throw std::runtime_error("a defect"); }));
  box.store->write(tells("two", [&](bool kept) { second = kept; }));
  box.store->when_idle([&] { acknowledged = true; });
  EXPECT_THROW(box.turn_until([&] { return acknowledged; }), std::runtime_error);
  EXPECT_TRUE(box.turn_until([&] { return acknowledged; }));
  EXPECT_EQ(second, true);
  EXPECT_EQ(told, (std::vector<std::string>{"one", "two"}));
}

TEST(Store, AChangeThatThrowsIsRefusedAndTheStoreGoesOn) {
  StoreBox box;
  box.open();
  std::optional<bool> kept;
  box.store->write({.apply = [](StoreWriter& /*writer*/) { throw std::bad_alloc(); },
                    .done = [&](bool is_kept) { kept = is_kept; }});
  EXPECT_TRUE(box.turn_until([&] { return kept.has_value(); }));
  EXPECT_EQ(kept, false);
  EXPECT_TRUE(box.add(1));
  EXPECT_TRUE(box.store->is_healthy());
}

TEST(Store, AChangeThatWritesNothingDoesNotShowThatItWorks) {
  StoreBox box;
  box.open();
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(box.add(1));
  bool done = false;
  box.store->after_changes([&] { done = true; });
  EXPECT_TRUE(box.turn_until([&] { return done; }));
  EXPECT_FALSE(box.store->is_healthy());
}

}  // namespace
}  // namespace duet::task
