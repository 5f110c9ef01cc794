#include "app/cli/shell_completion.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <regex>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(command.c_str(), "r"), pclose);
  std::string out;
  for (int c = std::fgetc(shell.get()); c != EOF; c = std::fgetc(shell.get())) out += static_cast<char>(c);
  return out;
}

/// What bash offers, with our script loaded, for a line that is already cut into words.
class Bash : public testing::Test {
 protected:
  Bash() : script_(testing::TempDir() + "duet-completion-" + std::to_string(getpid())) {
    std::ofstream(script_) << completion_script("bash");
  }
  ~Bash() override { std::remove(script_.c_str()); }

  std::string offers(const std::string& words) const {
    const std::string inside = daemon_ + "source " + script_ + "; COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _duet_rpc; echo -n \"${COMPREPLY[*]}\"";
    return output_of("bash -c '" + inside + "'");
  }

  std::string script_;
  std::string daemon_;  // what bash is told before
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
  EXPECT_EQ(offers(R"(duet-rpc daemon "")"), "start stop restart status reload logs");
  EXPECT_EQ(offers(R"(duet-rpc --json daemon --project daemon st)"), "start stop status");
  EXPECT_EQ(offers(R"(duet-rpc daemon start "")"), "");
}

TEST_F(Bash, OffersOptionsOfTheCommand) {
  EXPECT_EQ(offers("duet-rpc --"),
            "--help --version --no-color --log-level --connect --identity --server-name --json --project --socket "
            "--timeout --trace --start");
  EXPECT_EQ(offers("duet-rpc rpc --"), "--help --version --no-color --log-level --read-timeout");
  EXPECT_EQ(offers("duet-rpc daemon stop --f"), "--force");
  EXPECT_EQ(offers("duet-rpc daemon start --f"), "--foreground");
  EXPECT_EQ(offers("duet-rpc --connect tls : //far : 7443 daemon stop --co"), "--connect");
  EXPECT_EQ(offers("duet-rpc daemon start --co"), "") << "it is for this machine only";
}

TEST_F(Bash, OffersValues) {
  EXPECT_EQ(offers(R"(duet-rpc --log-level "")"), "debug info warn error");
  EXPECT_EQ(offers("duet-rpc rpc --log-level = w"), "warn");
  EXPECT_EQ(offers("duet-rpc rpc --log-level ="), "debug info warn error");
  EXPECT_EQ(offers(R"(duet-rpc rpc --read-timeout "")"), "");
  EXPECT_EQ(offers(R"(duet-rpc daemon logs -n "")"), "");
  EXPECT_EQ(offers(R"(duet-rpc completion "")"), "bash zsh fish");
}

TEST_F(Bash, OffersWhatTheDaemonKnows) {
  daemon_ = "duet-rpc() { printf \"%s\\tsomething to do\\n\" \"$1-$2-$4-$5\" task-1 task-12; }; ";
  EXPECT_EQ(offers(R"(duet-rpc task get "")"), "candidates-task-duet-rpc-task task-1 task-12");
  EXPECT_EQ(offers(R"(duet-rpc task cancel task-3 task-12)"), "task-12");
  EXPECT_EQ(offers(R"(duet-rpc task submit --agent cand)"), "candidates-agent-duet-rpc-task");
  EXPECT_EQ(offers(R"(duet-rpc automation enable cand)"), "candidates-rule-duet-rpc-automation");
  EXPECT_EQ(offers(R"(duet-rpc task submit "")"), "") << "a prompt is not known to anybody";
  daemon_ = "duet-rpc() { printf \"\\044(echo executed)\\n\"; }; ";
  EXPECT_EQ(offers(R"(duet-rpc queue pause "")"), R"(\$\(echo\ executed\))");
  daemon_ = "duet-rpc() { return 3; }; ";
  EXPECT_EQ(offers(R"(duet-rpc task get "")"), "");
}

TEST_F(Bash, OffersFolders) { EXPECT_EQ(offers("duet-rpc daemon status --project /us"), "/usr"); }

/// What fish offers, if it is installed, for a line that is still being written.
class Fish : public testing::Test {
 protected:
  Fish() : script_(testing::TempDir() + "duet-completion-fish-" + std::to_string(getpid())) {
    std::ofstream(script_) << "function duet-rpc; printf \"%s\\twhat\\n\" $argv[2] task-1; end\n"
                           << completion_script("fish");
  }
  ~Fish() override { std::remove(script_.c_str()); }
  void SetUp() override {
    if (std::system("command -v fish >/dev/null") != 0) GTEST_SKIP() << "there is no fish";
  }

  std::string offers(const std::string& line) const {
    return output_of("fish --no-config -c 'source " + script_ + "; complete -C \"" + line +
                     "\" | string split -f1 \\t | string join \" \"'");
  }

  std::string script_;
};

TEST_F(Fish, OffersWhatGoesWithTheCommand) {
  EXPECT_EQ(offers("duet-rpc --project task daemon st"), "start status stop\n");
  EXPECT_EQ(offers("duet-rpc task get "), "task task-1\n");
  EXPECT_EQ(offers("duet-rpc task submit --agent "), "agent task-1\n");
  EXPECT_EQ(offers("duet-rpc daemon start --st"), "--started-by\n") << "it has no --start";
  EXPECT_EQ(offers("duet-rpc task get --st"), "--start\n");
  EXPECT_EQ(offers("duet-rpc --connect tls://far:7443 task get --conn"), "--connect\n");
  EXPECT_EQ(offers("duet-rpc doctor --conn"), "") << "it is for this machine only";
  EXPECT_EQ(offers("duet-rpc rpc --pro"), "");
  EXPECT_EQ(offers("duet-rpc task submit list --col"), "") << "the word is the prompt's";
  EXPECT_EQ(offers("duet-rpc chat send daemon st"), "");
}

TEST(Zsh, CanReadItsScript) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "there is no zsh";
  const std::string script = testing::TempDir() + "duet-completion-zsh-" + std::to_string(getpid());
  std::ofstream(script) << completion_script("zsh");
  EXPECT_EQ(output_of("zsh -f -n " + script + " 2>&1"), "");
  std::remove(script.c_str());
}

TEST(Completion, EveryIdOfSeveralIsOffered) {
  EXPECT_NE(completion_script("zsh").find("'task cancel') _arguments $global $client"), std::string::npos);
  EXPECT_NE(completion_script("zsh").find("'*:ID: _duet_rpc_ask live-task'"), std::string::npos);
  EXPECT_NE(completion_script("zsh").find("'daemon start') _arguments $global ${client:#--(connect|identity|"),
            std::string::npos);
  EXPECT_NE(completion_script("zsh").find("'daemon stop') _arguments $global ${client:#--(start)*}"),
            std::string::npos);
}

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
    EXPECT_FALSE(std::regex_search(script, std::regex("@[A-Z_]+@"))) << "a mark that was not filled in, for " << shell;
  }
}

TEST(Completion, IsForTheNameTheProgramWasCalledBy) {
  for (const std::string_view shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(completion_script(shell, "aiwg").find("duet-rpc"), std::string::npos) << shell;
  }
}

}  // namespace
}  // namespace duet::app
