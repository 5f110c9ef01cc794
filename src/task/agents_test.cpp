#include "task/agents.h"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>

#include "duet/rpc/error.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::task {
namespace {

using Strings = std::vector<std::string>;

class AgentsTest : public testing::Test {
 protected:
  Agents agents() const {
    return {settings, environment, [] { return std::string("/project"); }};
  }

  std::string chosen(const Submission& submission) {
    const tl::expected<std::string, rpc::Error> agent = agents().choose(submission);
    if (agent) return *agent;
    data = agent.error().data();
    return std::to_string(agent.error().code());
  }
  Strings arguments(const std::string& agent, const std::string& prompt) const {
    return agents().assignment({1, 1}, agent, {.prompt = prompt})->arguments;
  }
  std::string folder_with_claude() const {
    const std::string path = folder.file("claude");
    std::ofstream(path) << "#!/bin/sh\n";
    chmod(path.c_str(), 0700);
    return folder.path();
  }

  transport::TemporaryFolder folder;
  TaskSettings settings;
  process::Environment environment = {{"PATH", "/nowhere"}};
  std::string data;
};

TEST_F(AgentsTest, WithoutADefaultThereIsNoneUnlessClaudeIsOnThePath) {
  EXPECT_EQ(chosen({.prompt = "p"}), "-32003");
  EXPECT_EQ(data, R"({"subsystem":"agents","set":"default_agent"})");
  environment["PATH"] = folder_with_claude();
  EXPECT_EQ(chosen({.prompt = "p"}), "claude");
}

TEST_F(AgentsTest, ThePathIsThatOfTheTask) {
  EXPECT_EQ(chosen({.prompt = "p", .env = {{"PATH", folder_with_claude()}}}), "claude");
}

TEST_F(AgentsTest, AProgramWithASlashIsFromTheProjectsRootWhereverTheTaskWorks) {
  settings.agents["tool"] = {.command = {"tools/agent", "a/b"}};
  const auto assignment = agents().assignment({1, 1}, "tool", {.prompt = "p", .cwd = "src"});
  EXPECT_EQ(assignment->arguments, (Strings{"/project/tools/agent", "a/b"}));
  EXPECT_EQ(assignment->directory, "/project/src");
  EXPECT_EQ(arguments("shell", "p").front(), "/bin/sh");
}

TEST_F(AgentsTest, TheSettingsNameTheDefault) {
  settings.default_agent = "mine";
  EXPECT_EQ(chosen({.prompt = "p"}), "-32003");
  EXPECT_EQ(data, R"({"subsystem":"agents","set":"agents.mine.command"})");
  settings.agents["mine"] = {.command = {"mine"}};
  EXPECT_EQ(chosen({.prompt = "p"}), "mine");
  EXPECT_EQ(chosen({.prompt = "p", .agent = "shell"}), "shell");
}

TEST_F(AgentsTest, AnUnknownAgentIsRefusedWithThoseThereAre) {
  settings.agents["mine"] = {.command = {"mine"}};
  EXPECT_EQ(chosen({.prompt = "p", .agent = "clod"}), "-32602");
  EXPECT_EQ(
      data,
      R"({"param":"agent","expected":"the name of an agent","received":"clod","accepted":["claude","mine","shell"]})");
}

TEST_F(AgentsTest, AnAgentOfSettingsThatAreNotTrustedIsRefusedWithTheCure) {
  settings.untrusted_agents = {"theirs", "claude"};
  EXPECT_EQ(chosen({.prompt = "p", .agent = "theirs"}), "-32003");
  EXPECT_EQ(data, R"({"subsystem":"agents","agent":"theirs","reason":"untrusted"})");
  EXPECT_EQ(chosen({.prompt = "p", .agent = "claude"}), "claude") << "the built-in one";
  EXPECT_EQ(arguments("claude", "p"), (Strings{"claude", "-p"}));
}

TEST_F(AgentsTest, TheCureIsOneThatHelps) {
  settings.had_trust = true;
  settings.untrusted_agents = {"theirs"};
  settings.untrusted_default = "theirs";
  settings.distrust = {"their file is gone", "put it back"};
  const auto refusal = [this](const Submission& submission) {
    const auto agent = agents().choose(submission);
    return agent ? *agent : agent.error().message();
  };
  EXPECT_EQ(refusal({.prompt = "p", .agent = "theirs"}),
            "Subsystem unavailable: the agent 'theirs' is one of the project's settings, and their file is gone: put "
            "it back");
  EXPECT_EQ(refusal({.prompt = "p"}),
            "Subsystem unavailable: the default agent is 'theirs' by the project's settings, and their file is gone: "
            "name another agent, or put it back");
}

TEST_F(AgentsTest, NoOtherAgentTakesThePlaceOfOneThatIsNotTrustedAnyMore) {
  settings.had_trust = true;
  environment["PATH"] = folder_with_claude();
  settings.untrusted_agents = {"claude", "mine"};
  settings.agents["mine"] = {.command = {"mine"}};  // of the user
  EXPECT_EQ(chosen({.prompt = "p", .agent = "claude"}), "-32003");
  EXPECT_EQ(data, R"({"subsystem":"agents","agent":"claude","reason":"untrusted"})");
  EXPECT_EQ(chosen({.prompt = "p", .agent = "mine"}), "-32003");
  EXPECT_FALSE(agents().assignment({1, 1}, "claude", {.prompt = "p"})) << "one that was accepted before waits";
  EXPECT_EQ(chosen({.prompt = "p"}), "-32003") << "the default";
  EXPECT_EQ(chosen({.prompt = "p", .agent = "shell"}), "shell");
}

TEST_F(AgentsTest, NoOtherAgentIsTheDefaultInsteadOfOneThatIsNotTrustedAnyMore) {
  settings.had_trust = true;
  environment["PATH"] = folder_with_claude();
  settings.untrusted_default = "shell";
  EXPECT_EQ(chosen({.prompt = "p"}), "-32003");
  EXPECT_EQ(data, R"({"subsystem":"agents","agent":"shell","reason":"untrusted"})");
  EXPECT_EQ(chosen({.prompt = "p", .agent = "shell"}), "shell");
  settings.default_agent = "shell";
  EXPECT_EQ(chosen({.prompt = "p"}), "shell") << "the user's own settings say the same";
}

TEST_F(AgentsTest, ThePromptTakesThePlaceOfItsNameInEachArgument) {
  settings.agents["mine"] = {.command = {"run", "--text={prompt}", "{prompt}{prompt}", "{other}", "{prompt"}};
  EXPECT_EQ(arguments("mine", "a {prompt} $(b) \"c\"\n"),
            (Strings{"run", "--text=a {prompt} $(b) \"c\"\n", "a {prompt} $(b) \"c\"\na {prompt} $(b) \"c\"\n",
                     "{other}", "{prompt"}));
  EXPECT_EQ(arguments("claude", "p"), (Strings{"claude", "-p"}));
  EXPECT_EQ(agents().assignment({1, 1}, "claude", {.prompt = "--version"})->input, "--version");
  EXPECT_EQ(arguments("shell", "p"), (Strings{"/bin/sh", "-c", "--", "p"}));
}

TEST_F(AgentsTest, TheSettingsMayChangeTheBuiltInOnes) {
  settings.agents["claude"] = {.command = {"my-claude"}, .prompt_on_stdin = true};
  EXPECT_EQ(arguments("claude", "p"), (Strings{"my-claude"}));
  EXPECT_EQ(agents().assignment({1, 1}, "claude", {.prompt = "p"})->input, "p");
}

TEST_F(AgentsTest, APromptThatIsTooLongForAnArgumentIsRefused) {
  settings.agents["mine"] = {.command = {"run", "--text={prompt}"}};
  settings.agents["twice"] = {.command = {"{prompt}{prompt}"}};
  settings.agents["stdin"] = {.command = {"run", "{prompt}"}, .prompt_on_stdin = true};
  const auto with = [](std::size_t size, const char* agent) {
    return Submission{.prompt = std::string(size, 'p'), .agent = agent};
  };
  EXPECT_EQ(chosen(with(131071, "shell")), "shell");
  EXPECT_EQ(chosen(with(131072, "shell")), "-32602");
  EXPECT_EQ(data,
            R"({"param":"prompt","expected":"string of at most 131071 bytes for this agent","received":"string"})");
  EXPECT_EQ(chosen(with(131064, "mine")), "mine");
  EXPECT_EQ(chosen(with(131065, "mine")), "-32602");
  EXPECT_EQ(chosen(with(65535, "twice")), "twice");
  EXPECT_EQ(chosen(with(65536, "twice")), "-32602");
  EXPECT_EQ(chosen(with(5'000'000, "stdin")), "stdin");
}

TEST_F(AgentsTest, ATaskRunsInTheProjectUnlessItSaysOtherwise) {
  const auto directory = [&](const char* cwd) {
    return agents().assignment({1, 1}, "shell", {.prompt = "p", .cwd = cwd})->directory;
  };
  EXPECT_EQ(directory(""), "/project");
  EXPECT_EQ(directory("src/x"), "/project/src/x");
  EXPECT_EQ(directory("/elsewhere"), "/elsewhere");
}

}  // namespace
}  // namespace duet::task
