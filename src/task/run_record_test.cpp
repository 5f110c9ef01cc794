#include "task/run_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr RunId run{7, 2};

class RunRecordTest : public testing::Test {
 protected:
  void flip(off_t place) const {
    const base::Fd file(openat(tasks_.get(), "task-7.2", O_RDWR | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(pread(file.get(), &byte, 1, place), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(pwrite(file.get(), &byte, 1, place), 1);
  }

  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(RunRecordTest, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ(record_name(run), "task-7.2");
  EXPECT_EQ(output_name(run), "task-7.2.out");
  EXPECT_EQ(run_of_record("task-7.2"), run);
  for (const char* other : {"task-7.2.out", "task-7", "task-7.", "task-.2", "task-07.2", "task-7.02", "task-0.1", "7.2",
                            "task-7.2 ", "task--7.2", "task-99999999999999999999.1", "keeper-1.sock"}) {
    EXPECT_FALSE(run_of_record(other)) << other;
  }
  EXPECT_TRUE(is_contact_name(new_contact_name()));
  EXPECT_NE(new_contact_name(), new_contact_name());
}

TEST_F(RunRecordTest, WhatIsWrittenIsRead) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "keeper-1.sock");
  EXPECT_FALSE(record.read().began);
  EXPECT_EQ(record.read().contact, "keeper-1.sock");
  const base::UtcTime start{std::chrono::seconds(1'700'000'000)};
  ASSERT_TRUE(record.write_began(
      run, {.mark = std::string(32, 'a'), .boot = std::string(36, 'b'), .keeper = 12, .cgroup = "/cgroup/x"}));
  ASSERT_TRUE(record.write_started({.pid = 4711, .at = start}, 99));
  EXPECT_FALSE(record.read().outcome);
  const std::string result("bytes\0\xff", 7);
  ASSERT_TRUE(record.write_outcome({.kind = Outcome::Kind::signalled,
                                    .signal = 9,
                                    .timed_out = true,
                                    .out_of_memory = true,
                                    .ended_at = start + milliseconds(1500),
                                    .usage = Usage{std::chrono::microseconds(1'234'567), 1 << 30, 77},
                                    .problem = std::string(1000, 'p'),
                                    .result = result}));
  EXPECT_FALSE(record.read().gone);
  ASSERT_TRUE(record.write_gone());
  const RunRecord::State state = RunRecord::open(tasks_.get(), run).read();
  EXPECT_TRUE(state.began && state.gone);
  EXPECT_EQ(state.fingerprint.mark, std::string(32, 'a'));
  EXPECT_EQ(state.fingerprint.boot, std::string(36, 'b'));
  EXPECT_EQ(state.fingerprint.main, 4711);
  EXPECT_EQ(state.fingerprint.keeper, 12);
  EXPECT_EQ(state.fingerprint.cgroup, "/cgroup/x");
  EXPECT_EQ(state.fingerprint.main_ticks, 99U);
  EXPECT_EQ(state.started->at, start);
  EXPECT_EQ(state.outcome->kind, Outcome::Kind::signalled);
  EXPECT_EQ(state.outcome->signal, 9);
  EXPECT_TRUE(state.outcome->timed_out);
  EXPECT_EQ(state.outcome->ended_at, start + milliseconds(1500));
  EXPECT_EQ(state.outcome->usage, (Usage{std::chrono::microseconds(1'234'567), 1 << 30, 77}));
  EXPECT_TRUE(state.outcome->out_of_memory);
  EXPECT_EQ(state.outcome->problem, std::string(400, 'p'));
  EXPECT_EQ(record.read_result(), result);
}

TEST_F(RunRecordTest, AClaimIsReadOnceTheRunBegan) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "keeper-1.sock");
  const Claim claim{.fence = std::uint64_t{1} << 40U, .worker = std::string(128, 'w'), .leased = true};
  EXPECT_FALSE(record.read().claim);
  ASSERT_TRUE(record.write_began(run, {.cgroup = std::string(432, 'c')}, claim));
  const RunRecord::State state = record.read();
  EXPECT_EQ(state.claim, claim);
  EXPECT_EQ(state.contact, "keeper-1.sock");
  EXPECT_EQ(state.fingerprint.cgroup, std::string(432, 'c'));
  flip(3680);
  EXPECT_FALSE(record.read().claim);
}

TEST_F(RunRecordTest, WithoutAClaimThereIsNone) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  ASSERT_TRUE(record.write_began(run, {}));
  EXPECT_TRUE(record.read().began);
  EXPECT_FALSE(record.read().claim);
}

TEST_F(RunRecordTest, ATornBlockCountsAsNotWritten) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  record.write_began(run, {});
  record.write_outcome({.kind = Outcome::Kind::exited, .code = 1, .result = "result"});
  flip(4096);
  EXPECT_EQ(record.read().outcome->code, 1);
  EXPECT_EQ(record.read_result(), "");
  EXPECT_EQ(record.try_read_result().error(), ENODATA);
  flip(2048 + 4);
  EXPECT_FALSE(record.read().outcome);
  flip(0);
  EXPECT_FALSE(record.read().began);
}

TEST_F(RunRecordTest, OfTwoExtentsTheNewerGoodOneCounts) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  EXPECT_FALSE(record.read_extent());
  EXPECT_FALSE(record.read().has_extent);
  record.write_extent({.capacity = 10, .total = 10}, 1);
  EXPECT_EQ(record.read_extent()->total, 10U);
  EXPECT_TRUE(record.read().has_extent);
  record.write_extent({.capacity = 10, .total = 11, .gaps = {{1, 2}, {5, 6}}}, 2);
  EXPECT_EQ(record.read_extent()->total, 11U);
  EXPECT_EQ(record.read_extent()->gaps, (std::vector<OutputRange>{{1, 2}, {5, 6}}));
  record.write_extent({.capacity = 10, .total = 12}, 3);
  EXPECT_EQ(record.read_extent()->total, 12U);
  flip(1536 + 8);
  EXPECT_EQ(record.read_extent()->total, 11U);
}

TEST(ExtentTest, GapsThatTouchBecomeOne) {
  Extent extent{.capacity = 1000};
  extent.drop({10, 20});
  extent.drop({40, 50});
  extent.drop({30, 30});
  EXPECT_EQ(extent.gaps, (std::vector<OutputRange>{{10, 20}, {40, 50}}));
  extent.drop({50, 60});
  extent.drop({5, 10});
  EXPECT_EQ(extent.gaps, (std::vector<OutputRange>{{5, 20}, {40, 60}}));
  extent.drop({15, 45});
  EXPECT_EQ(extent.gaps, (std::vector<OutputRange>{{5, 60}}));
}

TEST(ExtentTest, OfTooManyGapsTheNearestTwoBecomeOne) {
  Extent extent{.capacity = 1000};
  for (std::uint64_t at = 0; at < Extent::max_gaps; ++at) extent.drop({at * 30, at * 30 + 10});
  extent.drop({900, 910});
  EXPECT_EQ(extent.gaps.size(), Extent::max_gaps);
  EXPECT_EQ(extent.gaps.front(), (OutputRange{0, 40}));
  EXPECT_EQ(extent.gaps.back(), (OutputRange{900, 910}));
}

// The bytes that a keeper of version 0.1 leaves: each block at its place, with an FNV-1a checksum behind it.
class OldRecord {
 public:
  template <typename... Parts>
  void put(std::size_t place, const Parts&... parts) {
    std::string block;
    (block.append(reinterpret_cast<const char*>(&parts), sizeof parts), ...);
    std::uint64_t check = 0xcbf29ce484222325;
    for (const char byte : block) check = (check ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    block.append(reinterpret_cast<const char*>(&check), sizeof check);
    bytes_.replace(place, block.size(), block);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(4096, '\0');
};

TEST_F(RunRecordTest, ARecordOfVersion01IsUnderstood) {
  OldRecord old;
  std::array<char, 80> contact{"keeper-0123456789abcdef0123456789abcdef.sock"};
  const std::array<char, 8> format{'d', 'u', 'e', 't', 'r', 'u', 'n', '1'};
  std::array<char, 32> mark{};
  mark.fill('a');
  std::array<char, 36> boot{};
  boot.fill('b');
  std::array<char, 400> problem{};
  old.put(3584, contact);
  old.put(0, format, std::uint64_t{7}, std::uint32_t{2}, std::uint32_t{0}, mark, boot, std::uint32_t{0});
  old.put(512, std::int64_t{4711}, std::uint64_t{99}, std::int64_t{1'700'000'000'000'000'000});
  old.put(1024, std::uint64_t{2}, std::uint64_t{1000}, std::uint64_t{700}, std::uint64_t{1200});
  old.put(1536, std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{900}, std::uint64_t{1400});
  old.put(2048, std::uint8_t{1}, std::uint8_t{1}, std::uint16_t{0}, std::int32_t{0}, std::int32_t{9}, std::uint32_t{0},
          std::uint64_t{0}, std::int64_t{1'700'000'001'000'000'000}, problem);
  old.put(3072, std::uint64_t{1});
  const base::Fd file(openat(tasks_.get(), "task-7.2", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(file.get(), old.bytes().data(), old.bytes().size()), 4096);

  const RunRecord record = RunRecord::open(tasks_.get(), run);
  const RunRecord::State state = record.read();
  EXPECT_TRUE(state.began && state.gone && state.has_extent);
  EXPECT_EQ(state.contact, "keeper-0123456789abcdef0123456789abcdef.sock");
  EXPECT_EQ(state.fingerprint.mark, std::string(32, 'a'));
  EXPECT_EQ(state.fingerprint.boot, std::string(36, 'b'));
  EXPECT_EQ(state.fingerprint.keeper, 0);
  EXPECT_EQ(state.started->pid, 4711);
  EXPECT_EQ(state.outcome->kind, Outcome::Kind::signalled);
  EXPECT_EQ(state.outcome->signal, 9);
  EXPECT_TRUE(state.outcome->timed_out);
  const auto extent = record.read_extent();
  ASSERT_TRUE(extent);
  EXPECT_EQ(extent->capacity, 1000U);
  EXPECT_EQ(extent->total, 1400U);
  EXPECT_EQ(extent->gaps, (std::vector<OutputRange>{{500, 900}}));
  EXPECT_EQ(extent->position(1399), 899U);
}

TEST_F(RunRecordTest, OnlyOneCanHoldIt) {
  {
    const RunRecord record = RunRecord::create(tasks_.get(), run, "");
    EXPECT_FALSE(RunRecord::open(tasks_.get(), run).lock());
    EXPECT_THROW(RunRecord::create(tasks_.get(), run, ""), std::system_error);
    const base::Fd passed_on = base::duplicate(record.get());
    EXPECT_FALSE(RunRecord::open(tasks_.get(), run).lock());
  }
  EXPECT_TRUE(RunRecord::open(tasks_.get(), run).lock());
  EXPECT_FALSE(RunRecord::open(tasks_.get(), {8, 1}));
  EXPECT_EQ(recorded_runs(tasks_.get()), std::vector<RunId>{run});
}

TEST_F(RunRecordTest, ARecordThatTellsOfDroppedOutputCountsAsOutputUnlessItsRunGoesOn) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  record.write_extent({.capacity = 1000, .total = 10, .gaps = {{0, 10}}}, 1);
  EXPECT_EQ(recorded_outputs(tasks_.get()), std::vector<RunId>{run});
  record.write_began(run, {.mark = std::string(32, 'a'), .boot = std::string(36, 'b')});
  EXPECT_TRUE(recorded_outputs(tasks_.get()).empty());
  record.write_gone();
  EXPECT_EQ(recorded_outputs(tasks_.get()), std::vector<RunId>{run});
}

TEST_F(RunRecordTest, AFolderThatCannotBeReadIsNotTakenForAnEmptyOne) {
  EXPECT_THROW(names_in(-1), std::system_error);
  EXPECT_THROW(recorded_runs(-1), std::system_error);
  EXPECT_THROW(recorded_outputs(-1), std::system_error);
}

}  // namespace
}  // namespace duet::task
