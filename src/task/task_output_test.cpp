#include "task/task_output.h"

#include <fcntl.h>

#include <fstream>

#include "task/run_record.h"
#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

class TaskOutputTest : public testing::Test {
 protected:
  void write(std::uint32_t attempt, std::string_view bytes) {
    std::ofstream(folder.file(output_name({7, attempt})), std::ios::binary) << bytes;
  }
  OutputPiece read(std::uint32_t attempts, std::uint64_t offset, std::size_t limit = 100) const {
    return read_task_output(tasks.get(), 7, attempts, offset, limit);
  }

  transport::TemporaryFolder folder;
  base::Fd tasks = open_folder(folder.path());
};

TEST_F(TaskOutputTest, AttemptsFollowEachOther) {
  write(1, "first");
  write(3, "third");
  const std::string all = "firstthird";
  for (std::uint64_t offset = 0; offset <= all.size(); ++offset) {
    const OutputPiece piece = read(3, offset);
    EXPECT_EQ(piece.offset, offset);
    EXPECT_EQ(piece.total, all.size());
    EXPECT_EQ(piece.bytes, offset < 5 ? all.substr(offset, 5 - offset) : all.substr(offset));
    EXPECT_EQ(piece.next, offset + piece.bytes.size());
  }
  EXPECT_EQ(read(3, 99).offset, all.size());
}

TEST_F(TaskOutputTest, WhatWasLetGoIsToldByItselfOfOneStream) {
  write(2, "second");
  const RunRecord record = RunRecord::create(tasks.get(), {7, 2}, "nobody");
  Extent extent{.capacity = 1000, .total = 6};
  extent.drop({4, 5});
  ASSERT_TRUE(record.write_extent(extent, 1));
  const auto read_err = [&](std::uint64_t offset) {
    return read_task_output(tasks.get(), 7, 2, offset, 100, Stream::err, {.attempts = 1, .bytes = 50});
  };
  const OutputPiece first = read_err(10);
  EXPECT_EQ(first.dropped, (OutputRange{0, 50}));
  EXPECT_EQ(first.next, 50U);
  EXPECT_EQ(read_err(first.next).dropped, (OutputRange{54, 55}));
}

TEST_F(TaskOutputTest, ATaskThatHasNotBegunHasNone) {
  EXPECT_EQ(read(0, 0).total, 0U);
  EXPECT_EQ(read(0, 5).bytes, "");
}

}  // namespace
}  // namespace duet::task
