#include "automation/keepsake.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

struct KeepsakeTest : testing::Test {
  Names written;
  Names finished;
  std::vector<Keepsake::Done> in_writing;
  std::string text = "1";
  std::optional<Keepsake> keepsake{std::in_place,
                                   Keepsake::Actions{[] { return std::nullopt; },
                                                     [this](std::string version, Keepsake::Done done) {
                                                       written.push_back(std::move(version));
                                                       in_writing.push_back(std::move(done));
                                                     }},
                                   [this] { return text; }};

  void save(const std::string& name) {
    keepsake->save([this, name](bool kept) { finished.push_back(name + (kept ? " kept" : " lost")); });
  }
};

TEST_F(KeepsakeTest, WritesOneVersionAtATimeAndThenTheNewest) {
  save("a");
  text = "2";
  save("b");
  text = "3";
  save("c");
  EXPECT_EQ(written, Names{"1"});
  in_writing[0](true);
  EXPECT_EQ(finished, Names{"a kept"});
  EXPECT_EQ(written, (Names{"1", "3"})) << "nobody needs the one in between";
  in_writing[1](true);
  EXPECT_EQ(finished, (Names{"a kept", "b kept", "c kept"}));
  EXPECT_EQ(written.size(), 2U);
}

TEST_F(KeepsakeTest, KnowsWhetherTheLastVersionWasKept) {
  save("a");
  in_writing[0](false);
  EXPECT_EQ(finished, Names{"a lost"});
  EXPECT_FALSE(keepsake->was_kept());
  save("b");
  in_writing[1](true);
  EXPECT_TRUE(keepsake->was_kept());
}

TEST_F(KeepsakeTest, AnAnswerMayComeTooLate) {
  save("a");
  keepsake.reset();
  in_writing[0](true);
  EXPECT_EQ(finished, Names{});
}

}  // namespace
}  // namespace duet::automation
