#include "task/old_events.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "process/process_tree.h"
#include "task/journal.h"
#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

namespace fs = std::filesystem;

constexpr char events[] =
    "{\"seq\":40,\"kind\":\"taskQueued\",\"params\":{\"taskId\":\"task-3\",\"state\":\"queued\",\"seq\":40}}\n"
    "{\"seq\":41,\"kind\":\"notice\",\"params\":{\"message\":\"x\",\"seq\":41}}\n";

/// A store of version 0.1, with its file of events.
class OldEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    box.open();
    ASSERT_TRUE(box.add(3));
    make_old();
  }
  void make_old() {
    box.store.reset();
    StoreVfs vfs;
    const Database database(box.file("tasks.db"), SQLITE_OPEN_READWRITE, vfs.name());
    make_version_3(database);
    database.run(
        "INSERT INTO request SELECT id, body FROM task WHERE body IS NOT NULL; ALTER TABLE task DROP COLUMN body;"
        "DROP TABLE event; DELETE FROM remembered; DROP INDEX task_by_end; ALTER TABLE task DROP COLUMN end_seq;"
        "CREATE INDEX task_by_end ON task(completed_at) WHERE completed_at IS NOT NULL; PRAGMA user_version=1;");
  }
  void write_log(const std::string& boot, const std::string& rest) {
    std::ofstream(box.file("events.log"))
        << R"({"epoch":"0123456789abcdef","boot":")" << boot << R"(","next":40})" << '\n'
        << rest;
  }

  StoreBox box;
};

TEST_F(OldEventsTest, AreTakenOverWithNumbersAndEpoch) {
  write_log(process::boot_id(), events);
  const Journal journal(box.open());
  EXPECT_EQ(journal.epoch(), "0123456789abcdef");
  EXPECT_EQ(journal.oldest(), 40U);
  EXPECT_EQ(journal.next(), 42U);
  EXPECT_EQ(journal.at(40).task, 3U);
  EXPECT_EQ(journal.at(41).params, R"({"message":"x","seq":41})");
  EXPECT_FALSE(fs::exists(box.file("events.log")));
  EXPECT_TRUE(box.find(3));
}

TEST_F(OldEventsTest, ThatWereClosedKeepTheirEpochInAnotherBoot) {
  write_log("another", std::string(events) + "{\"closed\":true}\n");
  EXPECT_EQ(Journal(box.open()).epoch(), "0123456789abcdef");
}

TEST_F(OldEventsTest, OfAnotherBootAreKeptInANewEpoch) {
  write_log("another", events);
  const Journal journal(box.open());
  EXPECT_NE(journal.epoch(), "0123456789abcdef");
  EXPECT_EQ(journal.next(), 42U);
}

TEST_F(OldEventsTest, ALineThatWasNotFinishedIsLeftOut) {
  write_log(process::boot_id(), std::string(events) + R"({"seq":42,"kind":"not)");
  const Journal journal(box.open());
  EXPECT_EQ(journal.epoch(), "0123456789abcdef");
  EXPECT_EQ(journal.next(), 42U);
}

TEST_F(OldEventsTest, RubbishIsANewEpochAndStopsNobody) {
  for (const char* rubbish : {"", "rubbish\n", "[]\n", "{\"epoch\":7}\n"}) {
    std::ofstream(box.file("events.log")) << rubbish;
    {
      const Journal journal(box.open());
      EXPECT_EQ(journal.epoch().size(), 16U);
      EXPECT_EQ(journal.next(), 1U);
    }
    make_old();
  }
}

TEST_F(OldEventsTest, AStoreWithoutThemBeginsAnEpoch) {
  const Journal journal(box.open());
  EXPECT_EQ(journal.epoch().size(), 16U);
  EXPECT_TRUE(box.find(3));
}

TEST_F(OldEventsTest, TheFileStaysUntilTheStoreIsWhole) {
  write_log(process::boot_id(), events);
  box.fault_in_main_file = true;
  box.sync_fault = SQLITE_IOERR_FSYNC;
  EXPECT_THROW(box.open(), StoreError);
  EXPECT_TRUE(fs::exists(box.file("events.log")));
  box.sync_fault = SQLITE_OK;
  const Journal journal(box.open());
  EXPECT_EQ(journal.epoch(), "0123456789abcdef");
  EXPECT_EQ(journal.next(), 42U);
  EXPECT_FALSE(fs::exists(box.file("events.log")));
}

TEST_F(OldEventsTest, AFileThatCannotBeReadIsNotTakenForNone) {
  fs::create_directory(box.file("events.log"));
  EXPECT_THROW(box.open(), std::system_error);
  fs::remove(box.file("events.log"));
  EXPECT_EQ(Journal(box.open()).next(), 1U);
}

}  // namespace
}  // namespace duet::task
