#include "app/doors/login.h"

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/fd.h"
#include "duet/base/log_tape_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

constexpr base::UtcTime now{1'700'000'000s};

struct LoginTest : testing::Test {
  std::variant<Tokens::Made, LoginRefused> login(std::string_view code, base::UtcTime time = now) {
    return log_in(codes, tokens, tape.log(), code, time);
  }
  std::string token(std::string_view code) { return std::get<Tokens::Made>(login(code)).token; }
  std::string refusal(std::string_view code, base::UtcTime time = now) {
    const auto refused = std::get<LoginRefused>(login(code, time));
    return std::to_string(refused.status) + ' ' + std::string(refused.word);
  }

  TemporaryProject place;
  base::Fd folder{open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  base::LogTape tape{base::Level::info};
  std::vector<std::string> ended;
  Tokens tokens{folder.get(),
                "here",
                {.on_ended = [this](const std::shared_ptr<const peer::Admission>& who) { ended.push_back(who->name); },
                 .on_problem = {}}};
  LoginCodes codes;
};

TEST_F(LoginTest, ACodeBecomesTheTokenOfABrowser) {
  codes.add("abc", "observe", now);
  const std::string made = token("abc");
  const auto who = tokens.find(made, now);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->name, "browser-1");
  EXPECT_EQ(who->role, "observe");
  EXPECT_EQ(tape.lines(),
            std::vector<std::string>{R"(info  a browser has logged in token="browser-1" role="observe")"});
}

TEST_F(LoginTest, ASecondUseEndsTheTokenThatTheFirstMade) {
  codes.add("abc", "own", now);
  const std::string made = token("abc");
  EXPECT_EQ(refusal("abc", now + 1min), "401 used");
  EXPECT_EQ(ended, std::vector<std::string>{"browser-1"});
  EXPECT_FALSE(tokens.find(made, now));
  EXPECT_EQ(refusal("abc"), "401 used");
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_EQ(tape.lines()[1],
            R"(warn  a login code came a second time; the token that it made has ended token="browser-1")");
}

TEST_F(LoginTest, WrongCodesAreRefusedAndTooManyOfThemForAWhile) {
  codes.add("abc", "own", now - 5min);
  EXPECT_EQ(refusal("abc"), "401 code");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(refusal("x"), "401 code");
  EXPECT_EQ(refusal("x"), "429 too-many");
  EXPECT_EQ(std::get<LoginRefused>(login("x", now + 20s)).retry_after, 40s);
}

TEST_F(LoginTest, ACodeStaysGoodIfItsTokenCannotBeWritten) {
  codes.add("abc", "own", now);
  std::filesystem::create_directory(place.path() / "tokens");
  EXPECT_EQ(refusal("abc"), "503 tokens");
  std::filesystem::remove(place.path() / "tokens");
  EXPECT_EQ(tokens.find(token("abc"), now)->role, "own");
}

TEST_F(LoginTest, NoCodeAndNoTokenIsLogged) {
  codes.add("the-code", "own", now);
  const std::string made = token("the-code");
  refusal("the-code");
  refusal("wrong-code");
  for (const std::string& line : tape.lines()) {
    EXPECT_EQ(line.find("the-code"), std::string::npos);
    EXPECT_EQ(line.find("wrong-code"), std::string::npos);
    EXPECT_EQ(line.find(made), std::string::npos);
  }
}

}  // namespace
}  // namespace duet::app
