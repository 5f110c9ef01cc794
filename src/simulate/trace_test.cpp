#include "simulate/trace.h"

#include <gtest/gtest.h>

#include "simulate/random.h"

namespace duet::simulate {
namespace {

TEST(Trace, TheDigestTellsTwoRunsApartAndTheSameRunFromNone) {
  Trace one;
  Trace same;
  Trace other;
  for (Trace* trace : {&one, &same, &other}) trace->note("a");
  one.note("b");
  same.note("b");
  other.note("c");
  EXPECT_EQ(one.digest(), same.digest());
  EXPECT_NE(one.digest(), other.digest());
}

TEST(Trace, LinesAreNotTheSameWhenTheyAreCutElsewhere) {
  Trace one;
  Trace other;
  one.note("ab");
  other.note("a");
  other.note("b");
  EXPECT_NE(one.digest(), other.digest());
}

TEST(Trace, OnlyTheLastLinesAreKept) {
  Trace trace(false, 2);
  for (const char* line : {"a", "b", "c"}) trace.note(line);
  EXPECT_EQ(trace.last(), (std::deque<std::string>{"b", "c"}));
  EXPECT_EQ(trace.count(), 3U);
}

TEST(Random, TheSameSeedGivesTheSameNumbersEverywhere) {
  Random chance(1);
  EXPECT_EQ(chance.next(), 0x910a2dec89025cc1U);
  Random again(1);
  again.next();
  EXPECT_EQ(chance.next(), again.next());
}

}  // namespace
}  // namespace duet::simulate
