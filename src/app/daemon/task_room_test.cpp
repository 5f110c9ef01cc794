#include "app/daemon/task_room.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/log_sink.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

class TaskRoomTest : public testing::Test {
 protected:
  void make() {
    TaskRoom::Events events;
    events.output = {.wants = [](task::TaskId) { return false; },
                     .tell = [](task::TaskId, std::uint64_t, task::Stream, std::string_view) {}};
    events.store = [](const task::Store::Health&) {};
    events.queue = [](const std::string&) {};
    events.journal_began_anew = [] {};
    room.reset();
    const TaskRoom::Context context{.project = place.project(), .folder = folder, .lock = *lock, .cluster = cluster};
    room = std::make_unique<TaskRoom>(loop, log, context, task::TaskSettings{}, std::move(events));
  }
  /// Why it cannot be made; empty: it can.
  std::string refusal() {
    try {
      make();
    } catch (const Failure& failure) {
      return failure.what();
    }
    return {};
  }
  void share(const std::string& store) {
    cluster.store = store;
    cluster.project = "site";
    cluster.name = "one";
  }
  /// Of a shared queue.
  fs::path shared_tasks() const {
    struct stat status {};
    EXPECT_EQ(fstat(folder.descriptor(), &status), 0);
    return place.state() / ("tasks-" + std::to_string(status.st_ino));
  }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  std::optional<DaemonLock> lock = DaemonLock::take(folder);
  base::SystemClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};
  task::ClusterSettings cluster;
  std::unique_ptr<TaskRoom> room;
};

TEST_F(TaskRoomTest, WithoutAStoreTheQueueIsThisMachinesAndJoinedAtOnce) {
  ASSERT_EQ(refusal(), "");
  EXPECT_EQ(room->shared(), nullptr);
  EXPECT_TRUE(fs::is_directory(place.state() / "tasks"));
  bool is_joined = false;
  room->when_joined([&is_joined] { is_joined = true; });
  EXPECT_TRUE(is_joined);
}

TEST_F(TaskRoomTest, RunsOfASharedQueueStandApartAndWaitForTheJoin) {
  share("postgresql://duet@%2Fnowhere/work");
  ASSERT_EQ(refusal(), "");
  EXPECT_NE(room->shared(), nullptr);
  EXPECT_TRUE(fs::is_directory(shared_tasks()));
  EXPECT_FALSE(fs::exists(place.state() / "tasks")) << "their numbers are others";
  bool is_joined = false;
  room->when_joined([&is_joined] { is_joined = true; });
  EXPECT_FALSE(is_joined) << "which runs are strays only the queue knows";
}

TEST_F(TaskRoomTest, AnAddressThatCannotBeUsedIsAFailureOfTheStart) {
  share("postgresql://duet@db.example/work?sslmode=disable");
  EXPECT_EQ(refusal().rfind("store: ", 0), 0U) << refusal();
}

TEST_F(TaskRoomTest, AFileInThePlaceOfTheOutputsIsAFailureThatNamesIt) {
  TemporaryProject::write(place.state() / "tasks", "");
  EXPECT_EQ(refusal().rfind("cannot open .aiwg/daemon/tasks: ", 0), 0U) << refusal();
}

TEST_F(TaskRoomTest, AStoreThatCannotBeReadIsLeftAsItIs) {
  const std::string damaged(8192, 'x');
  TemporaryProject::write(place.state() / "tasks.db", damaged);
  EXPECT_NE(refusal().find("Nothing was changed"), std::string::npos) << refusal();
  EXPECT_EQ(TemporaryProject::read(place.state() / "tasks.db"), damaged);
}

}  // namespace
}  // namespace duet::app
