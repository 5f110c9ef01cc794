#include "simulate/disk_vfs.h"

#include <cerrno>
#include <optional>

#include <gtest/gtest.h>

#include "task/sqlite.h"

namespace duet::simulate {
namespace {

/// A database on a simulated disk, as the store has it: a write-ahead log, every commit synced.
class DiskVfsTest : public testing::Test {
 protected:
  task::Database& open() {
    database.emplace("store.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs.name());
    database->run(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
        "PRAGMA wal_autocheckpoint=30;");
    database->run("CREATE TABLE IF NOT EXISTS kept(n INTEGER PRIMARY KEY, text TEXT)");
    return *database;
  }
  bool commit(std::int64_t n) {
    try {
      auto statement = database->prepare("INSERT INTO kept VALUES(?, ?)");
      const std::string text(chance.below(700), 'x');
      statement.bind(1, n).bind(2, text).run();
      return true;
    } catch (const task::SqliteError&) {
      return false;
    }
  }
  /// As when its process is killed: nothing that closing would write is written.
  void kill() {
    disk.set_fault([](Disk::Step, std::string_view) { return EIO; });
    database.reset();
    disk.set_fault({});
  }

  Disk disk;
  Random chance{7};
  DiskVfs vfs{disk, Random(8), {}};
  std::optional<task::Database> database;
};

TEST_F(DiskVfsTest, CommitsSurviveAKillAndACut) {
  open();
  ASSERT_TRUE(commit(1));
  kill();
  open();
  EXPECT_EQ(database->number("SELECT count(*) FROM kept"), 1);
  ASSERT_TRUE(commit(2));
  kill();
  disk.cut_power(chance);
  open();
  EXPECT_EQ(database->number("SELECT count(*) FROM kept"), 2);
}

TEST_F(DiskVfsTest, ASecondConnectionReadsWhatIsCommittedAndNoMore) {
  open();
  const task::Database reader("store.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs.name());
  database->run("BEGIN IMMEDIATE");
  ASSERT_TRUE(commit(1));
  EXPECT_EQ(reader.number("SELECT count(*) FROM kept"), 0);
  EXPECT_THROW(reader.run("BEGIN IMMEDIATE"), task::SqliteError);
  database->run("COMMIT");
  EXPECT_EQ(reader.number("SELECT count(*) FROM kept"), 1);
}

TEST_F(DiskVfsTest, AFullDiskIsToldAsSuch) {
  open();
  disk.set_fault([](Disk::Step step, std::string_view) { return step == Disk::Step::grow ? ENOSPC : 0; });
  try {
    database->run("INSERT INTO kept VALUES(1, 'x')");
    FAIL() << "the disk is full";
  } catch (const task::SqliteError& error) {
    EXPECT_EQ(error.code(), SQLITE_FULL);
  }
}

// The heart of it: a disk that loses only what was not synced never costs a commit that was answered.
TEST_F(DiskVfsTest, TenThousandCutsLeaveAWholeDatabaseWithEveryCommitThatWasAnswered) {
  std::int64_t last = 0;
  for (int round = 0; round < 10'000; ++round) {
    open();
    ASSERT_EQ(database->number("SELECT count(*) FROM kept"), last) << "round " << round;
    std::uint64_t left = chance.between(1, 40);
    disk.set_fault([&left](Disk::Step, std::string_view) { return left == 0 || --left == 0 ? EIO : 0; });
    while (left > 0 && commit(last + 1)) ++last;
    if (left > 0 && chance.one_in(4)) database->run("PRAGMA wal_checkpoint(TRUNCATE)");
    kill();
    disk.cut_power(chance);
    if (round % 20 == 0) {
      ASSERT_EQ(open().text("PRAGMA integrity_check"), "ok");
      database->run("DELETE FROM kept");
      last = 0;
      kill();
    }
    // What was not answered may be there or not.
    const std::int64_t found = open().number("SELECT count(*) FROM kept");
    ASSERT_TRUE(found == last || found == last + 1) << "round " << round << ": " << found << " of " << last;
    last = found;
    kill();
  }
}

}  // namespace
}  // namespace duet::simulate
