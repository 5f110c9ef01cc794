#include "app/settings/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

Settings read(const Texts& texts) {
  std::vector<SettingsText> sources;
  for (const std::string& text : texts) sources.push_back({"file" + std::to_string(sources.size() + 1), text});
  auto parsed = parse_settings(sources);
  const auto* error = std::get_if<SettingsError>(&parsed);
  EXPECT_EQ(error, nullptr) << (error == nullptr ? "" : error->text);
  return error == nullptr ? std::get<Settings>(std::move(parsed)) : Settings();
}

std::string refused(const Texts& texts) {
  std::vector<SettingsText> sources;
  for (const std::string& text : texts) sources.push_back({"file" + std::to_string(sources.size() + 1), text});
  const auto parsed = parse_settings(sources);
  const auto* error = std::get_if<SettingsError>(&parsed);
  return error == nullptr ? "accepted" : error->text;
}

std::string rule(const std::string& trigger, const std::string& rest = "", const std::string& action = "") {
  return "[[rules]]\nid = \"r\"\ntrigger = " + trigger + "\n" +
         "action = " + (action.empty() ? R"({ type = "agent", prompt = "x" })" : action) + "\n" + rest;
}

constexpr const char* everything = R"(
default_agent = "mine"
max_running = 5
queue_capacity = 200
keep_days = 7
keep_tasks = 50
keep_output = "3M"
[agents.mine]
command = ["agent", "--ask", "{prompt}"]
[agents.piped]
command = ["piped"]
stdin = "prompt"
[watch]
paths = ["src", "include"]
ignore = ["*.o", "build/", "gen/**"]
[[rules]]
id = "test-on-save"
trigger = { source = "watch", type = "file.modify", pattern = "src/**/*.cpp" }
conditions = [ { field = "payload.path", operator = "matches", value = "_test" } ]
action = { type = "agent", agent = "piped", prompt = "Fix {{payload.path}}", priority = -3 }
cooldown = "30s"
requires_approval = true
enabled = false
[[rules]]
id = "nightly"
trigger = { cron = "0 3 * * *" }
action = { type = "agent", agent = "shell", prompt = "make all # $DUET_PATH" }
[[rules]]
id = "tell"
trigger = { source = "task", type = "task.failed" }
conditions = [ { field = "payload.exitCode", operator = "gt", value = 1.5 },
               { field = "payload.signal", operator = "not_exists" },
               { field = "payload.agent", operator = "eq", value = "mine" } ]
action = { type = "notify", message = "{{payload.taskId}} failed" }
[lsp.clangd]
command = ["clangd", "--log=error"]
[lsp.own]
command = ["own-server"]
files = ["*.own"]
roots = [".own"]
env = { LEVEL = "3", EMPTY = "" }
max_memory = "2G"
max_body = 1048576
idle = 90
)";

TEST(Settings, AreTheDefaultsWithoutAFile) {
  const Settings settings = read({});
  EXPECT_EQ(settings.tasks.default_agent, "");
  EXPECT_EQ(settings.tasks.max_running, 3U);
  EXPECT_EQ(settings.tasks.queue_capacity, 10'000U);
  EXPECT_EQ(settings.tasks.keep_days, 30U);
  EXPECT_EQ(settings.tasks.keep_tasks, 10'000U);
  EXPECT_TRUE(settings.rules.empty() && settings.servers.empty() && settings.tasks.agents.empty());
  EXPECT_EQ(read({""}).files, Texts{"file1"});
}

TEST(Settings, EveryNameIsRead) {
  const Settings settings = read({everything});
  EXPECT_EQ(settings.tasks.default_agent, "mine");
  EXPECT_EQ(settings.tasks.max_running, 5U);
  EXPECT_EQ(settings.tasks.queue_capacity, 200U);
  EXPECT_EQ(settings.tasks.keep_days, 7U);
  EXPECT_EQ(settings.tasks.keep_tasks, 50U);
  EXPECT_EQ(settings.tasks.keep_output, 3U << 20U);
  EXPECT_EQ(settings.tasks.agents.at("mine").command, (Texts{"agent", "--ask", "{prompt}"}));
  EXPECT_FALSE(settings.tasks.agents.at("mine").prompt_on_stdin);
  EXPECT_TRUE(settings.tasks.agents.at("piped").prompt_on_stdin);
  EXPECT_EQ(settings.watch.paths, (Texts{"src", "include"}));
  EXPECT_EQ(settings.watch.ignore, (Texts{"*.o", "build/", "gen/**"}));
}

TEST(Settings, TheDaemonsOwnAreForTheUsersFiles) {
  EXPECT_EQ(read({"[daemon]\nstate = 'user'"}).daemon.state, StatePlace::user);
  EXPECT_EQ(read({""}).daemon.state, StatePlace::project);
  const std::vector<SettingsText> texts{{"file", "\n[daemon]\nstate = 'user'", true}};
  const auto parsed = parse_settings(texts);
  EXPECT_EQ(std::get<SettingsError>(parsed).text,
            "file:2:1: [daemon] is for your own settings: move it to config.toml");
}

TEST(Settings, AnAgentMayHaveLimits) {
  const Settings settings =
      read({"[agents.x]\ncommand = ['x']\nmemory = '2G'\nprocesses = 50\ncpu = 1.5\n"
            "[agents.y]\ncommand = ['y']\ncpu = 2\n"});
  EXPECT_EQ(settings.tasks.agents.at("x").limits,
            (process::Limits{.memory = std::uint64_t{2} << 30U, .processes = 50, .cpu = 1.5}));
  EXPECT_EQ(settings.tasks.agents.at("y").limits, (process::Limits{.cpu = 2.0}));
}

TEST(Settings, EveryNameOfARuleIsRead) {
  const Settings settings = read({everything});
  ASSERT_EQ(settings.rules.size(), 3U);
  const automation::Rule& saved = settings.rules[0];
  EXPECT_EQ(saved.id, "test-on-save");
  EXPECT_EQ(saved.trigger.source, "watch");
  EXPECT_EQ(saved.trigger.type, "file.modify");
  EXPECT_EQ(saved.trigger.pattern, "src/**/*.cpp");
  ASSERT_EQ(saved.conditions.size(), 1U);
  EXPECT_EQ(saved.conditions[0].field, "payload.path");
  EXPECT_EQ(saved.conditions[0].op, automation::Operator::matches);
  EXPECT_EQ(saved.conditions[0].value, boost::json::value("_test"));
  EXPECT_EQ(saved.action.agent, "piped");
  EXPECT_EQ(saved.action.prompt, "Fix {{payload.path}}");
  EXPECT_EQ(saved.action.priority, -3);
  EXPECT_EQ(saved.cooldown, 30s);
  EXPECT_TRUE(saved.requires_approval);
  EXPECT_FALSE(saved.enabled);
  EXPECT_EQ(settings.rules[1].trigger.source, "schedule") << "which cron implies";
  EXPECT_EQ(settings.rules[2].conditions[0].op, automation::Operator::gt);
  EXPECT_EQ(settings.rules[2].conditions[0].value, boost::json::value(1.5));
  EXPECT_EQ(settings.rules[2].conditions[1].op, automation::Operator::not_exists);
  EXPECT_EQ(settings.rules[2].action.type, automation::Action::Type::notify);
  EXPECT_EQ(settings.rules[2].action.message, "{{payload.taskId}} failed");
}

TEST(Settings, ARuleHasTheSourceThatItsTypeOrPatternMeans) {
  EXPECT_EQ(read({rule("{ type = 'task.failed' }")}).rules[0].trigger.source, "task");
  const automation::Rule reboot = read({rule("{ cron = '@reboot' }")}).rules[0];
  EXPECT_EQ(reboot.trigger.source + " " + reboot.trigger.type, "daemon daemon.started");
  EXPECT_EQ(reboot.when_busy, automation::WhenBusy::queue);
  EXPECT_EQ(read({rule("{ type = 'task.failed' }")}).rules[0].when_busy, automation::WhenBusy::each);
  EXPECT_EQ(read({rule("{ type = 'task.failed' }", "when_busy = 'skip'")}).rules[0].when_busy,
            automation::WhenBusy::skip);
  const automation::Rule run = read({rule("{ cron = '@daily' }", "timezone = 'Asia/Tokyo'\ntrailing = false",
                                          "{ type = 'run', command = ['curl', 'x'], timeout = '5s' }")})
                                   .rules[0];
  EXPECT_EQ(run.timezone, "Asia/Tokyo");
  EXPECT_FALSE(run.trailing);
  EXPECT_EQ(run.action.command, (Texts{"curl", "x"}));
  EXPECT_EQ(run.action.timeout, std::chrono::seconds(5));
  EXPECT_EQ(read({rule("{ pattern = '*.c' }")}).rules[0].trigger.source, "watch");
  EXPECT_EQ(read({rule("{ source = 'watch' }", "", "{ type = 'notify', message = '{{not a field}} {{type}}' }")})
                .rules[0]
                .action.message,
            "{{not a field}} {{type}}");
}

TEST(Settings, AScheduleSaysWhatBecomesOfTimesThatWereMissed) {
  const std::string daily = "{ cron = '0 3 * * *' }";
  EXPECT_EQ(read({rule(daily)}).rules[0].missed, automation::Missed::skip);
  EXPECT_EQ(read({rule(daily, "missed = 'skip'")}).rules[0].missed, automation::Missed::skip);
  EXPECT_EQ(read({rule(daily, "missed = 'once'")}).rules[0].missed, automation::Missed::once);
}

TEST(Settings, EveryNameOfALanguageServerIsRead) {
  const Settings settings = read({everything});
  ASSERT_EQ(settings.servers.size(), 2U);
  EXPECT_EQ(settings.servers[0].name, "clangd");
  const bridge::Definition& own = settings.servers[1];
  EXPECT_EQ(own.command, Texts{"own-server"});
  EXPECT_EQ(own.files, Texts{"*.own"});
  EXPECT_EQ(own.roots, Texts{".own"});
  EXPECT_EQ(own.env.at("LEVEL"), "3");
  EXPECT_EQ(own.env.at("EMPTY"), "");
  EXPECT_EQ(own.max_memory, std::uint64_t{2} << 30U);
  EXPECT_EQ(own.max_body, 1048576U);
  EXPECT_EQ(own.idle, 90s);
  EXPECT_TRUE(read({"[lsp.clangd]\nidle = \"5m\""}).servers[0].command.empty()) << "a well-known one needs no command";
}

TEST(Settings, LanguageServersAreInTheOrderOfTheirNames) {
  const auto server = [](const std::string& name) { return "[lsp." + name + "]\ncommand = ['x']\nfiles = ['*.x']\n"; };
  const Settings settings = read({server("zz") + server("mm"), server("aa")});
  ASSERT_EQ(settings.servers.size(), 3U);
  EXPECT_EQ(settings.servers[0].name, "aa") << "whatever the order of the files, and in them";
  EXPECT_EQ(settings.servers[1].name, "mm");
  EXPECT_EQ(settings.servers[2].name, "zz");
}

TEST(Settings, TheProjectsFileGoesOverTheUsers) {
  const Settings settings = read({everything, R"(
max_running = 9
[agents.mine]
command = ["other", "{prompt}"]
[watch]
paths = ["lib"]
[[rules]]
id = "new"
trigger = { source = "daemon" }
action = { type = "notify" }
[[rules]]
id = "nightly"
trigger = { source = "schedule", cron = "0 4 * * *" }
action = { type = "notify" }
[lsp.own]
command = ["better"]
files = ["*.better"]
)"});
  EXPECT_EQ(settings.tasks.max_running, 9U);
  EXPECT_EQ(settings.tasks.queue_capacity, 200U);
  EXPECT_EQ(settings.tasks.agents.at("mine").command[0], "other");
  EXPECT_EQ(settings.tasks.agents.size(), 2U);
  EXPECT_EQ(settings.watch.paths, Texts{"lib"});
  EXPECT_EQ(settings.watch.ignore.size(), 3U);
  ASSERT_EQ(settings.rules.size(), 4U);
  EXPECT_EQ(settings.rules[1].id, "nightly");
  EXPECT_EQ(settings.rules[1].trigger.cron, "0 4 * * *");
  EXPECT_EQ(settings.rules[3].id, "new");
  ASSERT_EQ(settings.servers.size(), 2U);
  EXPECT_EQ(settings.servers[1].command, Texts{"better"});
  EXPECT_TRUE(settings.servers[1].roots.empty()) << "replaced as a whole";
}

TEST(Settings, SayHowTasksOfAnAgentAndOfAGroupRun) {
  const Settings settings =
      read({"[groups.night]\nmax_running = 2\npaused = true\n[groups.empty]\n"
            "[agents.claude]\nmax_running = 1\ngroup = 'night'\npriority = -3\nretries = 2\n"
            "time_limit = '1h'\nenv = { A = 'b' }\n"
            "hold = { exit_codes = [75], output = 'limit (?<until>\\d+)', for = '20m' }\n"});
  const task::Agent& agent = settings.tasks.agents.at("claude");
  EXPECT_TRUE(agent.command.empty()) << "as it is built in";
  EXPECT_EQ(agent.max_running, 1U);
  EXPECT_EQ(agent.group, "night");
  EXPECT_EQ(agent.priority, -3);
  EXPECT_EQ(agent.retries, 2U);
  EXPECT_EQ(agent.time_limit, std::chrono::hours(1));
  EXPECT_EQ(agent.env.at("A"), "b");
  ASSERT_TRUE(agent.hold);
  EXPECT_EQ(agent.hold->exit_codes, std::vector<int>{75});
  EXPECT_EQ(agent.hold->length, std::chrono::minutes(20));
  EXPECT_EQ(settings.tasks.groups.at("night").max_running, 2U);
  EXPECT_TRUE(settings.tasks.groups.at("night").paused);
  EXPECT_EQ(settings.tasks.groups.at("empty").max_running, std::nullopt);
}

struct Wrong {
  std::string text;
  std::string place;  // LINE:COLUMN
  std::string told;   // the whole message, or how it begins
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.text; }

class BadSettings : public testing::TestWithParam<Wrong> {};

TEST_P(BadSettings, AreRefusedWithTheirPlace) {
  const std::string error = refused({GetParam().text});
  EXPECT_TRUE(error.starts_with("file1:" + GetParam().place + ": " + GetParam().told)) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

const std::string watch_rule = R"({ source = "watch" })";

INSTANTIATE_TEST_SUITE_P(
    Top, BadSettings,
    testing::Values(
        Wrong{"a = [", "1:6", "this is not TOML: "},
        Wrong{"max_running = 1\nmax_running = 2", "2:15", "this is not TOML: "},
        Wrong{"\xC3\xA9 = 1", "1:1", "this is not TOML: "},
        Wrong{"max_running = 1\n\nmax_runing = 2", "3:1",
              "unknown name 'max_runing' (did you mean 'max_running'?): it must be default_agent, max_running, "},
        Wrong{"\"a\\nb\" = 1", "1:1", "unknown name 'a?b': it must be default_agent"},
        Wrong{"max_running = 0", "1:15", "max_running is 0: it must be a whole number from 1 to 1000"},
        Wrong{"max_running = '3'", "1:15", "max_running is '3': it must be a whole number"},
        Wrong{"max_running = 3.0", "1:15", "max_running is 3: it must be a whole number"},
        Wrong{"keep_days = -1", "1:13", "keep_days is -1: it must be a whole number from 1 to 36500"},
        Wrong{"keep_tasks = 1979-05-27", "1:14", "keep_tasks is a date or time: it must be"},
        Wrong{"queue_capacity = 99999999", "1:18", "queue_capacity is 99999999: it must be"},
        Wrong{"default_agent = ''", "1:17", "default_agent is '': it must be a text that is not empty"},
        Wrong{"default_agent = \"a\\u0000b\"", "1:17", "default_agent is 'a?b': it must be a text"},
        Wrong{"default_agent = 'gpt'", "1:17", "default_agent is 'gpt': it must be claude or shell"},
        Wrong{"agents = 3", "1:10", "agents is 3: it must be a table with a table for each name"},
        Wrong{"watch = ['src']", "1:9",
              "watch is a list: it must be a table with paths, ignore, gitignore or max_chain"},
        Wrong{"[watch]\npaths = 'src'", "2:9", "watch.paths is 'src': it must be a list of texts"},
        Wrong{"[watch]\nignore = ['a', 3]", "2:16", "watch.ignore[1] is 3: it must be a text"},
        Wrong{"[watch]\nignore = ['a', '[']", "2:16", "watch.ignore[1] is '[': it must be a glob such as '*.o' ("},
        Wrong{"[watch]\nignore = ['*.o', '!x']", "2:18",
              "watch.ignore[1] is '!x': it must be a glob of what is left out: nothing is taken back with '!'"},
        Wrong{"[watch]\npaths = ['src', '/abs']", "2:17",
              "watch.paths[1] is '/abs': it must be a path within the project, from its root"},
        Wrong{"[watch]\npaths = ['../x']", "2:10",
              "watch.paths[0] is '../x': it must be a path within the project, without '..'"},
        Wrong{"[watch]\npaths = ['a/../b']", "2:10", "watch.paths[0] is 'a/../b': it must be a path within the"},
        Wrong{"rules = 3", "1:9", "rules is 3: it must be a list of tables, each begun with [[rules]]"}));

INSTANTIATE_TEST_SUITE_P(
    Agents, BadSettings,
    testing::Values(
        Wrong{"[agents]\nx = 'claude'", "2:5",
              "agents.x is 'claude': it must be a table with command, stdin, shell, max_running, "},
        Wrong{"[agents.x]", "1:1", "agents.x.command is missing"},
        Wrong{"[agents.x]\ncomand = ['a']", "2:1", "unknown name 'agents.x.comand' (did you mean 'command'?)"},
        Wrong{"[agents.x]\ncommand = ['x']\nmemory = '1M'", "3:10", "agents.x.memory is '1M': it must be"},
        Wrong{"[agents.x]\ncommand = ['x']\nprocesses = 0", "3:13", "agents.x.processes is 0: it must be"},
        Wrong{"[agents.x]\ncommand = ['x']\ncpu = 'all'", "3:7",
              "agents.x.cpu is 'all': it must be a number from 0.01"},
        Wrong{"[agents.x]\ncommand = 'claude'", "2:11", "agents.x.command is 'claude': it must be a list of texts"},
        Wrong{"[agents.claude]\nmax_running = 0", "2:15", "agents.claude.max_running is 0: it must be a whole number"},
        Wrong{"[agents.shell]\ngroup = 'g'", "2:9", "agents.shell.group is 'g': it must be default"},
        Wrong{"[agents.shell]\nhold = { for = '1m' }", "2:8", "agents.shell.hold.exit_codes is missing"},
        Wrong{"[agents.shell]\nhold = { exit_codes = [256] }", "2:23",
              "agents.shell.hold.exit_codes is a list: it must be a list of exit codes"},
        Wrong{"[agents.shell]\nhold = { output = '(' }", "2:19",
              "agents.shell.hold.output is '(': it must be a regular expression of RE2 ("},
        Wrong{"[agents.shell]\ntime_limit = 0", "2:14", "agents.shell.time_limit is 0: it must be longer"},
        Wrong{"[groups.g]\nmax_runing = 1", "2:1", "unknown name 'groups.g.max_runing' (did you mean"},
        Wrong{"[groups.g]\npaused = 1", "2:10", "groups.g.paused is 1: it must be true or false"},
        Wrong{"[agents.x]\ncommand = []", "2:11", "agents.x.command is a list: it must be a program and its arguments"},
        Wrong{"[agents.x]\ncommand = ['']", "2:12", "agents.x.command[0] is ''"},
        Wrong{"[agents.x]\nstdin = 'yes'\ncommand = ['a', '{prompt}']", "2:9",
              "agents.x.stdin is 'yes': it must be prompt"},
        Wrong{"[agents.'']\ncommand = ['a', '{prompt}']", "1:9", "agent '': a name has 1 to 64 bytes"},
        Wrong{"[agents.x]\ncommand = ['a', '{prompt}']\nshell = 'yes'", "3:9",
              "agents.x.shell is 'yes': it must be true"},
        Wrong{"[agents.x]\ncommand = ['a', '{prompt}']\nsheli = true", "3:1", "unknown name 'agents.x.sheli'"}));

INSTANTIATE_TEST_SUITE_P(
    Daemon, BadSettings,
    testing::Values(Wrong{"daemon = 1", "1:10", "daemon is 1: it must be a table with state or autostart"},
                    Wrong{"[daemon]\nstate = 'here'", "2:9", "daemon.state is 'here': it must be project or user"},
                    Wrong{"[daemon]\nautostart = 1", "2:13", "daemon.autostart is 1: it must be true or false"}));

INSTANTIATE_TEST_SUITE_P(
    Rules, BadSettings,
    testing::Values(
        Wrong{"[[rules]]\nid = 'r'", "1:1", "rules.trigger is missing"},
        Wrong{"[[rules]]\ntrigger = { source = 'watch' }\naction = { type = 'notify' }", "1:1", "rules.id is missing"},
        Wrong{"[[rules]]\nid = 'r'\ntrigger = { source = 'watch' }", "1:1", "rules.action is missing"},
        Wrong{rule("{}"), "3:11", "trigger is empty: it needs source, type, pattern or cron"},
        Wrong{rule("'watch'"), "3:11", "trigger is 'watch': it must be a table with source, type, pattern or cron"},
        Wrong{rule("{ source = 'email' }"), "3:22",
              "trigger.source is 'email': it must be watch, schedule, task or daemon"},
        Wrong{rule("{ type = 'file.changed' }"), "3:20",
              "trigger.type is 'file.changed': it must be file.create, file"},
        Wrong{rule("{ source = 'watch', type = 'task.failed' }"), "3:38",
              "trigger.type is 'task.failed': it must be file.create, file.modify or file.delete"},
        Wrong{rule("{ source = 'schedule', type = 'x', cron = '* * * * *' }"), "3:41",
              "trigger.type is 'x': it must be"},
        Wrong{rule("{ source = 'schedule' }"), "3:11", "trigger.cron is missing"},
        Wrong{rule("{ cron = '61 * * * *' }"), "3:20",
              "trigger.cron is '61 * * * *': it must be @daily, or minute, hour"},
        Wrong{rule("{ source = 'watch', cron = '1 * * * *' }"), "3:38", "trigger.cron is '1 * * * *': it must be left"},
        Wrong{rule("{ source = 'task', pattern = '*' }"), "3:40", "trigger.pattern is '*': it must be left out: only"},
        Wrong{rule("{ pattern = 'a[' }"), "3:23", "trigger.pattern is 'a[': it must be a glob such as"},
        Wrong{rule("{ pattern = 'a', glob = 'b' }"), "3:28", "unknown name 'trigger.glob'"},
        Wrong{rule(watch_rule, "cooldown = 'soon'"), "5:12", "rules.cooldown is 'soon': it must be 500ms, 10s, 5m, 1h"},
        Wrong{rule(watch_rule, "cooldown = -1"), "5:12", "rules.cooldown is -1: it must be"},
        Wrong{rule(watch_rule, "enabled = 'no'"), "5:11", "rules.enabled is 'no': it must be true or false"},
        Wrong{rule(watch_rule, "requires_aproval = true"), "5:1",
              "unknown name 'rules.requires_aproval' (did you mean 'requires_approval'?)"},
        Wrong{rule(watch_rule) + rule(watch_rule), "6:6", "rule 'r' is there twice"},
        Wrong{rule(watch_rule, "", "{ type = 'webhook', url = 'x' }"), "4:19",
              "action.type is 'webhook': it must be agent, notify or run"},
        Wrong{rule(watch_rule, "", "{ prompt = 'x' }"), "4:10", "action.type is missing"},
        Wrong{rule(watch_rule, "", "{ type = 'agent' }"), "4:10", "action.prompt is missing"},
        Wrong{rule(watch_rule, "", "{ type = 'notify', prompt = 'x' }"), "4:38",
              "action.prompt is 'x': it must be left out for type 'notify'"},
        Wrong{rule(watch_rule, "", "{ type = 'agent', prompt = 'x', agent = 'gpt' }"), "4:50",
              "action.agent is 'gpt': it must be claude or shell"},
        Wrong{rule(watch_rule, "", "{ type = 'agent', agent = 'shell', prompt = 'cat {{payload.path}}' }"), "4:54",
              "action.prompt has a template, and the agent 'shell' would take what comes in for commands"},
        Wrong{rule(watch_rule, "", "{ type = 'agent', prompt = 'x {{ payload.file }}' }"), "4:37",
              "action.prompt is 'x {{ payload.file }}': it must be without {{payload.file}}: the rule's events have "
              "source, type, payload.path or payload.paths"},
        Wrong{
            rule("{ source = 'daemon' }", "", "{ type = 'notify', message = '{{payload.time}}' }"), "4:39",
            "action.message is '{{payload.time}}': it must be without {{payload.time}}: the rule's events have source"},
        Wrong{rule("{ pattern = '*.c' }", "", "{ type = 'notify', message = '{{path}}' }"), "4:39",
              "action.message is '{{path}}': it must be without {{path}}"},
        Wrong{rule(watch_rule, "", "{ type = 'run' }"), "4:10", "action.command is missing"},
        Wrong{rule(watch_rule, "", "{ type = 'run', command = [] }"), "4:36", "action.command is a list: it must be a"},
        Wrong{rule(watch_rule, "", "{ type = 'run', command = ['x'], timeout = '2h' }"), "4:53",
              "action.timeout is '2h': it must be more than nothing, and an hour at most"},
        Wrong{rule(watch_rule, "when_busy = 'wait'"), "5:13",
              "rules.when_busy is 'wait': it must be queue, skip or restart"},
        Wrong{rule(watch_rule, "when_busy = 'skip'", "{ type = 'notify' }"), "5:13",
              "rules.when_busy is 'skip': it must be left out"},
        Wrong{rule(watch_rule, "timezone = 'UTC'"), "5:12", "rules.timezone is 'UTC': it must be left out"},
        Wrong{rule("{ cron = '@daily' }", "timezone = 'Europe/Berlln'"), "5:12",
              "rules.timezone is 'Europe/Berlln': it must be the name of a time zone"},
        Wrong{rule("{ cron = '@fortnightly' }"), "3:20", "trigger.cron is '@fortnightly': it must be @daily"},
        Wrong{rule(watch_rule, "conditions = [ { field = 'payload.paths', operator = 'exists' } ]"), "5:26",
              "conditions.field is 'payload.paths': it must be source, type or payload.path"},
        Wrong{rule(watch_rule, "missed = 'once'"), "5:10", "rules.missed is 'once': it must be left out: it is for"},
        Wrong{rule("{ cron = '1 * * * *' }", "missed = 'all'"), "5:10",
              "rules.missed is 'all': it must be skip or once"},
        Wrong{"[agents.x]\ncommand = ['bash', '-lc', '{prompt}']\n" +
                  rule(watch_rule, "", "{ type = 'agent', agent = 'x', prompt = '{{payload.path}}' }"),
              "6:50", "action.prompt has a template, and the agent 'x' would take what comes in for commands"},
        Wrong{"[agents.x]\ncommand = ['x', '{prompt}']\nshell = true\n" +
                  rule(watch_rule, "", "{ type = 'agent', agent = 'x', prompt = '{{payload.path}}' }"),
              "7:50", "action.prompt has a template, and the agent 'x' would take what comes in for commands"},
        Wrong{"[agents.claude]\ncommand = ['sh', '-c', '{prompt}']\n" +
                  rule(watch_rule, "", "{ type = 'agent', prompt = '{{payload.path}}' }"),
              "6:37", "action.prompt has a template, and the agent 'claude' would take what comes in for commands"},
        Wrong{"default_agent = 'shell'\n" + rule(watch_rule, "", "{ type = 'agent', prompt = '{{payload.path}}' }"),
              "5:37", "action.prompt has a template"}));

std::string condition(const std::string& text) { return rule(watch_rule, "conditions = [ " + text + " ]"); }

INSTANTIATE_TEST_SUITE_P(
    Conditions, BadSettings,
    testing::Values(
        Wrong{rule(watch_rule, "conditions = 3"), "5:14", "rules.conditions is 3: it must be a list of tables"},
        Wrong{condition("{ field = 'path', operator = 'exists' }"), "5:26",
              "conditions.field is 'path': it must be source, type or payload.path, which the rule's events have"},
        Wrong{condition("{ field = 'payload.exitCode', operator = 'exists' }"), "5:26",
              "conditions.field is 'payload.exitCode': it must be source, type or payload.path"},
        Wrong{rule("{ type = 'task.failed' }", "conditions = [ { field = 'payload.path', operator = 'exists' } ]"),
              "5:26", "conditions.field is 'payload.path': it must be source, type, payload.taskId, payload.agent"},
        Wrong{condition("{ operator = 'exists' }"), "5:16", "conditions.field is missing"},
        Wrong{condition("{ field = 'type' }"), "5:16", "conditions.operator is missing"},
        Wrong{
            condition("{ field = 'type', operator = 'equals', value = 1 }"), "5:45",
            "conditions.operator is 'equals': it must be eq, neq, contains, matches, gt, lt, gte, lte, exists or not"},
        Wrong{condition("{ field = 'type', operator = 'eq' }"), "5:16", "conditions.value is missing"},
        Wrong{condition("{ field = 'type', operator = 'eq', value = [1] }"), "5:59",
              "conditions.value is a list: it must be a text, a number, true or false"},
        Wrong{condition("{ field = 'type', operator = 'gt', value = '1' }"), "5:59",
              "conditions.value is '1': it must be a num"},
        Wrong{condition("{ field = 'type', operator = 'contains', value = 1 }"), "5:65",
              "conditions.value is 1: it must be a t"},
        Wrong{condition("{ field = 'type', operator = 'matches', value = '(' }"), "5:64",
              "conditions.value is '(': it must be a regular expression ("}));

INSTANTIATE_TEST_SUITE_P(
    Servers, BadSettings,
    testing::Values(
        Wrong{"[lsp.own]\nfiles = ['*.x']", "1:1", "lsp.own.command is missing"},
        Wrong{"[lsp.own]\ncommand = ['x']", "1:1", "lsp.own.files is missing"},
        Wrong{"[lsp.own]\ncommand = ['x']\nfiles = ['*.x', 'bad[']", "3:17",
              "lsp.own.files[1] is 'bad[': it must be a glob such as '*.o'"},
        Wrong{"[lsp.own]\ncommand = ['x']\nfiles = []", "3:9",
              "lsp.own.files is a list: it must be globs of the files that it is asked about"},
        Wrong{"[lsp.own]\nfiles = ['*.x']\ncommand = []", "3:11",
              "lsp.own.command is a list: it must be a program and its arguments"},
        Wrong{"[lsp.clangd]\nmax_memory = '2T'", "2:14", "lsp.clangd.max_memory is '2T': it must be a number of bytes"},
        Wrong{"[lsp.clangd]\nmax_memory = -1", "2:14", "lsp.clangd.max_memory is -1"},
        Wrong{"[lsp.clangd]\nmax_memory = '99999999999G'", "2:14", "lsp.clangd.max_memory is '99999999999G'"},
        Wrong{"[lsp.clangd]\nmax_body = 1", "2:12", "lsp.clangd.max_body is 1: it must be"},
        Wrong{"[lsp.clangd]\nidle = true", "2:8", "lsp.clangd.idle is true: it must be 500ms"},
        Wrong{"[lsp.clangd]\nenv = ['A=B']", "2:7", "lsp.clangd.env is a list: it must be a table of texts"},
        Wrong{"[lsp.clangd.env]\nA = 3", "2:5", "lsp.clangd.env.A is 3: it must be a text"},
        Wrong{"[lsp.clangd.env]\n'A=B' = 'c'", "2:9",
              "lsp.clangd.env.A=B is 'c': it must be a text, named without '='"}));

TEST(Settings, TheFirstFaultOfAFileIsTold) {
  EXPECT_TRUE(refused({"max_running = 0\n[watch]\nzzz = 1\n[agents.a]\n"}).starts_with("file1:1:15: "));
  EXPECT_TRUE(refused({"keep_days = 0\nmax_running = 0\n"}).starts_with("file1:1:13: "));
  EXPECT_TRUE(refused({"", "keep_days = 0"}).starts_with("file2:1:13: "));
}

TEST(Settings, DepthIsBounded) {
  std::string names = "a";
  for (int i = 0; i < 100'000; ++i) names += ".a";
  EXPECT_EQ(refused({"\n" + names + " = 1"}), "file1:2:2002: this line has more than 1000 dots");
  EXPECT_TRUE(refused({"[" + names.substr(0, 999) + "]"}).starts_with("file1:1:2: unknown name 'a'"));
  EXPECT_TRUE(refused({"a = " + std::string(100'000, '[')}).find("this is not TOML") != std::string::npos);
}

TEST(Settings, ManyRulesReplaceEachOtherWhereTheyStand) {
  const auto rules = [](int first, int behind, const std::string& message) {
    std::string text;
    for (int i = first; i < behind; ++i) {
      text += "[[rules]]\nid='r" + std::to_string(i) + "'\ntrigger={cron='0 0 1 1 *'}\n" +
              "action={type='notify',message='" + message + "'}\n";
    }
    return text;
  };
  const std::vector<automation::Rule> read_rules = read({rules(0, 1000, "old"), rules(500, 1500, "new")}).rules;
  ASSERT_EQ(read_rules.size(), 1500U);
  for (std::size_t i = 0; i < read_rules.size(); ++i) {
    EXPECT_EQ(read_rules[i].id, "r" + std::to_string(i));
    EXPECT_EQ(read_rules[i].action.message, i < 500 ? "old" : "new");
  }
  EXPECT_EQ(refused({rules(0, 500, "m") + rules(499, 500, "m")}).find("file1:2002:4: rule 'r499' is there twice"), 0U);
}

TEST(Settings, AgentsMayComeFromTheOtherFile) {
  const std::string agent = "[agents.far]\ncommand = ['far', '{prompt}']\n";
  EXPECT_EQ(read({agent, "default_agent = 'far'"}).tasks.default_agent, "far");
  EXPECT_EQ(refused({"default_agent = 'fra'", agent}),
            "file1:1:17: default_agent is 'fra': it must be claude, shell or far");
}

/// Files in a folder of their own.
class SettingsFiles : public testing::Test {
 protected:
  SettingsFiles() {
    std::string name = testing::TempDir() + "duet-settings-XXXXXX";
    top_ = fs::canonical(mkdtemp(name.data()));
    fs::create_directories(top_ / "project");
  }
  ~SettingsFiles() override { fs::remove_all(top_); }

  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((top_ / name).parent_path());
    std::ofstream(top_ / name) << text;
    EXPECT_EQ(chmod((top_ / name).c_str(), 0644), 0);
    return top_ / name;
  }
  std::variant<Settings, SettingsError> settings(const SettingsPlaces& places = {}) const {
    return read_settings(find_project(top_ / "project"), places);
  }
  std::string error(const SettingsPlaces& places = {}) const {
    const auto read = settings(places);
    if (const auto* error = std::get_if<SettingsError>(&read)) return error->text;
    const std::string& note = std::get<Settings>(read).note;  // what is wrong with the project's file
    return note.empty() ? "accepted" : note;
  }

  fs::path top_;
};

TEST_F(SettingsFiles, AreNotNeeded) {
  EXPECT_TRUE(std::get<Settings>(settings({.user = top_ / "nothing/config.toml"})).files.empty());
}

TEST_F(SettingsFiles, OfTheUserAndOfTheProjectAreRead) {
  const fs::path user = write("user.toml", "max_running = 7\nkeep_days = 8");
  const fs::path own = write("project/.duet-rpc.toml", "max_running = 6");
  const Settings both = std::get<Settings>(settings({.user = user}));
  EXPECT_EQ(both.tasks.max_running, 6U);
  EXPECT_EQ(both.tasks.keep_days, 8U);
  EXPECT_EQ(both.files, (Texts{user, own}));
}

TEST_F(SettingsFiles, AnotherFileStandsForAllOfThem) {
  const fs::path user = write("user.toml", "nonsense");
  write("project/.duet-rpc.toml", "nonsense");
  const fs::path only = write("only.toml", "max_running = 5");
  EXPECT_EQ(std::get<Settings>(settings({.only = only, .user = user})).tasks.max_running, 5U);
  EXPECT_EQ(error({.only = top_ / "missing.toml"}),
            (top_ / "missing.toml").string() + ": there is no such file, but DUET_RPC_CONFIG names it");
}

TEST_F(SettingsFiles, ErrorsNameTheFile) {
  const fs::path own = write("project/.duet-rpc.toml", "\nmax_running = 0");
  EXPECT_TRUE(error().starts_with(own.string() + ":2:15: max_running is 0"));
}

TEST_F(SettingsFiles, ThatOthersCouldHaveWrittenAreRefused) {
  const fs::path own = write("project/.duet-rpc.toml", "");
  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    ASSERT_EQ(chmod(own.c_str(), mode), 0);
    EXPECT_EQ(error(), own.string() +
                           ": this settings file is not used: others may write to it: take that away with "
                           "chmod go-w");
  }
  ASSERT_EQ(chmod(own.c_str(), 0444), 0);
  EXPECT_EQ(error(), "accepted");
  if (geteuid() != 0) return;  // only root can give a file away
  ASSERT_EQ(chown(own.c_str(), 4242, 4242), 0);
  EXPECT_EQ(error(), own.string() +
                         ": this settings file is not used: it belongs to another user: take it over with "
                         "chown");
}

TEST_F(SettingsFiles, ThatAreNoFilesAreRefused) {
  const fs::path own = top_ / "project/.duet-rpc.toml";
  fs::create_directory(own);
  EXPECT_EQ(error(), own.string() + ": this settings file is not used: it is not a plain file");
  fs::remove(own);
  ASSERT_EQ(mkfifo(own.c_str(), 0600), 0);
  EXPECT_EQ(error(), own.string() + ": this settings file is not used: it is not a plain file");
  fs::remove(own);
  fs::create_symlink(own, own);
  EXPECT_TRUE(error().starts_with(own.string() + ": this settings file is not used: it cannot be opened: "));
}

TEST_F(SettingsFiles, HaveAtMostAMegabyte) {
  write("project/.duet-rpc.toml", std::string(1'000'000, '#'));
  EXPECT_EQ(error(), "accepted");
  write("project/.duet-rpc.toml", std::string((1U << 20U) + 1, '#'));
  EXPECT_TRUE(error().ends_with("it is larger than a megabyte"));
}

RC_GTEST_PROP(Settings, AnyBytesGiveAnAnswer, (const std::string& text)) { RC_ASSERT(!refused({text}).empty()); }

RC_GTEST_PROP(Settings, AnyDamageGivesAnAnswerOnOneLine, ()) {
  std::string text = everything;
  const auto edits = *rc::gen::inRange<std::size_t>(1, 8);
  for (std::size_t i = 0; i < edits; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto length = *rc::gen::inRange<std::size_t>(0, 6);
    text.replace(at, length,
                 *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\"'[]{}=.,\n#\\0-1ae \x80\xff"))));
    if (text.empty()) text = "\n";
  }
  const std::string answer = refused({text});
  RC_ASSERT(!answer.empty());
  RC_ASSERT(answer.find('\n') == std::string::npos);
}

RC_GTEST_PROP(Settings, AnyTreeOfTheRightNamesGivesAnAnswer, ()) {
  const std::vector<std::string> names{"default_agent", "agents", "rules",      "lsp",   "watch",      "trigger",
                                       "action",        "id",     "command",    "stdin", "pattern",    "cron",
                                       "operator",      "value",  "type",       "env",   "conditions", "field",
                                       "prompt",        "files",  "max_memory", "idle",  "x"};
  const std::vector<std::string> values{"1",   "'x'",     "true",       "[]",      "{}",      "[{}]",    "['a']", "1.5",
                                        "nan", "'agent'", "1979-05-27", "'watch'", "'{{a}}'", "'shell'", "[[[]]]"};
  const auto lines =
      *rc::gen::container<std::vector<std::tuple<std::string, std::string, std::string, int>>>(rc::gen::tuple(
          rc::gen::elementOf(names), rc::gen::elementOf(names), rc::gen::elementOf(values), rc::gen::inRange(0, 4)));
  std::string text;
  for (const auto& [first, second, value, form] : lines) {
    if (form == 0) text += first + " = " + value + "\n";
    if (form == 1) text += first + "." + second + " = " + value + "\n";
    if (form == 2) text += "[" + first + "." + second + "]\n";
    if (form == 3) text += "[[" + first + "]]\n";
  }
  RC_ASSERT(refused({text}).find('\n') == std::string::npos);
}

}  // namespace
}  // namespace duet::app
