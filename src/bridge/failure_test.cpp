#include "bridge/failure.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

std::string said(const Failure& failure, const char* where) {
  return std::string(describe(failure).at(where).as_string());
}

TEST(FailureTest, TellsTheCauseAndHowTheProcessEnded) {
  const Failure by_code{
      .cause = Cause::exited_before_initialize, .server = "s", .status = process::ExitStatus{.code = 3}};
  EXPECT_EQ(rpc::to_text(describe(by_code)), R"({"cause":"exited-before-initialize","server":"s","code":3})");
  const Failure by_signal{.cause = Cause::crashed, .status = process::ExitStatus{.signal = 9}};
  EXPECT_EQ(rpc::to_text(describe(by_signal)), R"({"cause":"crashed","signal":"SIGKILL"})");
}

TEST(FailureTest, RefusesWithOneCodeForWhatIsNotThereAndAnotherForWhatFailed) {
  EXPECT_EQ(to_error({.cause = Cause::not_found}).code(), code::unavailable);
  EXPECT_EQ(to_error({.cause = Cause::timeout}).code(), code::server_failed);
}

TEST(FailureTest, QuotesNoMoreThanItSaysWhateverTheBytesAre) {
  const Failure failure{.error_output = std::string(8192, '\xFF'), .noise = std::string(300, '\xFF')};
  EXPECT_EQ(said(failure, "stderr").size(), 8190U);
  EXPECT_EQ(said(failure, "stdout").size(), 300U);
}

TEST(FailureTest, CutsNoCharacter) {
  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "\xC3\xA4";
  const Failure failure{.error_output = umlauts.substr(1), .noise = "x" + umlauts};
  EXPECT_EQ(said(failure, "stderr").size(), 8192U);
  EXPECT_EQ(said(failure, "stderr").find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_EQ(said(failure, "stdout").size(), 299U);
}

}  // namespace
}  // namespace duet::bridge
