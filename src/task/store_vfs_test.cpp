#include "task/store_vfs.h"

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"
#include "task/sqlite.h"

namespace duet::task {
namespace {

struct VfsTest : testing::Test {
  Database open() {
    Database database((folder.path() / "a.db").string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs.name());
    database.run(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
        "CREATE TABLE IF NOT EXISTS kept(n INTEGER PRIMARY KEY, text TEXT)");
    return database;
  }
  /// Which steps were taken at the log since the last call.
  std::vector<StoreVfs::Step> log_steps() { return std::exchange(steps, {}); }

  transport::TemporaryFolder folder;
  std::vector<StoreVfs::Step> steps;
  int refusal = SQLITE_OK;  // of a write to the log
  StoreVfs vfs{[this](StoreVfs::Step step, std::string_view file) {
    if (!file.ends_with("-wal")) return SQLITE_OK;
    steps.push_back(step);
    return step == StoreVfs::Step::write ? refusal : SQLITE_OK;
  }};
};

constexpr auto one_commit = {StoreVfs::Step::write, StoreVfs::Step::sync};

TEST_F(VfsTest, ACommitOfManyPagesIsOneWriteToTheLogAndASync) {
  const Database database = open();
  log_steps();
  database.run("BEGIN; INSERT INTO kept VALUES(1, 'one'); CREATE TABLE other(n); INSERT INTO other VALUES(2); COMMIT");
  EXPECT_EQ(log_steps(), std::vector(one_commit));
}

TEST_F(VfsTest, WhatIsMoreThanCanBeWrittenAtOnceIsWrittenInParts) {
  {
    const Database database = open();
    log_steps();
    database.run(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<300)"
        " INSERT INTO kept SELECT n, printf('%.*c', 3000, 'x') FROM c");
    const std::size_t steps_taken = log_steps().size();
    EXPECT_GT(steps_taken, 10U);
    EXPECT_LT(steps_taken, 40U);
    EXPECT_EQ(database.number("SELECT count(*) FROM kept WHERE length(text)=3000"), 300);
  }
  EXPECT_EQ(open().text("PRAGMA integrity_check"), "ok");
}

TEST_F(VfsTest, ATransactionReadsItsOwnPagesThatNoLongerFitIntoMemory) {
  const Database database = open();
  database.run("PRAGMA cache_size=5; PRAGMA cache_spill=1; BEGIN");
  for (int n = 1; n <= 100; ++n) {
    database.run(("INSERT INTO kept VALUES(" + std::to_string(n) + ", printf('%.*c', 2000, 'x'))").c_str());
    ASSERT_EQ(database.number("SELECT count(*) FROM kept WHERE length(text)=2000"), n);
  }
  database.run("COMMIT");
  EXPECT_EQ(open().number("SELECT count(*) FROM kept"), 100);
}

TEST_F(VfsTest, AWriteThatIsRefusedFailsTheCommitAndLeavesNothing) {
  {
    const Database database = open();
    refusal = SQLITE_FULL;
    EXPECT_THROW(database.run("INSERT INTO kept VALUES(1, 'one')"), SqliteError);
    refusal = SQLITE_OK;
    EXPECT_EQ(database.number("SELECT count(*) FROM kept"), 0);
    database.run("INSERT INTO kept VALUES(2, 'two')");
  }
  EXPECT_EQ(open().number("SELECT n FROM kept"), 2);
}

TEST_F(VfsTest, WhatIsRolledBackIsNeverSeenByAnotherConnection) {
  const Database database = open();
  const Database other = open();
  database.run("PRAGMA cache_size=5; BEGIN; INSERT INTO kept VALUES(1, printf('%.*c', 100000, 'x')); ROLLBACK");
  database.run("INSERT INTO kept VALUES(2, 'two')");
  EXPECT_EQ(other.text("SELECT group_concat(n) FROM kept"), "2");
}

}  // namespace
}  // namespace duet::task
