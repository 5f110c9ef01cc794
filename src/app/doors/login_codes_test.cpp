#include "app/doors/login_codes.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

constexpr base::UtcTime now{1'700'000'000s};

/// What a code is worth, in a word.
std::string look(LoginCodes& codes, std::string_view code, base::UtcTime time = now) {
  const LoginCodes::Verdict verdict = codes.look_at(code, time);
  if (const auto* good = std::get_if<LoginCodes::Good>(&verdict)) return "good " + good->role;
  if (const auto* used = std::get_if<LoginCodes::Used>(&verdict)) return "used " + used->token;
  if (const auto* many = std::get_if<LoginCodes::TooMany>(&verdict)) {
    return "wait " + std::to_string(many->retry_after.count());
  }
  return "wrong";
}

TEST(LoginCodes, AreGoodForOneUse) {
  LoginCodes codes;
  EXPECT_EQ(codes.add("abc", "observe", now), now + 5min);
  EXPECT_EQ(look(codes, "abc"), "good observe");
  EXPECT_EQ(look(codes, "abc"), "good observe") << "looking is no use";
  codes.use("abc", "browser-1");
  EXPECT_EQ(look(codes, "abc"), "used browser-1");
  EXPECT_EQ(look(codes, "abc", now + 1h), "used browser-1");
  EXPECT_EQ(look(codes, "abd"), "wrong");
  EXPECT_EQ(look(codes, ""), "wrong");
}

TEST(LoginCodes, ExpireAfterFiveMinutes) {
  LoginCodes codes;
  codes.add("abc", "own", now);
  EXPECT_EQ(look(codes, "abc", now + 5min - 1ms), "good own");
  EXPECT_EQ(look(codes, "abc", now + 5min), "wrong");
  EXPECT_EQ(look(codes, "abc", now - 1s), "wrong") << "nor is a clock that was set back a help";
}

TEST(LoginCodes, EightWaitAndANewOnePushesOutTheOldest) {
  LoginCodes codes;
  for (int i = 0; i < 9; ++i) codes.add(std::to_string(i), "own", now + std::chrono::seconds(i));
  EXPECT_EQ(look(codes, "0", now + 9s), "wrong");
  for (int i = 1; i < 9; ++i) EXPECT_EQ(look(codes, std::to_string(i), now + 9s), "good own") << i;
}

TEST(LoginCodes, ThatWereUsedOrHaveExpiredDoNotWait) {
  LoginCodes codes;
  codes.add("old", "own", now - 5min);
  codes.add("used", "own", now);
  codes.use("used", "browser-1");
  for (int i = 0; i < 8; ++i) codes.add(std::to_string(i), "own", now);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(look(codes, std::to_string(i)), "good own") << i;
  EXPECT_EQ(look(codes, "used"), "used browser-1");
}

TEST(LoginCodes, RememberOnlySoManyThatWereUsed) {
  LoginCodes codes({.remembered = 2});
  for (const char* code : {"a", "b", "c"}) {
    codes.add(code, "own", now);
    codes.use(code, code);
  }
  EXPECT_EQ(look(codes, "a"), "wrong");
  EXPECT_EQ(look(codes, "b"), "used b");
  EXPECT_EQ(look(codes, "c"), "used c");
}

TEST(LoginCodes, TenWrongOnesCloseTheDoorForTheRestOfTheMinute) {
  LoginCodes codes;
  codes.add("abc", "own", now);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(look(codes, "x", now + std::chrono::seconds(i)), "wrong") << i;
  EXPECT_EQ(look(codes, "x", now + 10s), "wait 50");
  EXPECT_EQ(look(codes, "abc", now + 10s), "wait 50") << "the right one, too";
  EXPECT_EQ(look(codes, "x", now + 60s - 1ms), "wait 1");
  EXPECT_EQ(look(codes, "abc", now + 60s), "good own");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(look(codes, "x", now + 61s), "wrong") << i;
  EXPECT_EQ(look(codes, "x", now + 61s), "wait 60");
}

TEST(LoginCodes, NineAMinuteAreNotTooMany) {
  LoginCodes codes;
  codes.add("abc", "own", now);
  for (int minute = 0; minute < 3; ++minute) {
    for (int i = 0; i < 9; ++i) EXPECT_EQ(look(codes, "x", now + std::chrono::minutes(minute)), "wrong");
  }
  EXPECT_EQ(look(codes, "abc", now + 2min), "good own");
}

TEST(LoginCodes, AClockThatWasSetBackKeepsNobodyOut) {
  LoginCodes codes;
  for (int i = 0; i < 10; ++i) look(codes, "x");
  EXPECT_EQ(look(codes, "x", now - 1h), "wrong");
}

TEST(LoginCodes, ASecondUseIsToldWhateverElseCame) {
  LoginCodes codes;
  codes.add("abc", "own", now);
  codes.use("abc", "browser-1");
  for (int i = 0; i < 11; ++i) look(codes, "x");
  EXPECT_EQ(look(codes, "abc"), "used browser-1");
}

TEST(LoginCodes, CanBeForgotten) {
  LoginCodes codes;
  codes.add("abc", "own", now);
  codes.add("used", "own", now);
  codes.use("used", "browser-1");
  codes.forget_waiting();
  EXPECT_EQ(look(codes, "abc"), "wrong");
  EXPECT_EQ(look(codes, "used"), "used browser-1");
}

}  // namespace
}  // namespace duet::app
