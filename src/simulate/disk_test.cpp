#include "simulate/disk.h"

#include <cerrno>
#include <set>

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

class DiskTest : public testing::Test {
 protected:
  NodePointer make(const char* name) {
    NodePointer node;
    EXPECT_EQ(disk.make(*disk.root(), name, false, node), 0);
    return node;
  }
  std::string content(const char* name) const {
    const NodePointer node = Disk::find(*disk.root(), name);
    return node ? node->now : "(none)";
  }

  Disk disk;
  Random chance{1};
};

TEST_F(DiskTest, WhatWasSyncedSurvivesAPowerCut) {
  const NodePointer file = make("a");
  ASSERT_EQ(disk.write(*file, "a", 0, "hello"), 0);
  ASSERT_EQ(disk.sync(*file, "a", chance), 0);
  ASSERT_EQ(disk.sync(*disk.root(), "", chance), 0);
  for (int i = 0; i < 10; ++i) disk.cut_power(chance);
  EXPECT_EQ(content("a"), "hello");
}

TEST_F(DiskTest, WhatWasNotSyncedIsKeptLostOrTornAtASector) {
  std::set<std::string> seen;
  for (int i = 0; i < 300; ++i) {
    Disk one;
    NodePointer file;
    one.make(*one.root(), "a", false, file);
    one.sync(*one.root(), "", chance);
    one.write(*file, "a", 0, std::string(Disk::sector, 'x') + std::string(Disk::sector, 'y'));
    one.cut_power(chance);
    seen.insert(file->now.substr(0, 1) + std::to_string(file->now.size()));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"0", "x512", "x1024"}));
}

TEST_F(DiskTest, ANameIsThereAfterACutOnlyIfItsFolderWasSynced) {
  int there = 0;
  for (int i = 0; i < 100; ++i) {
    Disk one;
    NodePointer file;
    one.make(*one.root(), "a", false, file);
    one.sync(*file, "a", chance);
    one.cut_power(chance);
    there += Disk::find(*one.root(), "a") ? 1 : 0;
  }
  EXPECT_GT(there, 20);
  EXPECT_LT(there, 80);
}

TEST_F(DiskTest, ARenameHappensAsAWholeOrNotAtAll) {
  for (int i = 0; i < 100; ++i) {
    Disk one;
    NodePointer file;
    one.make(*one.root(), "new", false, file);
    one.sync(*one.root(), "", chance);
    one.rename(*one.root(), "new", "old");
    one.cut_power(chance);
    EXPECT_EQ(one.root()->names.size(), 1U);
  }
}

TEST_F(DiskTest, WhatAFailedSyncDroppedIsReadUntilTheCutAndNoLaterSyncKeepsIt) {
  bool dropped = false;
  for (int i = 0; i < 50; ++i) {
    Disk one;
    NodePointer file;
    one.make(*one.root(), "a", false, file);
    one.write(*file, "a", 0, "x");
    one.set_fault([](Disk::Step step, std::string_view) { return step == Disk::Step::sync ? EIO : 0; });
    ASSERT_EQ(one.sync(*file, "a", chance), EIO);
    one.set_fault({});
    ASSERT_EQ(one.sync(*file, "a", chance), 0);
    ASSERT_EQ(one.sync(*one.root(), "", chance), 0);
    ASSERT_EQ(file->now, "x");
    one.cut_power(chance);
    dropped |= file->now.empty();
  }
  EXPECT_TRUE(dropped);
}

TEST_F(DiskTest, AFullDiskRefusesBytesButTakesAwayNames) {
  const NodePointer file = make("a");
  disk.write(*file, "a", 0, "abc");
  disk.set_fault([](Disk::Step step, std::string_view) {
    return step == Disk::Step::grow || step == Disk::Step::make ? ENOSPC : 0;
  });
  EXPECT_EQ(disk.write(*file, "a", 3, "d"), ENOSPC);
  EXPECT_EQ(disk.write(*file, "a", 0, "a"), 0);
  EXPECT_EQ(disk.truncate(*file, "a", 1), 0);
  EXPECT_EQ(content("a"), "a");
  NodePointer other;
  EXPECT_EQ(disk.make(*disk.root(), "b", false, other), ENOSPC);
  EXPECT_EQ(disk.remove(*disk.root(), "a"), 0);
  EXPECT_EQ(content("a"), "(none)");
}

}  // namespace
}  // namespace duet::simulate
