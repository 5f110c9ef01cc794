#include <sys/resource.h>

#include <future>
#include <set>
#include <thread>

#include "duet/base/sanitizer_test.h"
#include "task/contact.h"
#include "task/keeper_fixture_test.h"
#include "task/keeper_process.h"

namespace duet::task {
namespace {

using Kind = Outcome::Kind;

constexpr RunId first{1, 1};

// What keepers and the daemon do while the disk or the machine refuses.
class KeeperFaultsTest : public KeeperTest {
 protected:
  void begin(const std::string& script) {
    keepers().start(shell("touch ready; while [ ! -e go ]; do sleep 0.01; done; " + script));
    ASSERT_TRUE(await_file("ready"));
    ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
    keeper_ = keeper_of(first);
  }
  void go() { std::ofstream(folder_.file("go")) << ""; }
  /// Every write of the keeper behind that place in a file fails from now on.
  void limit_disk(rlim_t size) const { limit(keeper_, RLIMIT_FSIZE, size); }
  static void limit(pid_t process, __rlimit_resource resource, rlim_t value) {
    rlimit limit{};
    ASSERT_EQ(prlimit(process, resource, nullptr, &limit), 0);
    limit.rlim_cur = std::min(value, limit.rlim_max);
    ASSERT_EQ(prlimit(process, resource, &limit, nullptr), 0);
  }

  pid_t keeper_ = 0;
};

TEST_F(KeeperFaultsTest, AnEndThatCannotBeWrittenIsToldAtOnce) {
  begin("echo bye; exit 3");
  limit_disk(0);
  go();
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->kind, Kind::exited);
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_EQ(story(first).outcome->result, "bye\n");
  EXPECT_EQ(story(first).outcome->started->pid, story(first).started->pid);
}

TEST_F(KeeperFaultsTest, AnEndThatCannotBeWrittenWaitsForTheNextDaemon) {
  begin("echo bye; exit 3");
  restart_daemon();
  limit_disk(0);
  go();
  ASSERT_TRUE(turn_until([&] { return living().empty(); }));
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_EQ(story(first).outcome->result, "bye\n");
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper_); }));
}

TEST_F(KeeperFaultsTest, AnEndThatCannotBeWrittenIsWrittenWhenItCanBe) {
  begin("echo bye; exit 3");
  restart_daemon();
  limit_disk(0);
  go();
  ASSERT_TRUE(turn_until([&] { return living().empty(); }));
  EXPECT_TRUE(is_alive(keeper_));
  EXPECT_FALSE(RunRecord::open(tasks_.get(), first).read().outcome);
  limit_disk(RLIM_INFINITY);
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper_); }));
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_EQ(story(first).outcome->result, "bye\n");
  // The keeper may have come to the output only when there was room again.
  const std::vector<OutputRange> dropped = dropped_output(tasks_.get(), first);
  if (dropped.empty()) {
    EXPECT_EQ(output_of(first), "bye\n");
  } else {
    EXPECT_EQ(dropped, (std::vector<OutputRange>{{0, 4}}));
  }
}

TEST_F(KeeperFaultsTest, WithoutRoomForTheResultItIsTold) {
  begin("seq 100; exit 3");
  limit_disk(4096);
  go();
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_TRUE(story(first).outcome->result.ends_with("\n100\n"));
  keepers().remove_output(first);
  const auto names = files();
  EXPECT_TRUE(std::all_of(names.begin(), names.end(), is_contact_name)) << "what is removed takes no room";
}

// The daemon has not heard of the start yet when the outcome stands in the record without its result.
TEST_F(KeeperFaultsTest, AResultThatIsNotInTheRecordIsAskedFor) {
  const auto await = [](const auto& done) {
    for (int i = 0; i < 9000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return done();
  };
  const auto record = [&] { return RunRecord::open(tasks_.get(), first).read(); };
  keepers().start(shell("touch ready; while [ ! -e go ]; do sleep 0.01; done; echo bye"));
  ASSERT_TRUE(await([&] { return has_file("ready") && record().started; }));
  keeper_ = record().fingerprint.keeper;
  limit_disk(4096);
  go();
  ASSERT_TRUE(await([&] { return record().outcome.has_value(); }));
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->result, "bye\n");
  limit_disk(RLIM_INFINITY);  // so that the keeper ends, whether it has heard the daemon's last word or not
}

TEST_F(KeeperFaultsTest, AFullDiskCostsOnlyTheOutputThatCameMeanwhile) {
  const std::string await = "while [ ! -e $next ]; do sleep 0.01; done; ";
  begin("head -c 5000 /dev/zero | tr '\\0' x; next=two; " + await + "echo two; next=three; " + await +
        "seq 2000; exit 3");
  go();
  keepers().follow(first, 4'999);
  ASSERT_TRUE(turn_until([&] { return story(first).output == 5'000; }));
  limit_disk(4'096);  // which leaves the record as it is
  keepers().follow(first, 5'000);
  std::ofstream(folder_.file("two")) << "";
  ASSERT_TRUE(turn_until([&] { return story(first).output == 5'004; }));
  limit_disk(RLIM_INFINITY);
  std::ofstream(folder_.file("three")) << "";
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_TRUE(story(first).outcome->result.ends_with("\n2000\n"));
  EXPECT_EQ(dropped_output(tasks_.get(), first), (std::vector<OutputRange>{{5'000, 5'004}}));
  const std::string rest = read_output(tasks_.get(), first, 5'000, std::size_t{1} << 20).bytes;
  EXPECT_TRUE(rest.starts_with("1\n2\n") && rest.ends_with("\n2000\n"));
}

// Where no keeper can be forked; answers each order as the nursery does then.
class NoForks final : public SystemKeeperWorld {
 public:
  NoForks(transport::Loop& loop, int tasks) : SystemKeeperWorld(loop, tasks, -1), tasks_(tasks) {}

  Got<KeeperLine> take_keeper() override {
    const std::string name = new_contact_name();
    base::Fd listener = listen_in(tasks_, name);
    auto line = meet(name);
    remove_contact(name);
    refusal_ = std::async(std::launch::async,
                          [kept = std::move(listener)]() mutable { refuse_order(std::move(kept), EAGAIN); });
    return line;
  }

 private:
  int tasks_;
  std::future<void> refusal_;
};

TEST_F(KeeperFaultsTest, WhatNoKeeperCanBeForkedForNeverBegan) {
  NoForks world(loop_, tasks_.get());
  keepers_ = std::make_unique<Keepers>(loop_, log_, world, settings_, events());
  for (int tries = 0; tries < 5; ++tries) {
    EXPECT_TRUE(run(shell("true")).never_began);
    EXPECT_TRUE(files().empty());
  }
  keepers_.reset();
  EXPECT_EQ(run(shell("exit 3")).outcome->code, 3);
}

TEST_F(KeeperFaultsTest, WhatAKeeperCannotStartForWantOfDescriptorsNeverBegan) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  const pid_t keeper = std::stoi(run(shell("echo $PPID", 9)).outcome->result);
  std::set<int> used;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(keeper) + "/fd")) {
    used.insert(std::stoi(entry.path().filename()));
  }
  int enough_for_the_order = 0;  // and not for its pipes
  for (int free = 0; free < 3; ++enough_for_the_order) free += used.contains(enough_for_the_order) ? 0 : 1;
  limit(keeper, RLIMIT_NOFILE, static_cast<rlim_t>(enough_for_the_order));
  EXPECT_TRUE(run(shell("echo $PPID")).never_began);
  EXPECT_FALSE(RunRecord::open(tasks_.get(), first));
  limit(keeper, RLIMIT_NOFILE, 1000);
  EXPECT_EQ(run(shell("exit 3")).outcome->code, 3);
}

class NoRecordCanBeOpened final : public SystemKeeperWorld {
 public:
  using SystemKeeperWorld::SystemKeeperWorld;
  Got<KeptRecord> open_record(RunId) override { return tl::unexpected(Hindrance{EMFILE, "no descriptors"}); }
};

TEST_F(KeeperFaultsTest, WhileARecordCannotBeReadItsKeeperCanStillBeMet) {
  begin("exit 3");
  restart_daemon();
  {
    NoRecordCanBeOpened world(loop_, tasks_.get(), executable_.get());
    Keepers(loop_, log_, world, settings_, events()).end_strays();
  }
  const auto names = files();
  EXPECT_EQ(std::count_if(names.begin(), names.end(), is_contact_name), 1);
  keepers().adopt(first);
  go();
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 3);
}

// The disk is read-only, say, when a record is to be made.
class ReadOnlyDisk final : public SystemKeeperWorld {
 public:
  using SystemKeeperWorld::SystemKeeperWorld;
  Got<KeptRecord> make_record(RunId run, const std::string& contact) override {
    if (error == 0) return SystemKeeperWorld::make_record(run, contact);
    return tl::unexpected(Hindrance{error, "read-only"});
  }
  void remove_output(RunId /*run*/) override {}
  int error = 0;
};

TEST_F(KeeperFaultsTest, WithoutARecordItNeverBegan) {
  ReadOnlyDisk world(loop_, tasks_.get(), executable_.get());
  keepers_ = std::make_unique<Keepers>(loop_, log_, world, settings_, events());
  world.error = EROFS;
  EXPECT_TRUE(run(shell("true")).never_began);
  keepers_.reset();
}

TEST_F(KeeperFaultsTest, WithAnOldRecordThatCannotBeRemovedItNeverBegan) {
  ReadOnlyDisk world(loop_, tasks_.get(), executable_.get());
  keepers_ = std::make_unique<Keepers>(loop_, log_, world, settings_, events());
  RunRecord::create(tasks_.get(), first, "");
  EXPECT_TRUE(run(shell("true")).never_began);
  keepers_.reset();
}

// A line that is refused the first time somebody wants to listen.
class DeafLine final : public KeeperLine {
 public:
  DeafLine(std::unique_ptr<KeeperLine> inner, int& refusals) : inner_(std::move(inner)), refusals_(refusals) {}
  std::unique_ptr<KeeperLine> take() { return std::move(inner_); }
  const std::string& contact() const override { return inner_->contact(); }
  bool listen(Listener* listener) override {
    if (listener != nullptr && refusals_ > 0) return --refusals_ < 0;
    return inner_->listen(listener);
  }
  tl::expected<void, Hindrance> give(const Order& order, const KeptRecord& record) override {
    return inner_->give(order, record);
  }
  void tell(const Message& message) override { inner_->tell(message); }

 private:
  std::unique_ptr<KeeperLine> inner_;
  int& refusals_;
};

class HardOfHearing final : public SystemKeeperWorld {
 public:
  using SystemKeeperWorld::SystemKeeperWorld;
  Got<KeeperLine> take_keeper() override {
    return SystemKeeperWorld::take_keeper().map(
        [this](std::unique_ptr<KeeperLine> line) { return deafen(std::move(line)); });
  }
  std::unique_ptr<KeeperLine> meet(const std::string& contact) override {
    auto line = SystemKeeperWorld::meet(contact);
    return line ? deafen(std::move(line)) : nullptr;
  }
  void put_back(std::unique_ptr<KeeperLine> line, std::optional<RunId> acknowledged) override {
    SystemKeeperWorld::put_back(static_cast<DeafLine&>(*line).take(), acknowledged);
  }
  int refusals = 2;

 private:
  std::unique_ptr<KeeperLine> deafen(std::unique_ptr<KeeperLine> line) {
    return std::make_unique<DeafLine>(std::move(line), refusals);
  }
};

TEST_F(KeeperFaultsTest, ALineThatCannotBeListenedToIsMadeAgain) {
  HardOfHearing world(loop_, tasks_.get(), executable_.get());
  keepers_ = std::make_unique<Keepers>(loop_, log_, world, settings_, events());
  EXPECT_EQ(run(shell("echo x >> count; sleep 0.3; exit 3")).outcome->code, 3);
  EXPECT_EQ(world.refusals, 0);
  EXPECT_EQ(file_text("count"), "x\n");
  keepers_.reset();
}

// A number that may be another's by then would have a foreign session killed.
TEST_F(KeeperFaultsTest, WhenTheMainProcessStartedIsReadBeforeItIsReaped) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer may write files itself";
  keeper_ = std::stoi(run(shell("echo $PPID", 9)).outcome->result);
  acknowledge_at_once_ = false;
  limit_disk(512);  // that it began can be written, that it has started cannot
  keepers().start(shell("exit 3"));
  ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
  EXPECT_FALSE(RunRecord::open(tasks_.get(), first).read().started);
  limit_disk(RLIM_INFINITY);
  ASSERT_TRUE(turn_until([&] { return RunRecord::open(tasks_.get(), first).read().started.has_value(); }));
  EXPECT_NE(RunRecord::open(tasks_.get(), first).read().fingerprint.main_ticks, 0U);
  EXPECT_TRUE(finish(first));
  keepers().acknowledge(first);
}

TEST_F(KeeperFaultsTest, AKeeperOfAnotherBootIsNotWoken) {
  SystemKeeperWorld world(loop_, tasks_.get(), executable_.get());
  const process::Child child =
      process::launch({.arguments = {"/bin/sh", "-c", "kill -STOP $$"}, .environment = process::current_environment()});
  const auto state = [&] { return process::read_process(child.pid)->state; };
  EXPECT_TRUE(turn_until([&] { return state() == 'T'; }));
  world.wake_keeper({.boot = "another boot", .keeper = child.pid});
  EXPECT_EQ(state(), 'T');
  world.wake_keeper({.boot = process::boot_id(), .keeper = child.pid});
  EXPECT_EQ(process::reap(child).code, 0);
}

}  // namespace
}  // namespace duet::task
