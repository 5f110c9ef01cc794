#include "app/daemon/shared_queue.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/log_sink.h"
#include "duet/transport/await_test.h"
#include "task/store_fixture_test.h"

namespace duet::app {
namespace {

/// A shared queue whose server is not there: what is decided before it is met.
class SharedQueueTest : public testing::Test {
 protected:
  SharedQueueTest() {
    mkdirat(folder.descriptor(), "tasks", 0700);
    tasks.reset(openat(folder.descriptor(), "tasks", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    store = std::make_unique<task::Store>(loop, std::make_unique<task::StoreFolder>(folder.descriptor()),
                                          [](const task::Store::Health&) {});
    cluster.store = "postgresql://duet@" + nowhere() + "/work";
    cluster.project = "site";
    cluster.name = "one";
  }

  /// A folder for sockets that has none.
  std::string nowhere() const {
    std::string escaped;
    for (const char c : place.path().string()) escaped += c == '/' ? std::string("%2F") : std::string(1, c);
    return escaped;
  }
  void make() {
    const SharedQueue::Context context{folder, tasks.get(), [] { return std::string("/project"); }, {}, {}, {}};
    task::postgres::PostgresQueue::Tells tells;
    tells.output = {.wants = [](task::TaskId) { return false; },
                    .tell = [](task::TaskId, std::uint64_t, task::Stream, std::string_view) {}};
    tells.problem = [](const std::string&) {};
    tells.journal_began_anew = [] {};
    queue = std::make_unique<SharedQueue>(loop, log, context, *store, task::TaskSettings{}, cluster, tells);
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
  void add_task(task::TaskId id) {
    bool done = false;
    store->write(task::insertion({.id = id, .created_at = loop.clock().utc()}, {.prompt = "do it"},
                                 [&done](bool /*kept*/) { done = true; }));
    const auto deadline = std::chrono::steady_clock::now() + transport::test_patience;
    while (!done && std::chrono::steady_clock::now() < deadline) loop.turn(loop.now() + std::chrono::seconds(1));
    ASSERT_TRUE(done);
  }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  base::SystemClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};
  base::Fd tasks;
  std::unique_ptr<task::Store> store;
  task::ClusterSettings cluster;
  std::unique_ptr<SharedQueue> queue;
};

TEST_F(SharedQueueTest, UnfinishedTasksOfThisMachineAreNotLeftBehind) {
  add_task(1);
  EXPECT_NE(refusal().find("has 1 task that has not ended"), std::string::npos) << refusal();
  add_task(2);
  EXPECT_NE(refusal().find("has 2 tasks that have not ended"), std::string::npos) << refusal();
}

TEST_F(SharedQueueTest, AnAddressThatCannotBeUsedIsRefusedWithoutItsPassword) {
  cluster.store = "postgresql://duet:geheim@db.example:port/work";
  EXPECT_EQ(refusal().rfind("store: ", 0), 0U) << refusal();
  EXPECT_EQ(refusal().find("geheim"), std::string::npos);
}

TEST_F(SharedQueueTest, AServerOfAnotherMachineIsNotMetWithoutACertificate) {
  cluster.store = "postgresql://duet@db.example/work?sslmode=disable";
  EXPECT_NE(refusal().find("sslmode"), std::string::npos) << refusal();
  cluster.insecure = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(SharedQueueTest, ALeaseThatCannotBeKeptIsRefused) {
  tasks.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(refusal().rfind("cannot keep the worker's lease", 0), 0U) << refusal();
}

TEST_F(SharedQueueTest, ItIsNotAskedForAnythingBeforeItIsStarted) {
  ASSERT_EQ(refusal(), "");
  EXPECT_FALSE(queue->queue().is_joined());
  EXPECT_FALSE(queue->queue().was_joined());
  EXPECT_FALSE(queue->queue().is_refused());
}

}  // namespace
}  // namespace duet::app
