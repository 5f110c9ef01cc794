#include "duet/framing/block_pool.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::framing {
namespace {

constexpr std::size_t large = BlockPool::large;

TEST(BlockPool, GivesAtLeastWhatIsAskedFor) {
  BlockPool pool;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, large - 1, large, 3 * large}) {
    Block block = pool.take(size);
    EXPECT_GE(block.capacity, size);
    std::memset(block.data, 'x', size);
    pool.give(block);
    EXPECT_EQ(block.data, nullptr);
    EXPECT_EQ(block.capacity, 0U);
  }
}

TEST(BlockPool, KeepsLargeBlocksForTheNextLargeMessage) {
  BlockPool pool;
  Block block = pool.take(2 * large);
  char* const data = block.data;
  pool.give(block);
  EXPECT_TRUE(pool.keeps_any());
  Block again = pool.take(large);
  EXPECT_EQ(again.data, data);
  EXPECT_EQ(again.capacity, 2 * large);
  EXPECT_FALSE(pool.keeps_any());
  pool.give(again);
}

TEST(BlockPool, KeepsNoSmallBlocks) {
  BlockPool pool;
  Block block = pool.take(large - 1);
  pool.give(block);
  EXPECT_FALSE(pool.keeps_any());
}

TEST(BlockPool, ChoosesTheSmallestThatFitsAndElseMakesTheLargestLarger) {
  BlockPool pool;
  std::vector<Block> blocks = {pool.take(4 * large), pool.take(2 * large), pool.take(3 * large)};
  for (Block& block : blocks) pool.give(block);
  Block fits = pool.take(2 * large + 1);
  EXPECT_EQ(fits.capacity, 3 * large);
  Block grown = pool.take(9 * large);
  EXPECT_EQ(grown.capacity, 9 * large);
  Block left = pool.take(large);
  EXPECT_EQ(left.capacity, 2 * large);
  EXPECT_FALSE(pool.keeps_any());
  for (Block* block : {&fits, &grown, &left}) pool.give(*block);
}

TEST(BlockPool, KeepsNoMoreThanItsBound) {
  BlockPool pool;
  Block huge = pool.take(BlockPool::most_kept + 1);
  pool.give(huge);
  EXPECT_FALSE(pool.keeps_any());
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(pool.take(large));
  for (Block& block : blocks) pool.give(block);
  std::size_t kept = 0;
  while (pool.keeps_any()) {
    blocks[kept++] = pool.take(large);
  }
  EXPECT_LE(kept, 4U);
  for (Block& block : blocks) pool.give(block);
}

TEST(BlockPool, ABlockKeepsItsBytesAsItGrows) {
  BlockPool pool;
  Block kept = pool.take(8 * large);
  pool.give(kept);
  Block block = pool.take(16);
  std::memcpy(block.data, "sixteen letters!", 16);
  for (const std::size_t size : {std::size_t{100}, large - 1, large, 2 * large, 20 * large}) {
    pool.grow(block, size, 16);
    EXPECT_GE(block.capacity, size);
    EXPECT_EQ(std::string(block.data, 16), "sixteen letters!");
  }
  pool.give(block);
}

TEST(BlockPool, TellsThatItWasUsedAndGivesEverythingBackOnDemand) {
  BlockPool pool;
  const std::size_t before = pool.uses();
  Block block = pool.take(large);
  pool.give(block);
  EXPECT_NE(pool.uses(), before);
  pool.trim();
  EXPECT_FALSE(pool.keeps_any());
}

TEST(BlockPool, TakesNothingBackFromWhoHasNothing) {
  BlockPool pool;
  Block none;
  pool.give(none);
  EXPECT_FALSE(pool.keeps_any());
}

}  // namespace
}  // namespace duet::framing
