#include "app/settings/offered_agents.h"

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

using Names = std::vector<std::string>;

class OfferedAgents : public ::testing::Test {
 protected:
  std::optional<Names> offered_by(const std::string& text) {
    const std::string file = (project_.path() / "config.toml").string();
    TemporaryProject::write(file, text);
    return agents_offered_by({.user = file});
  }
  TemporaryProject project_;
};

TEST_F(OfferedAgents, AreThoseOfTheUsersOwnFile) {
  EXPECT_EQ(offered_by("[mcp]\nagents = [\"claude\", \"shell\"]\n"), (Names{"claude", "shell"}));
  EXPECT_EQ(offered_by("[mcp]\nagents = []\n"), Names());
}

TEST_F(OfferedAgents, AreNotSaidByAFileThatSaysSomethingElse) {
  for (const char* text : {"", "[mcp]\n", "[mcp]\nagents = \"shell\"\n", "agents = [\"shell\"]\n", "[mcp\n"}) {
    EXPECT_EQ(offered_by(text), std::nullopt) << text;
  }
  EXPECT_EQ(agents_offered_by({}), std::nullopt);
}

}  // namespace
}  // namespace duet::app
