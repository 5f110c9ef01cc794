#include "task/keeper_fixture_test.h"
#include "task/store_fixture_test.h"
#include "task/store_folder.h"
#include "task/supervisor.h"

namespace duet::task {
namespace {

constexpr RunId first{1, 1};

// A supervisor with real keepers.
class SupervisedKeepersTest : public KeeperTest {
 protected:
  void begin_supervised() {
    std::filesystem::create_directory(folder_.file("store"));
    directory_ = open_folder(folder_.file("store"));
    store_.emplace(loop_, std::make_unique<StoreFolder>(directory_.get()), [](const Store::Health&) {});
    supervisor_.emplace(loop_, log_, *store_, TaskSettings{}, Context{.tasks = tasks_.get()},
                        OutputFollower::Audience{.wants = [](TaskId) { return false; },
                                                 .tell = [](TaskId, std::uint64_t, Stream, std::string_view) {}});
    world_ = std::make_unique<SystemKeeperWorld>(loop_, tasks_.get(), executable_.get());
    keepers_ = std::make_unique<Keepers>(loop_, log_, *world_, settings_, supervisor_->keeper_events());
    supervisor_->begin(*keepers_, recorded_runs(tasks_.get()));
    keepers_->end_strays();
  }
  void TearDown() override {
    keepers_.reset();
    supervisor_.reset();
    store_.reset();
    KeeperTest::TearDown();
  }

  base::Fd directory_;
  std::optional<Store> store_;
  std::optional<Supervisor> supervisor_;
};

TEST_F(SupervisedKeepersTest, AStrayThatHasWrittenSomethingIsEnded) {
  keepers().start(shell("echo hello; touch ready; sleep 1000"));
  ASSERT_TRUE(await_file("ready"));
  ASSERT_TRUE(turn_until([&] { return output_of(first) == "hello\n"; }));
  restart_daemon();
  begin_supervised();  // with a store that has never heard of it
  EXPECT_TRUE(turn_until([&] { return living().empty() && keepers().count() == 0; }));
  keepers_.reset();
  world_.reset();
  supervisor_.reset();
  store_.reset();
  begin_supervised();
  EXPECT_TRUE(turn_until([&] { return files().empty(); }));
}

}  // namespace
}  // namespace duet::task
