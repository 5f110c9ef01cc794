#include "app/shell_completion.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

#include "app/command_table.h"

namespace duet::app {
namespace {

/// What bash offers, with our script loaded, for a line that is already cut into words.
class Bash : public testing::Test {
 protected:
  Bash() : script_(testing::TempDir() + "duet-completion-" + std::to_string(getpid())) {
    std::ofstream(script_) << completion_script("bash");
  }
  ~Bash() override { std::remove(script_.c_str()); }

  std::string offers(const std::string& words) const {
    const std::string inside = "source " + script_ + "; COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _duet_rpc; echo -n \"${COMPREPLY[*]}\"";
    const std::unique_ptr<FILE, int (*)(FILE*)> bash(popen(("bash -c '" + inside + "'").c_str(), "r"), pclose);
    std::string out;
    for (int c = std::fgetc(bash.get()); c != EOF; c = std::fgetc(bash.get())) out += static_cast<char>(c);
    return out;
  }

  std::string script_;
};

TEST_F(Bash, OffersCommands) {
  EXPECT_EQ(offers(R"(duet-rpc "")"), "rpc version completion");
  EXPECT_EQ(offers("duet-rpc v"), "version");
  EXPECT_EQ(offers(R"(duet-rpc --no-color "")"), "rpc version completion");
}

TEST_F(Bash, OffersOptionsOfTheCommand) {
  EXPECT_EQ(offers("duet-rpc --"), "--help --version --no-color --log-level");
  EXPECT_EQ(offers("duet-rpc rpc --"), "--help --version --no-color --log-level --read-timeout");
}

TEST_F(Bash, OffersValues) {
  EXPECT_EQ(offers(R"(duet-rpc --log-level "")"), "debug info warn error");
  EXPECT_EQ(offers("duet-rpc rpc --log-level = w"), "warn");
  EXPECT_EQ(offers("duet-rpc rpc --log-level ="), "debug info warn error");
  EXPECT_EQ(offers(R"(duet-rpc rpc --read-timeout "")"), "");
  EXPECT_EQ(offers(R"(duet-rpc completion "")"), "bash zsh fish");
}

TEST(Completion, ComesForEveryShellWithEverythingThatIsListed) {
  for (const std::string_view shell : find_command("completion")->argument.choices) {
    const std::string script = completion_script(shell);
    for (const CommandEntry& command : commands()) {
      EXPECT_TRUE(!command.listed || script.find(command.name) != std::string::npos) << shell << ": " << command.name;
    }
    for (const OptionEntry& option : global_options()) EXPECT_NE(script.find(option.name), std::string::npos) << shell;
    EXPECT_NE(script.find("read-timeout"), std::string::npos) << shell;
    EXPECT_EQ(script.find("manual"), std::string::npos) << "an unlisted command in the script for " << shell;
  }
}

}  // namespace
}  // namespace duet::app
