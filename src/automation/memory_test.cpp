#include "automation/memory.h"

#include <string>

#include <gtest/gtest.h>

#include "automation/engine_fixture_test.h"

namespace duet::automation {
namespace {

struct MemoryTest : testing::Test {
  EngineSetting s;
  Memory recalled() { return recall_memory(*s.store).value(); }
};

TEST_F(MemoryTest, OfANewStoreIsOnAndEmpty) {
  const Memory memory = recalled();
  EXPECT_TRUE(memory.enabled);
  EXPECT_EQ(memory.position, std::nullopt);
  EXPECT_TRUE(memory.firings.empty() && memory.rules.empty() && memory.faults.empty() && !memory.taking_over);
}

TEST_F(MemoryTest, HasEachThingUnderItsName) {
  s.remember("automation/enabled", "false");
  s.remember("automation/position", "17");
  s.remember("automation/last-firing", "30");
  s.remember("rule/a/b", "{}");
  for (const std::uint64_t number : {2U, 10U}) {
    const Firing firing{.number = number, .rule_id = "a"};
    s.remember(name_of(firing), save_firing(firing));
  }
  const Memory memory = recalled();
  EXPECT_FALSE(memory.enabled);
  EXPECT_EQ(memory.position, 17U);
  EXPECT_EQ(memory.last_firing, 30U);
  EXPECT_EQ(memory.rules, (std::map<std::string, std::string>{{"a/b", "{}"}}));
  EXPECT_EQ(memory.firings.size(), 2U);
  EXPECT_TRUE(memory.faults.empty());
}

TEST_F(MemoryTest, LeavesOutWhatCannotBeReadAndNamesIt) {
  s.remember("automation/position", "soon");
  s.remember("firing/1", "nonsense");
  s.remember("firing/2", save_firing({.number = 2, .rule_id = "a"}));
  Memory memory = recalled();
  EXPECT_TRUE(memory.enabled);
  EXPECT_EQ(memory.position, std::nullopt);
  EXPECT_EQ(memory.firings.size(), 1U);
  EXPECT_EQ(memory.faults.size(), 1U);
  s.remember("automation/enabled", "perhaps");
  memory = recalled();
  EXPECT_FALSE(memory.enabled) << "it may have been off";
  EXPECT_EQ(memory.faults.size(), 2U);
}

}  // namespace
}  // namespace duet::automation
