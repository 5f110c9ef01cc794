#include "task/run_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <system_error>

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
  ASSERT_TRUE(record.write_began(run, {.mark = std::string(32, 'a'), .boot = std::string(36, 'b')}));
  ASSERT_TRUE(record.write_started({.pid = 4711, .at = start}, 99));
  EXPECT_FALSE(record.read().outcome);
  const std::string result("bytes\0\xff", 7);
  ASSERT_TRUE(record.write_outcome({.kind = Outcome::Kind::signalled,
                                    .signal = 9,
                                    .timed_out = true,
                                    .ended_at = start + milliseconds(1500),
                                    .problem = std::string(1000, 'p'),
                                    .result = result}));
  EXPECT_FALSE(record.read().gone);
  ASSERT_TRUE(record.write_gone());
  const RunRecord::State state = RunRecord::open(tasks_.get(), run).read();
  EXPECT_TRUE(state.began && state.gone);
  EXPECT_EQ(state.fingerprint.mark, std::string(32, 'a'));
  EXPECT_EQ(state.fingerprint.boot, std::string(36, 'b'));
  EXPECT_EQ(state.fingerprint.main, 4711);
  EXPECT_EQ(state.fingerprint.main_ticks, 99U);
  EXPECT_EQ(state.started->at, start);
  EXPECT_EQ(state.outcome->kind, Outcome::Kind::signalled);
  EXPECT_EQ(state.outcome->signal, 9);
  EXPECT_TRUE(state.outcome->timed_out);
  EXPECT_EQ(state.outcome->ended_at, start + milliseconds(1500));
  EXPECT_EQ(state.outcome->problem, std::string(400, 'p'));
  EXPECT_EQ(record.read_result(), result);
}

TEST_F(RunRecordTest, ATornBlockCountsAsNotWritten) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  record.write_began(run, {});
  record.write_outcome({.kind = Outcome::Kind::exited, .code = 1, .result = "result"});
  flip(4096);
  EXPECT_EQ(record.read().outcome->code, 1);
  EXPECT_EQ(record.read_result(), "");
  flip(2048 + 4);
  EXPECT_FALSE(record.read().outcome);
  flip(0);
  EXPECT_FALSE(record.read().began);
}

TEST_F(RunRecordTest, OfTwoExtentsTheNewerGoodOneCounts) {
  const RunRecord record = RunRecord::create(tasks_.get(), run, "");
  EXPECT_FALSE(record.read_extent());
  record.write_extent({.capacity = 10, .tail = 5, .total = 10}, 1);
  EXPECT_EQ(record.read_extent()->total, 10U);
  record.write_extent({.capacity = 10, .tail = 6, .total = 11}, 2);
  EXPECT_EQ(record.read_extent()->total, 11U);
  record.write_extent({.capacity = 10, .tail = 7, .total = 12}, 3);
  EXPECT_EQ(record.read_extent()->total, 12U);
  flip(1536 + 8);
  EXPECT_EQ(record.read_extent()->total, 11U);
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

}  // namespace
}  // namespace duet::task
