#include "bridge/work_progress.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::bridge {
namespace {

std::string progress(const std::string& value, const std::string& token = R"("t")") {
  return R"({"token":)" + token + R"(,"value":)" + value + "}";
}

TEST(WorkProgress, IsUnderWayFromItsBeginningToItsEnd) {
  WorkProgress work;
  EXPECT_FALSE(work.is_under_way());
  EXPECT_EQ(work.text(), "");
  work.take(progress(R"({"kind":"begin","title":"indexing","percentage":0})"));
  EXPECT_TRUE(work.is_under_way());
  EXPECT_EQ(work.text(), "indexing 0 %");
  work.take(progress(R"({"kind":"report","message":"40/120","percentage":33})"));
  EXPECT_EQ(work.text(), "indexing 40/120");
  work.take(progress(R"({"kind":"report"})"));
  EXPECT_EQ(work.text(), "indexing 40/120");
  work.take(progress(R"({"kind":"end"})"));
  EXPECT_FALSE(work.is_under_way());
}

TEST(WorkProgress, EachTokenCountsByItself) {
  WorkProgress work;
  work.take(progress(R"({"kind":"begin","title":"a"})", "1"));
  work.take(progress(R"({"kind":"begin","title":"b"})", R"("1")"));
  work.take(progress(R"({"kind":"end"})", "1"));
  EXPECT_EQ(work.text(), "b");
  work.clear();
  EXPECT_FALSE(work.is_under_way());
}

TEST(WorkProgress, NonsenseSaysNothing) {
  WorkProgress work;
  for (const char* const params :
       {"null", "[]", "{}", R"({"token":"t"})", R"({"token":"t","value":7})", R"({"value":{"kind":"begin"}})",
        R"({"token":"t","value":{"kind":"report","message":"x"}})", R"({"token":"t","value":{"kind":"end"}})"}) {
    work.take(params);
    EXPECT_FALSE(work.is_under_way()) << params;
  }
  work.take(progress(R"({"kind":"begin"})"));
  EXPECT_EQ(work.text(), "working");
}

TEST(WorkProgress, TooMuchAtOnceIsNotRemembered) {
  WorkProgress work;
  for (int i = 0; i < 1000; ++i) work.take(progress(R"({"kind":"begin","title":"x"})", std::to_string(i)));
  for (std::size_t i = 0; i < WorkProgress::most_works; ++i)
    work.take(progress(R"({"kind":"end"})", std::to_string(i)));
  EXPECT_FALSE(work.is_under_way());
}

}  // namespace
}  // namespace duet::bridge
