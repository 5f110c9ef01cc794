#include "bridge/crash_record.h"

#include <gtest/gtest.h>

namespace duet::bridge {
namespace {

using std::chrono::seconds;

TEST(CrashRecordTest, WaitsLongerEachTimeUpToABound) {
  CrashRecord record;
  for (const int wait : {1, 2, 4, 8, 16, 30, 30}) EXPECT_EQ(record.note_failure(seconds(1), {}), seconds(wait));
}

TEST(CrashRecordTest, StartsAnewAfterALongLife) {
  CrashRecord record;
  record.note_failure(seconds(1), {});
  record.note_failure(seconds(1), {});
  EXPECT_EQ(record.note_failure(seconds(31), {}), seconds(1));
}

TEST(CrashRecordTest, RefusesWhatWasThereInThreeCrashesInARow) {
  CrashRecord record;
  const RequestMark guilty = mark_of("a", "1");
  const RequestMark innocent = mark_of("a", "2");
  record.note_failure(seconds(1), {guilty, innocent});
  record.note_failure(seconds(1), {guilty});
  EXPECT_FALSE(record.refuses(guilty));
  record.note_failure(seconds(1), {guilty, innocent});
  EXPECT_TRUE(record.refuses(guilty));
  EXPECT_FALSE(record.refuses(innocent));
  record.note_failure(seconds(1), {});
  EXPECT_TRUE(record.refuses(guilty));
  record.forget();
  EXPECT_FALSE(record.refuses(guilty));
}

TEST(CrashRecordTest, ClearsWhatWasAnsweredOrMissedACrash) {
  CrashRecord record;
  const RequestMark answered = mark_of("a", "1");
  const RequestMark absent = mark_of("b", "1");
  for (int i = 0; i < 2; ++i) record.note_failure(seconds(1), {answered, absent});
  record.note_answer(answered);
  record.note_failure(seconds(1), {answered});
  record.note_failure(seconds(1), {absent});
  EXPECT_FALSE(record.refuses(answered));
  EXPECT_FALSE(record.refuses(absent));
}

}  // namespace
}  // namespace duet::bridge
