#include "task/shell_agent.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using Command = std::vector<std::string>;

bool by_argument(Command command) { return hands_prompt_to_shell({.command = std::move(command)}); }
bool by_stdin(Command command) {
  return hands_prompt_to_shell({.command = std::move(command), .prompt_on_stdin = true});
}

TEST(ShellAgent, IsWhoSaysSo) {
  EXPECT_TRUE(hands_prompt_to_shell({.command = {"./agent", "{prompt}"}, .shell = true}));
  EXPECT_FALSE(by_argument({"./agent", "{prompt}"}));
}

TEST(ShellAgent, IsAShellWithTheCommandOption) {
  for (const char* shell : {"sh", "bash", "/bin/dash", "zsh", "fish", "/usr/bin/ksh", "mksh", "ash", "tcsh"}) {
    EXPECT_TRUE(by_argument({shell, "-c", "{prompt}"})) << shell;
    EXPECT_TRUE(by_argument({shell, "-c", "claude -p '{prompt}'"})) << shell;
  }
  EXPECT_TRUE(by_argument({"bash", "-lc", "{prompt}"}));
  EXPECT_TRUE(by_argument({"bash", "-e", "-o", "pipefail", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"bash", "--norc", "--rcfile", "x", "-c", "--", "{prompt}"}));
  EXPECT_TRUE(by_argument({"fish", "--command={prompt}"}));
  EXPECT_TRUE(by_argument({"fish", "--command", "{prompt}"}));
}

TEST(ShellAgent, IsFoundBehindOtherPrograms) {
  EXPECT_TRUE(by_argument({"env", "bash", "-lc", "{prompt}"}));
  EXPECT_TRUE(by_argument({"/usr/bin/env", "-i", "HOME=/x", "bash", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"env", "-S", "bash -lc", "{prompt}"}));
  EXPECT_TRUE(by_argument({"env", "-S", "bash -lc {prompt}"}));
  EXPECT_TRUE(by_argument({"busybox", "sh", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"nice", "-n", "5", "timeout", "1h", "sh", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"docker", "exec", "box", "sh", "-c", "{prompt}"}));
  EXPECT_TRUE(by_stdin({"docker", "exec", "-i", "box", "bash"}));
  EXPECT_TRUE(by_argument({"sshpass", "-e", "ssh", "host", "claude -p '{prompt}'"}));
  EXPECT_TRUE(by_argument({"sh", "-c", "exec \"$@\"", "sh", "bash", "-c", "{prompt}"}));
  EXPECT_TRUE(by_stdin({"direnv", "exec", ".", "ssh", "box"}));
  EXPECT_TRUE(by_stdin({"mise", "exec", "--", "bash"}));
}

TEST(ShellAgent, IsARemoteOneBehindWhateverWords) {
  EXPECT_TRUE(by_argument({"direnv", "exec", ".", "ssh", "box", "claude -p '{prompt}'"}));
  EXPECT_TRUE(by_argument({"mise", "exec", "--", "/usr/bin/ssh", "box", "claude", "{prompt}"}));
  EXPECT_TRUE(by_argument({"op", "run", "--", "ssh", "box", "{prompt}"}));
  EXPECT_TRUE(by_argument({"./retry", "su", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"sh", "-c", "exec \"$@\"", "sh", "ssh", "box", "claude -p '{prompt}'"}));
  EXPECT_TRUE(by_argument({"vagrant", "ssh", "-c", "claude -p '{prompt}'"}));
  EXPECT_FALSE(by_argument({"agent", "{prompt}", "--over", "ssh"}));
  EXPECT_FALSE(by_stdin({"agent", "--over", "ssh"}));
}

TEST(ShellAgent, IsWhatPassesWordsOnToAShell) {
  EXPECT_TRUE(by_argument({"ssh", "host", "claude", "-p", "{prompt}"}));
  EXPECT_TRUE(by_argument({"su", "-c", "{prompt}", "me"}));
  EXPECT_TRUE(by_argument({"script", "-qc", "{prompt}"}));
  EXPECT_TRUE(by_argument({"flock", "/tmp/l", "-c", "claude -p '{prompt}'"}));
  EXPECT_TRUE(by_argument({"pwsh", "-ExecutionPolicy", "Bypass", "-Command", "{prompt}"}));
  EXPECT_TRUE(by_argument({"nix-shell", "--run", "claude -p '{prompt}'"}));
  EXPECT_TRUE(by_stdin({"ssh", "host"}));
}

TEST(ShellAgent, IsAnyInterpreterOfCode) {
  EXPECT_TRUE(by_argument({"python3", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"python3.11", "-Ic", "print('{prompt}')"}));
  EXPECT_TRUE(by_argument({"perl", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"python3", "-W", "ignore", "-c", "{prompt}"}));
  EXPECT_TRUE(by_argument({"node", "-r", "./x.js", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"php", "-d", "a=1", "-r", "{prompt}"}));
  EXPECT_TRUE(by_argument({"node", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"node", "--eval={prompt}"}));
  EXPECT_TRUE(by_argument({"node", "--print", "{prompt}"}));
  EXPECT_TRUE(by_argument({"awk", "{prompt}"}));
}

TEST(ShellAgent, IsAnInterpreterWhateverItsOtherOptionsAre) {
  EXPECT_TRUE(by_argument({"node", "--loader", "x", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"node", "--some-option", "x", "--other", "y", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"ruby", "-C", "d", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"ruby", "-W:no-deprecated", "-X", "d", "-e", "{prompt}"}));
  EXPECT_TRUE(by_argument({"php", "-c", "ini", "-r", "{prompt}"}));
  EXPECT_TRUE(by_argument({"node", "--some-option", "run", "bash", "-c", "{prompt}"}));
  EXPECT_FALSE(by_argument({"node", "--some-option", "agent", "{prompt}"}));
  EXPECT_FALSE(by_argument({"node", "--some-option", "agent.js", "-p", "{prompt}"}));
  EXPECT_FALSE(by_argument({"node", "agent", "-p", "{prompt}"}));
  EXPECT_FALSE(by_argument({"node", "--some-option=x", "agent", "-p", "{prompt}"}));
  EXPECT_FALSE(by_argument({"python3", "-m", "agent", "-c", "{prompt}"}));
  EXPECT_FALSE(by_argument({"python3", "-c", "import agent", "-u", "{prompt}"}));
  EXPECT_FALSE(by_argument({"bash", "-e", "agent", "-c", "{prompt}"}));
}

TEST(ShellAgent, IsAShellThatReadsThePromptOnStdin) {
  EXPECT_TRUE(by_stdin({"bash"}));
  EXPECT_TRUE(by_stdin({"sh", "-s", "--", "word"}));
  EXPECT_TRUE(by_stdin({"sh", "-"}));
  EXPECT_TRUE(by_stdin({"python3"}));
  EXPECT_FALSE(by_stdin({"sh", "-c", "claude -p"}));
  EXPECT_FALSE(by_stdin({"sh", "agent.sh"}));
  EXPECT_FALSE(by_stdin({"python3", "-s", "agent.py"}));
  EXPECT_FALSE(by_stdin({"python3", "-u", "agent"}));
  EXPECT_FALSE(by_stdin({"claude", "-p"}));
}

TEST(ShellAgent, IsNotWhereThePromptStaysAWord) {
  EXPECT_FALSE(by_argument({"sh", "agent.sh", "{prompt}"}));
  EXPECT_FALSE(by_argument({"sh", "-c", "claude -p \"$1\"", "sh", "{prompt}"}));
  EXPECT_FALSE(by_argument({"python3", "agent.py", "-c", "{prompt}"}));
  EXPECT_FALSE(by_argument({"claude", "-p", "--", "{prompt}"}));
  EXPECT_FALSE(by_argument({"env", "X=1", "agent", "{prompt}"}));
  EXPECT_FALSE(by_argument({"sh", "-c", "make"}));
  EXPECT_FALSE(by_argument({"sh", "-c", "bash agent.sh \"$1\"", "sh", "{prompt}"}));
  EXPECT_FALSE(by_argument({"agent", "--language", "python", "{prompt}"}));
  EXPECT_FALSE(by_argument({"agent", "batch", "--print", "{prompt}"}));
  EXPECT_FALSE(by_stdin({"agent", "--shell", "bash"}));
}

}  // namespace
}  // namespace duet::task
