#include "app/cli/shell_completion.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

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

std::string names_below(const CommandEntry* group) {
  std::string out;
  for (const CommandEntry* command : commands_below(group)) {
    out += (out.empty() ? "" : " ") + std::string(command->name());
  }
  return out;
}

TEST_F(Bash, OffersCommands) {
  EXPECT_EQ(offers(R"(duet-rpc "")"), names_below(nullptr));
  EXPECT_EQ(offers("duet-rpc v"), "version");
  EXPECT_EQ(offers(R"(duet-rpc --no-color "")"), names_below(nullptr));
  EXPECT_EQ(offers(R"(duet-rpc daemon "")"), "start stop restart status logs");
  EXPECT_EQ(offers(R"(duet-rpc --json daemon --project daemon st)"), "start stop status");
  EXPECT_EQ(offers(R"(duet-rpc daemon start "")"), "");
}

TEST_F(Bash, OffersOptionsOfTheCommand) {
  EXPECT_EQ(offers("duet-rpc --"),
            "--help --version --no-color --log-level --json --project --socket --timeout --trace");
  EXPECT_EQ(offers("duet-rpc rpc --"), "--help --version --no-color --log-level --read-timeout");
  EXPECT_EQ(offers("duet-rpc daemon stop --f"), "--force");
  EXPECT_EQ(offers("duet-rpc daemon start --f"), "--foreground");
}

TEST_F(Bash, OffersValues) {
  EXPECT_EQ(offers(R"(duet-rpc --log-level "")"), "debug info warn error");
  EXPECT_EQ(offers("duet-rpc rpc --log-level = w"), "warn");
  EXPECT_EQ(offers("duet-rpc rpc --log-level ="), "debug info warn error");
  EXPECT_EQ(offers(R"(duet-rpc rpc --read-timeout "")"), "");
  EXPECT_EQ(offers(R"(duet-rpc daemon logs -n "")"), "");
  EXPECT_EQ(offers(R"(duet-rpc completion "")"), "bash zsh fish");
}

TEST_F(Bash, OffersFolders) { EXPECT_EQ(offers("duet-rpc daemon status --project /us"), "/usr"); }

TEST(Completion, ComesForEveryShellWithEverythingThatIsListed) {
  for (const std::string_view shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(shell);
    for (const CommandEntry& command : commands()) {
      EXPECT_TRUE(!command.listed || script.find(command.name()) != std::string::npos) << shell << ": " << command.path;
      for (const OptionEntry& option : command.options) {
        EXPECT_NE(script.find(option.name), std::string::npos) << shell << ": " << option.name;
      }
    }
    for (const OptionEntry& option : global_options()) EXPECT_NE(script.find(option.name), std::string::npos) << shell;
    for (const OptionEntry& option : client_options()) EXPECT_NE(script.find(option.name), std::string::npos) << shell;
    EXPECT_EQ(script.find("manual"), std::string::npos) << "an unlisted command in the script for " << shell;
    EXPECT_EQ(script.find('@'), script.find("@\"")) << "a mark that was not filled in, for " << shell;
  }
}

TEST(Completion, IsForTheNameTheProgramWasCalledBy) {
  for (const std::string_view shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(completion_script(shell, "aiwg").find("duet-rpc"), std::string::npos) << shell;
  }
}

}  // namespace
}  // namespace duet::app
