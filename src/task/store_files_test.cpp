#include "task/store_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The files of a store: as they are after a clean end, or as a killed daemon leaves them.
class StoreFiles : public testing::Test {
 protected:
  void fill(TaskId first, TaskId last) {
    for (TaskId id = first; id < last; ++id) {
      box_.add(id, StoreBox::asked(std::string(500 * (id % 20), 'p')), answer_);
      if (id % 4 == 0) box_.loop.turn();
    }
    ASSERT_TRUE(box_.add(last));
  }
  void end_cleanly() {
    box_.store.reset();
    copy();
  }
  /// With `moved` tasks in the main file, and as many again in the log.
  void be_killed(TaskId moved) {
    fill(1, moved);
    box_.open();
    fill(moved + 1, 2 * moved);
    copy();
  }
  void copy() {
    fs::remove_all(copy_.path());
    fs::create_directory(copy_.path());
    for (const char* name : {store_file, store_log_file, store_index_file}) {
      if (fs::exists(box_.file(name))) fs::copy(box_.file(name), copy_.file(name));
    }
  }

  std::string opening_fails() {
    StoreBox opened(copy_.path());
    try {
      opened.open();
      return {};
    } catch (const StoreError& error) {
      return error.what();
    }
  }

  std::optional<bool> answer_;
  StoreBox box_;
  transport::TemporaryFolder copy_;
};

// Where something may go wrong: every byte of the header, around every page, and anywhere.
std::set<std::size_t> cuts(std::size_t size, std::size_t page, std::size_t offset) {
  std::set<std::size_t> found;
  for (std::size_t at = 0; at <= 100; at += 25) found.insert(at);
  for (std::size_t at = offset; at <= size; at += page) found.insert({at, at + 1, at - 1, at + page / 2});
  std::mt19937 chance(1);
  for (int i = 0; i < 20; ++i) found.insert(chance() % size);
  std::erase_if(found, [size](std::size_t at) { return at >= size; });
  return found;
}

TEST_F(StoreFiles, AStoreThatWasCutOffAnywhereIsReportedAndLeftAsItIs) {
  box_.open();
  fill(1, 12);
  end_cleanly();
  const std::string whole = content(copy_.file(store_file));
  ASSERT_EQ(opening_fails(), "");
  for (const std::size_t size : cuts(whole.size(), 4096, 4096)) {
    copy();
    fs::resize_file(copy_.file(store_file), size);
    const std::string problem = opening_fails();
    EXPECT_NE(problem.find("is cut off"), std::string::npos) << size << ": " << problem;
    EXPECT_EQ(content(copy_.file(store_file)), whole.substr(0, size)) << size;
  }
}

TEST_F(StoreFiles, ACutIsFoundBesideTheLogOfAKilledDaemon) {
  box_.open();
  be_killed(12);
  ASSERT_EQ(opening_fails(), "");
  copy();
  const std::string whole = content(copy_.file(store_file));
  std::size_t repaired = 0;
  for (const std::size_t size : cuts(whole.size(), 4096, 4096)) {
    copy();
    fs::resize_file(copy_.file(store_file), size);
    const std::string problem = opening_fails();
    if (problem.empty()) {
      // All that was cut off is in the log: nothing may be missing.
      ++repaired;
      StoreBox opened(copy_.path());
      opened.open();
      for (TaskId id = 1; id <= 24; ++id) EXPECT_TRUE(opened.find(id)) << size << ' ' << id;
    } else {
      EXPECT_EQ(content(copy_.file(store_file)), whole.substr(0, size)) << size;
    }
  }
  EXPECT_LT(repaired, 10U);
}

TEST_F(StoreFiles, ALogThatWasCutOffAnywhereIsReported) {
  box_.open();
  be_killed(10);
  const std::string whole = content(copy_.file(store_log_file));
  ASSERT_EQ(opening_fails(), "");
  for (const std::size_t size : cuts(whole.size(), 4096 + 24, 32)) {
    copy();
    fs::resize_file(copy_.file(store_log_file), size);
    EXPECT_NE(opening_fails(), "") << size;
  }
  copy();
  fs::remove(copy_.file(store_log_file));
  EXPECT_NE(opening_fails(), "");
}

TEST_F(StoreFiles, DamageInTheLogIsReported) {
  box_.open();
  be_killed(10);
  const std::string whole = content(copy_.file(store_log_file));
  for (std::size_t at = 0; at < whole.size(); at += 2999) {
    copy();
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write(copy_.file(store_log_file), damaged);
    EXPECT_NE(opening_fails(), "") << at;
    EXPECT_EQ(content(copy_.file(store_log_file)), damaged);
  }
}

TEST_F(StoreFiles, FramesThatAKilledDaemonDidNotFinishAreNoDamage) {
  box_.open();
  be_killed(10);
  const std::string whole = content(copy_.file(store_log_file));
  write(copy_.file(store_log_file), whole + whole.substr(32, 3000));
  EXPECT_EQ(opening_fails(), "");
}

TEST_F(StoreFiles, PagesOfGarbageAreReported) {
  box_.open();
  fill(1, 25);
  end_cleanly();
  const std::string whole = content(copy_.file(store_file));
  std::mt19937 chance(2);
  for (std::size_t page = 1; page < whole.size() / 4096; ++page) {
    copy();
    std::string damaged = whole;
    for (std::size_t i = 0; i < 4096; ++i) damaged[page * 4096 + i] = static_cast<char>(chance());
    write(copy_.file(store_file), damaged);
    EXPECT_NE(opening_fails(), "") << page;
    EXPECT_EQ(content(copy_.file(store_file)), damaged);
  }
}

TEST_F(StoreFiles, WhatIsNoStoreIsNotTouched) {
  const std::string files[] = {"", "short", std::string(5000, 'x'), "SQLite format 3"};
  for (const std::string& bytes : files) {
    write(copy_.file(store_file), bytes);
    EXPECT_NE(opening_fails(), "");
    EXPECT_EQ(content(copy_.file(store_file)), bytes);
  }
}

TEST_F(StoreFiles, TheDatabaseOfAnotherProgramIsNamedAsSuch) {
  {
    StoreVfs vfs;
    const Database other(copy_.file(store_file), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs.name());
    other.run("CREATE TABLE task(id)");
  }
  EXPECT_EQ(opening_fails(), "tasks.db is an SQLite database of another program");
}

TEST_F(StoreFiles, AStoreOfANewerVersionIsRefused) {
  box_.open();
  box_.store.reset();
  {
    StoreVfs vfs;
    const Database newer(box_.file(store_file), SQLITE_OPEN_READWRITE, vfs.name());
    newer.run("PRAGMA user_version=99");
  }
  copy();
  const std::string before = content(copy_.file(store_file));
  const std::string problem = opening_fails();
  EXPECT_NE(problem.find("version 99"), std::string::npos) << problem;
  EXPECT_EQ(content(copy_.file(store_file)), before);
}

TEST_F(StoreFiles, AStoreThatIsGoneWhileItsRemainsAreThereIsNotReplaced) {
  box_.open();
  be_killed(3);
  fs::remove(copy_.file(store_file));
  EXPECT_NE(opening_fails().find("is missing"), std::string::npos);
  EXPECT_FALSE(fs::exists(copy_.file(store_file)));

  fs::remove(copy_.file(store_log_file));
  fs::create_directory(copy_.file(output_folder));
  EXPECT_EQ(opening_fails(), "");
  fs::remove(copy_.file(store_file));
  fs::remove(copy_.file(store_log_file));
  write(copy_.file("tasks/task-1.1.out"), "output");
  EXPECT_NE(opening_fails().find("is missing"), std::string::npos);
}

TEST_F(StoreFiles, AStoreThatWasBeingMadeIsMadeAnew) {
  write(copy_.file("tasks.db.new"), "half of a");
  write(copy_.file("tasks.db.new-wal"), "store");
  EXPECT_EQ(opening_fails(), "");
  EXPECT_FALSE(fs::exists(copy_.file("tasks.db.new")));
}

}  // namespace
}  // namespace duet::task
