#include "bridge/bridge.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/examining.h"
#include "bridge/fake_server_test.h"

namespace duet::bridge {
namespace {

using boost::json::object;
using boost::json::value;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class BridgeTest : public FakeServerTest {
 protected:
  void make(std::vector<std::string> options = {}) { make_of({fake(std::move(options))}); }
  void make_of(std::vector<Definition> definitions) {
    bridge = std::make_unique<Bridge>(loop, log.log(), settings, folder.path(), std::move(definitions));
  }

  using Outcome = std::shared_ptr<std::optional<CallResult>>;
  static Bridge::Done into(const Outcome& outcome) {
    return [outcome](CallResult result) {
      EXPECT_FALSE(*outcome) << "a second outcome";
      *outcome = std::move(result);
    };
  }
  static Outcome outcome() { return std::make_shared<std::optional<CallResult>>(); }

  CallResult await(const Outcome& outcome) {
    EXPECT_TRUE(turn_until([&] { return outcome->has_value(); }));
    return outcome->value_or(CallResult());
  }

  object value_of(const CallResult& result) {
    EXPECT_FALSE(result.error) << result.error->message();
    return result.error ? object() : rpc::parse_value(result.text).as_object();
  }

  std::string cause_of(const CallResult& result) {
    if (!result.error) return "none";
    const value data = rpc::parse_value(result.error->data());
    const value* cause = data.as_object().if_contains("cause");
    return cause != nullptr ? std::string(cause->as_string()) : "none";
  }

  CallResult ask(Question question, const FilePlace& where) {
    const Outcome out = outcome();
    bridge->ask(question, where, into(out));
    return await(out);
  }
  std::string hover(const std::string& path, std::size_t line, std::size_t column) {
    const object answer = value_of(ask(Question::hover, {path, line, column}));
    const value* contents = answer.if_contains("contents");
    return contents != nullptr && contents->is_string() ? std::string(contents->as_string()) : "";
  }
  /// In a document that is new each time; once of a few tries is enough, since a busy machine may be slow.
  base::Duration quickest_hover() {
    base::Duration quickest = base::Duration::max();
    for (int tries = 0; tries < 10 && quickest >= time_to_examine; ++tries) {
      const base::TimePoint before = loop.now();
      hover(write("new" + std::to_string(tries) + ".txt", "text"), 1, 1);
      quickest = std::min(quickest, loop.now() - before);
    }
    return quickest;
  }
  object diagnostics(const std::string& path, base::Duration wait = seconds(40)) {
    const Outcome out = outcome();
    bridge->ask_diagnostics({.path = path}, wait, into(out));
    return value_of(await(out));
  }
  CallResult request(const std::string& method, const std::string& params, std::optional<std::string> server = "fake") {
    const Outcome out = outcome();
    bridge->request({.server = std::move(server), .method = method, .params = params, .patience = seconds(30)},
                    into(out));
    return await(out);
  }
  CallResult notify(std::uint64_t client, const std::string& method, const std::string& params) {
    const Outcome out = outcome();
    bridge->notify(client, {.method = method, .params = params}, into(out));
    return await(out);
  }
  std::string uri(const std::string& name) const { return "file://" + folder.file(name); }
  std::string state() const { return std::string(bridge->list().at(0).at("state").as_string()); }

  /// The guard tells the pid, the server itself that it is ready: either may be heard first.
  void kill_server(std::size_t index = 0) {
    const auto pid = [this, index] {
      const object server = bridge->list().at(index).as_object();
      return server.contains("pid") ? static_cast<pid_t>(server.at("pid").as_int64()) : 0;
    };
    ASSERT_TRUE(turn_until([&] { return pid() != 0; }));
    kill(pid(), SIGKILL);
  }

  std::unique_ptr<Bridge> bridge;
};

TEST_F(BridgeTest, CountsAsPeopleDoInEveryEncoding) {
  const std::string path = write("a.txt", "one\n\xF0\x9F\x98\x80\xC3\xA4 two TARGET\n");
  struct Row {
    std::string encoding;
    std::string character;
  };
  for (const Row& row : {Row{"utf-8", "6"}, Row{"utf-16", "3"}, Row{"utf-32", "2"}}) {
    make({"--encoding", row.encoding});
    EXPECT_EQ(hover(path, 2, 3), "1|\xF0\x9F\x98\x80\xC3\xA4 two TARGET|" + row.character);
    const object found = value_of(ask(Question::definition, {path, 1, 1}));
    const value& place = found.at("places").at(0);
    EXPECT_EQ(place.at("file"), value(path));
    EXPECT_EQ(place.at("line"), 2);
    EXPECT_EQ(place.at("column"), 8);
    EXPECT_EQ(place.at("endColumn"), 14);
    EXPECT_EQ(place.at("text"), "\xF0\x9F\x98\x80\xC3\xA4 two TARGET");
  }
}

TEST_F(BridgeTest, UnderstandsTheEncodingOfOldClangd) {
  make({"--clangd-encoding", "utf-8"});
  EXPECT_EQ(hover(write("a.txt", "\xC3\xA4x"), 1, 2), "1|\xC3\xA4x|2");
}

TEST_F(BridgeTest, TakesTheFirstCharacterThatIsNoBlankWithoutAColumn) {
  make();
  EXPECT_EQ(value_of(ask(Question::hover, {write("a.txt", "\t  x\n"), 1, std::nullopt})).at("contents"), "1|\t  x|3");
}

TEST_F(BridgeTest, RefusesPlacesThatAreNotThere) {
  make();
  const std::string path = write("a.txt", "ab\n");
  for (const FilePlace& where :
       {FilePlace{path, 0, 1}, FilePlace{path, 3, 1}, FilePlace{path, 1, 0}, FilePlace{path, 1, 4},
        FilePlace{folder.file("none.txt"), 1, 1}, FilePlace{folder.path(), 1, 1}}) {
    if (where.path == folder.path()) {
      EXPECT_THROW(ask(Question::hover, where), rpc::Error);
    } else {
      EXPECT_EQ(ask(Question::hover, where).error.value().code(), rpc::code::invalid_params);
    }
  }
}

TEST_F(BridgeTest, WorksWithOddNames) {
  make();
  for (const char* name : {"a b.txt", "50%.txt", "#1?.txt", "\xE4\xBD\xA0.txt", "\xFF\xFE.txt", "%41.txt"}) {
    const std::string path = write(name, "TARGET\n");
    const object found = value_of(ask(Question::definition, {path, 1, 1}));
    const std::string file(found.at("places").at(0).at("file").as_string());
    EXPECT_EQ(file.starts_with("file://") ? file.substr(file.rfind('/')) : file,
              name[0] == '\xFF' ? "/%FF%FE.txt" : path);
  }
}

TEST_F(BridgeTest, TellsTheServerOfAChangeOnDiskBeforeTheNextQuestion) {
  make();
  const std::string path = write("a.txt", "one");
  EXPECT_EQ(hover(path, 1, 1), "1|one|0");
  EXPECT_EQ(hover(path, 1, 1), "1|one|0");
  write("a.txt", "two");
  EXPECT_EQ(hover(path, 1, 1), "2|two|0");
  std::filesystem::remove(path);
  EXPECT_TRUE(ask(Question::hover, {path, 1, 1}).error);
  write("a.txt", "new");
  EXPECT_EQ(hover(path, 1, 1), "3|new|0");
}

TEST_F(BridgeTest, TellsTheServerOfAChangeInAnyOpenDocument) {
  make();
  const std::string path = write("a.txt", "one");
  hover(write("b.txt", "two"), 1, 1);
  hover(path, 1, 1);
  write("b.txt", "changed");
  hover(path, 1, 1);
  const std::vector<object> messages = sent();
  const object& change = messages.at(messages.size() - 3);
  EXPECT_EQ(change.at("method"), "textDocument/didChange");
  EXPECT_EQ(change.at("params").at("textDocument").at("uri"), value(uri("b.txt")));
  EXPECT_EQ(messages.back().at("method"), "textDocument/hover");
}

TEST_F(BridgeTest, BelievesAClientMoreThanTheDisk) {
  make();
  const std::string path = write("a.txt", "disk");
  EXPECT_EQ(hover(path, 1, 1), "1|disk|0");
  const std::string document =
      R"({"textDocument":{"uri":")" + uri("a.txt") + R"(","languageId":"x","version":9,"text":"mine\n"}})";
  notify(1, "textDocument/didOpen", document);
  EXPECT_EQ(hover(path, 1, 1), "2|mine|0");
  write("a.txt", "changed on disk");
  EXPECT_EQ(hover(path, 1, 1), "2|mine|0");
  notify(
      1, "textDocument/didChange",
      R"({"textDocument":{"uri":")" + uri("a.txt") +
          R"(","version":10},"contentChanges":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":3}},"text":"\u00e4"}]})");
  EXPECT_EQ(hover(path, 1, 1),
            "3|m\xC3\xA4"
            "e|0");
  notify(1, "textDocument/didClose", R"({"textDocument":{"uri":")" + uri("a.txt") + R"("}})");
  EXPECT_EQ(hover(path, 1, 1), "4|changed on disk|0");
}

TEST_F(BridgeTest, ForgetsWhatAClientSaidWhenItIsGone) {
  make();
  const std::string path = write("a.txt", "disk");
  notify(5, "textDocument/didOpen", R"({"textDocument":{"uri":")" + uri("a.txt") + R"(","text":"mine"}})");
  EXPECT_EQ(hover(path, 1, 1), "1|mine|0");
  bridge->client_gone(4);
  EXPECT_EQ(hover(path, 1, 1), "1|mine|0");
  bridge->client_gone(5);
  EXPECT_EQ(hover(path, 1, 1), "2|disk|0");
}

TEST_F(BridgeTest, OpensTheDocumentOfARawRequest) {
  make();
  write("a.txt", "text");
  const std::string params =
      R"({"textDocument":{"uri":")" + uri("a.txt") + R"("},"position":{"character":1,"line":0}})";
  EXPECT_EQ(request("textDocument/hover", params, std::nullopt).text, R"({"contents": "1|text|1"})");
  write("a.txt", "more");
  EXPECT_EQ(request("textDocument/hover", params, std::nullopt).text, R"({"contents": "2|more|1"})");
}

TEST_F(BridgeTest, ChoosesTheOnlyServerForARequestWithoutADocument) {
  make_of({fake(), fake({}, "other")});
  EXPECT_THROW(request("fake/echo", "[1]", std::nullopt), rpc::Error);
  EXPECT_EQ(request("fake/echo", "[1]", "other").text, "[1]");
  EXPECT_EQ(request("fake/echo", "[2]", std::nullopt).text, "[2]");
  EXPECT_EQ(request("fake/echo", "[3]", "fake").text, "[3]");
  EXPECT_THROW(request("fake/echo", "[4]", std::nullopt), rpc::Error);
  EXPECT_THROW(request("fake/echo", "[4]", "nobody"), rpc::Error);
}

TEST_F(BridgeTest, KeepsTheHandshakeToItself) {
  make();
  for (const char* method : {"initialize", "shutdown"}) EXPECT_THROW(request(method, "{}"), rpc::Error);
  for (const char* method : {"initialized", "exit", "$/cancelRequest"})
    EXPECT_THROW(notify(1, method, "{}"), rpc::Error);
}

TEST_F(BridgeTest, RefusesAFileThatNoServerIsSetFor) {
  make();
  try {
    ask(Question::hover, {folder.file("a.unknown"), 1, 1});
    FAIL();
  } catch (const rpc::Error& error) {
    EXPECT_EQ(error.code(), code::unavailable);
    EXPECT_NE(error.data().find("no-server"), std::string::npos);
  }
}

TEST_F(BridgeTest, HoldsQuestionsBackUntilTheServerIsReady) {
  make({"--initialize-delay", "0.5"});
  const std::string path = write("a.txt", "one");
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 10; ++i) {
    outcomes.push_back(outcome());
    bridge->ask(Question::hover, {path, 1, 1}, into(outcomes.back()));
  }
  for (const Outcome& each : outcomes) EXPECT_EQ(value_of(await(each)).at("contents"), "1|one|0");
  EXPECT_EQ(sent_methods()[2], "textDocument/didOpen");
}

TEST_F(BridgeTest, CountsTheTimeThatARequestWaitsForItsServer) {
  make({"--initialize-delay", "1"});
  const Outcome out = outcome();
  bridge->request({.server = "fake", .method = "fake/echo", .params = "[1]", .patience = milliseconds(100)}, into(out));
  EXPECT_EQ(cause_of(await(out)), "timeout");
  EXPECT_EQ(request("fake/echo", "[2]").text, "[2]");
  EXPECT_EQ(sent_methods(), (std::vector<std::string>{"initialize", "initialized", "fake/echo"}));
}

TEST_F(BridgeTest, GivesAServerTimeToLookAtANewDocument) {
  make();
  request("fake/echo", "[1]");
  EXPECT_LT(quickest_hover(), time_to_examine);
  const std::vector<std::string> methods = sent_methods();
  EXPECT_EQ(methods.back(), "textDocument/hover");
}

TEST_F(BridgeTest, WaitsOnlyOnceForAServerThatPublishesNothing) {
  make({"--never-publish"});
  request("fake/echo", "[1]");
  const base::TimePoint before = loop.now();
  hover(write("a.txt", "one"), 1, 1);
  EXPECT_GE(loop.now() - before, time_to_examine);
  EXPECT_LT(quickest_hover(), time_to_examine);
}

TEST_F(BridgeTest, FailsAQuestionThatWaitsForADocumentWhenTheServerDies) {
  make({"--never-publish"});
  request("fake/echo", "[1]");
  const Outcome out = outcome();
  bridge->ask(Question::hover, {write("a.txt", "one"), 1, 1}, into(out));
  EXPECT_EQ(cause_of(request("fake/crash", "{}")), "crashed");
  EXPECT_EQ(cause_of(await(out)), "crashed");
}

TEST_F(BridgeTest, TakesNoMoreThanAServerReads) {
  settings.most_waiting = 100'000;
  make();
  request("fake/echo", "[1]");
  const Outcome stuck = outcome();
  bridge->request({.server = "fake", .method = "fake/close", .params = "{}", .patience = seconds(30)}, into(stuck));
  const std::string large = R"({"text":")" + std::string(90'000, 'x') + "\"}";
  std::string last;
  for (int i = 0; i < 10 && last.empty(); ++i) {
    const CallResult result = notify(1, "fake/notice", large);
    if (result.error) last = cause_of(result);
  }
  EXPECT_EQ(last, "overloaded");
}

TEST_F(BridgeTest, ComesBackAfterACrashWithItsDocuments) {
  make();
  const std::string path = write("a.txt", "one");
  hover(path, 1, 1);
  write("b.txt", "b");
  hover(folder.file("b.txt"), 1, 1);
  const Outcome lost = outcome();
  bridge->request({.server = "fake", .method = "fake/never", .params = "{}", .patience = seconds(30)}, into(lost));
  request("fake/echo", "[1]");
  kill_server();
  EXPECT_EQ(cause_of(await(lost)), "crashed");
  EXPECT_EQ(state(), "restarting");
  write("a.txt", "changed while it was down");
  EXPECT_EQ(hover(folder.file("b.txt"), 1, 1), "4|b|0");
  const std::vector<object> messages = sent();
  const auto reopened = std::ranges::find_if(messages, [](const object& message) {
    const value* params = message.if_contains("params");
    const value* document =
        params != nullptr && params->is_object() ? params->as_object().if_contains("textDocument") : nullptr;
    return document != nullptr && document->as_object().contains("text") &&
           document->at("text") == "changed while it was down";
  });
  EXPECT_NE(reopened, messages.end());
}

TEST_F(BridgeTest, ComesBackWithMoreTextThanCallsMayHaveWaiting) {
  settings.most_waiting = 100'000;
  make();
  for (const char* name : {"1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "6.txt", "7.txt"}) {
    hover(write(name, "one\n" + std::string(60'000, 'x')), 1, 1);
  }
  kill_server();
  ASSERT_TRUE(turn_until([this] { return state() == "restarting"; }));
  const Outcome out = outcome();
  bridge->ask(Question::hover, {folder.file("1.txt"), 1, 1}, into(out));
  EXPECT_EQ(value_of(await(out)).at("contents"), "8|one|0");
  EXPECT_EQ(state(), "ready");
}

TEST_F(BridgeTest, RefusesARequestThatWasThereInThreeCrashes) {
  settings.patience.restart = milliseconds(1);
  make();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cause_of(request("fake/crash", "{}")), "crashed");
  EXPECT_EQ(request("fake/echo", "[1]").text, "[1]");
  EXPECT_EQ(cause_of(request("fake/crash", "{}")), "refused");
  EXPECT_EQ(cause_of(request("fake/crash", R"({"other":1})")), "crashed");
}

TEST_F(BridgeTest, RefusesAtOnceWhileAFailedStartIsFresh) {
  settings.patience.restart = hours(1);
  make({"--crash-at", "initialize"});
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  ASSERT_TRUE(turn_until([this] { return state() == "stopped"; }));
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  EXPECT_EQ(sent_methods().size(), 1U);
}

TEST_F(BridgeTest, StartsAnewOnceAFailedStartIsNotFreshAnyMore) {
  settings.patience.restart = milliseconds(1);
  make({"--crash-at", "initialize"});
  const auto starts = [this] {
    EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
    return sent_methods().size();
  };
  EXPECT_TRUE(turn_until([&] { return starts() >= 3; }));
}

TEST_F(BridgeTest, RefusesAfterAFailedStartWhileItsProcessesStillEnd) {
  settings.patience.restart = hours(1);
  make({"--crash-at", "initialize", "--grandchild"});
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  ASSERT_EQ(state(), "stopping");
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  EXPECT_EQ(state(), "stopping");
  ASSERT_TRUE(turn_until([this] { return state() != "stopping"; }));
  EXPECT_EQ(state(), "stopped");
  EXPECT_EQ(sent_methods().size(), 1U);
}

TEST_F(BridgeTest, ForgetsAFailedStartWhenItIsStopped) {
  settings.patience.restart = hours(1);
  make({"--crash-at", "start", "--crash-once", folder.file("crashed")});
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  ASSERT_TRUE(turn_until([this] { return state() == "stopped"; }));
  EXPECT_EQ(cause_of(request("fake/echo", "[1]")), "exited-before-initialize");
  EXPECT_THROW(bridge->stop("fake", [](std::size_t) {}), rpc::Error);
  EXPECT_EQ(request("fake/echo", "[1]").text, "[1]");
}

TEST_F(BridgeTest, AnswersForTheNewTextOnly) {
  make({"--publish-delay", "0.1", "--stale-first"});
  const std::string path = write("a.txt", "fine\n");
  EXPECT_EQ(diagnostics(path).at("fresh"), true);
  write("a.txt", "\xC3\xA4 BAD\n");
  const object found = diagnostics(path);
  EXPECT_EQ(found.at("fresh"), true);
  ASSERT_EQ(found.at("diagnostics").as_array().size(), 1U);
  const value& first = found.at("diagnostics").at(0);
  EXPECT_EQ(first.at("column"), 3);
  EXPECT_EQ(first.at("severity"), "error");
  EXPECT_EQ(first.at("text"), "\xC3\xA4 BAD");
}

TEST_F(BridgeTest, SaysSoWhenItIsNotSure) {
  make({"--unversioned", "--stale-first"});
  const std::string path = write("a.txt", "BAD\n");
  EXPECT_EQ(diagnostics(path).at("fresh"), true);
  write("a.txt", "good\n");
  const object found = diagnostics(path);
  EXPECT_EQ(found.at("fresh"), false);
  EXPECT_EQ(found.at("reason"), "unversioned");
  const object later = diagnostics(path);
  EXPECT_EQ(later.at("fresh"), false);  // though it has been silent since then
  EXPECT_EQ(later.at("reason"), "unversioned");
  EXPECT_TRUE(later.at("diagnostics").as_array().empty());
}

TEST_F(BridgeTest, TakesTheSilenceOfAServerThatSettlesForTheEndOfItsFindings) {
  Definition known = fake({"--unversioned", "--stale-first"});
  known.settles = true;
  make_of({known});
  const std::string path = write("a.txt", "BAD\n");
  EXPECT_EQ(diagnostics(path).at("fresh"), true);
  write("a.txt", "good\n");
  EXPECT_EQ(diagnostics(path, milliseconds(200)).at("fresh"), false);
  const object later = diagnostics(path);
  EXPECT_EQ(later.at("fresh"), true);
  EXPECT_TRUE(later.at("diagnostics").as_array().empty());
}

TEST_F(BridgeTest, ASymbolIsAPlace) {
  make(
      {"--answer",
       R"(documentSymbol=[{"name":"two","kind":12,"range":{"start":{"line":1,"character":0},"end":{"line":1,"character":3}},)"
       R"("selectionRange":{"start":{"line":1,"character":0},"end":{"line":1,"character":3}}}])"});
  const std::string path = write("a.txt", "one\ntwo\n");
  const object by_file = value_of(ask(Question::hover, {.path = path, .symbol = "two"}));
  EXPECT_EQ(by_file.at("at").at("line"), 2);
  EXPECT_EQ(by_file.at("fresh"), true);
  EXPECT_EQ(by_file.at("complete"), true);
  const object by_line = value_of(ask(Question::hover, {.path = path, .line = 2, .symbol = "one"}));
  EXPECT_EQ(by_line.at("at").at("line"), 1);
  EXPECT_EQ(ask(Question::hover, {.path = path, .symbol = "three"}).error.value().code(), rpc::code::invalid_params);
  EXPECT_THROW(ask(Question::hover, {.symbol = "two"}), rpc::Error);  // no server looks for names
}

TEST_F(BridgeTest, SaysSoWhenNothingCame) {
  make({"--never-publish"});
  const object found = diagnostics(write("a.txt", "BAD\n"), milliseconds(50));
  EXPECT_EQ(found.at("fresh"), false);
  EXPECT_EQ(found.at("reason"), "pending");
}

TEST_F(BridgeTest, PullsDiagnosticsWhereTheyAreOffered) {
  make({"--pull"});
  const std::string path = write("a.txt", "BAD\n");
  EXPECT_EQ(diagnostics(path).at("diagnostics").as_array().size(), 1U);
  write("a.txt", "BAD\nBAD\n");
  const object found = diagnostics(path);
  EXPECT_EQ(found.at("fresh"), true);
  EXPECT_EQ(found.at("diagnostics").as_array().size(), 2U);
}

TEST_F(BridgeTest, FailsAWaitForDiagnosticsWhenTheServerDies) {
  make({"--never-publish"});
  const Outcome out = outcome();
  bridge->ask_diagnostics({.path = write("a.txt", "BAD\n")}, seconds(30), into(out));
  request("fake/crash", "{}");
  EXPECT_EQ(cause_of(await(out)), "crashed");
}

TEST_F(BridgeTest, StopsAndStartsOnDemand) {
  make();
  const std::string path = write("a.txt", "one");
  EXPECT_THROW(bridge->stop("fake", [](std::size_t) {}), rpc::Error);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(hover(path, 1, 1), "");
    std::size_t stopped = 0;
    bridge->stop("fake", [&](std::size_t count) { stopped = count; });
    ASSERT_TRUE(turn_until([&] { return stopped == 1; }));
    EXPECT_TRUE(all_are_gone());
  }
}

TEST_F(BridgeTest, LetsAnIdleServerGo) {
  Definition definition = fake();
  definition.idle = milliseconds(300);
  make_of({definition});
  const std::string path = write("a.txt", "one");
  EXPECT_EQ(hover(path, 1, 1), "1|one|0");
  ASSERT_TRUE(turn_until([this] { return state() == "stopped"; }));
  EXPECT_EQ(sent_methods().back(), "exit");
  EXPECT_EQ(hover(path, 1, 1), "2|one|0");
}

TEST_F(BridgeTest, IsNotIdleWhileSomebodyWaitsForDiagnostics) {
  Definition definition = fake({"--never-publish"});
  definition.idle = milliseconds(100);
  make_of({definition});
  EXPECT_EQ(diagnostics(write("a.txt", "one"), milliseconds(500)).at("reason"), "pending");
}

TEST_F(BridgeTest, EndsAServerThatIsTooLarge) {
  Definition definition = fake({"--memory", "200"});
  definition.max_memory = 100 << 20;
  make_of({definition});
  EXPECT_EQ(cause_of(request("fake/never", "{}")), "crashed");
  EXPECT_NE(rpc::to_text(bridge->list()).find("more than its 100 MiB"), std::string::npos);
}

TEST_F(BridgeTest, CancelsInEveryState) {
  make({"--initialize-delay", "0.2"});
  const Outcome waiting = outcome();
  bridge->cancel(bridge->request({.server = "fake", .method = "fake/echo", .params = "[1]", .patience = seconds(30)},
                                 into(waiting)));
  EXPECT_EQ(request("fake/echo", "[2]").text, "[2]");
  const Outcome sent_one = outcome();
  const Bridge::Asked asked = bridge->request(
      {.server = "fake", .method = "fake/hold", .params = "[3]", .patience = seconds(30)}, into(sent_one));
  request("fake/echo", "[4]");
  bridge->cancel(asked);
  request("fake/release", "{}");
  EXPECT_FALSE(*waiting);
  EXPECT_FALSE(*sent_one);
  EXPECT_EQ(sent_methods(), (std::vector<std::string>{"initialize", "initialized", "fake/echo", "fake/hold",
                                                      "fake/echo", "$/cancelRequest", "fake/release"}));
}

TEST_F(BridgeTest, StopsAllTogether) {
  settings.patience.shutdown = hours(1);
  make_of({fake({"--ignore", "shutdown", "--ignore", "TERM", "--grandchild"}),
           fake({"--ignore", "exit", "--ignore", "shutdown", "--ignore", "TERM"}, "other")});
  request("fake/echo", "[1]", "fake");
  request("fake/echo", "[1]", "other");
  const Outcome held = outcome();
  bridge->request({.server = "fake", .method = "fake/hold", .params = "[3]", .patience = seconds(30)}, into(held));
  bool stopped = false;
  bridge->stop_all([&] { stopped = true; });
  const auto shutdowns = [this] {
    const std::vector<std::string> methods = sent_methods();
    return std::count(methods.begin(), methods.end(), "shutdown");
  };
  ASSERT_TRUE(turn_until([&] { return shutdowns() == 2; }));
  EXPECT_EQ(gone_of_all().first, 0) << "the second is told when the first has ended";
  for (std::size_t i = 0; i < 2; ++i) kill_server(i);
  ASSERT_TRUE(turn_until([&] { return stopped; }));
  EXPECT_EQ(cause_of(await(held)), "stopped");
  EXPECT_TRUE(all_are_gone());
  EXPECT_THROW(request("fake/echo", "[1]"), rpc::Error);
}

TEST_F(BridgeTest, TakesNewSettings) {
  make({"--name", "old"});
  EXPECT_EQ(request("fake/echo", "[1]").text, "[1]");
  bridge->set_definitions({fake({"--name", "new"})});
  EXPECT_EQ(state(), "stopping");
  EXPECT_EQ(request("fake/echo", "[2]").text, "[2]");
  EXPECT_EQ(bridge->list().at(0).at("serverName"), "new");
}

TEST_F(BridgeTest, KeepsWhatAClientSaidWhenSettingsChange) {
  make({"--name", "old"});
  const std::string path = write("a.txt", "disk");
  notify(5, "textDocument/didOpen", R"({"textDocument":{"uri":")" + uri("a.txt") + R"(","text":"mine"}})");
  bridge->set_definitions({fake({"--name", "new"})});
  EXPECT_EQ(hover(path, 1, 1), "2|mine|0");
  bridge->client_gone(5);
  EXPECT_EQ(hover(path, 1, 1), "3|disk|0");
}

TEST_F(BridgeTest, KeepsAServerThatHoldsWhatAClientSaid) {
  Definition definition = fake();
  definition.idle = milliseconds(100);
  make_of({definition, {.name = "none", .command = {"no-such-program-at-all"}}});
  const std::string path = write("a.txt", "disk");
  notify(5, "textDocument/didOpen", R"({"textDocument":{"uri":")" + uri("a.txt") + R"(","text":"mine"}})");
  ASSERT_TRUE(turn_until([this] { return state() == "stopped"; }));
  for (std::size_t i = 0; i < Bridge::most_servers; ++i) {
    const std::string root = folder.file("root" + std::to_string(i));
    std::filesystem::create_directory(root);
    const Outcome out = outcome();
    bridge->start("none", root, into(out));
    EXPECT_EQ(cause_of(await(out)), "not-found");
  }
  EXPECT_EQ(hover(path, 1, 1), "2|mine|0");
}

TEST_F(BridgeTest, WhoAsksRightBehindARefusalHasItLookedForOnHisOwnPath) {
  make_of({{.name = "hidden", .command = {"only-here"}}});
  std::filesystem::create_directory(folder.file("tools"));
  std::filesystem::create_symlink("/bin/false", folder.file("tools/only-here"));
  const Outcome first = outcome();
  const Outcome second = outcome();
  bridge->start("hidden", folder.path(), [&](const CallResult& result) {
    EXPECT_EQ(cause_of(result), "not-found");
    *first = result;
    bridge->start("hidden", folder.path(), into(second), folder.file("tools"));
  });
  await(first);
  EXPECT_NE(cause_of(await(second)), "not-found") << "it was found, though it ends at once";
}

TEST_F(BridgeTest, WaitsForServersThatNewSettingsHaveRemoved) {
  settings.patience.shutdown = milliseconds(200);
  make({"--ignore", "shutdown", "--ignore", "TERM"});
  request("fake/echo", "[1]");
  bridge->set_definitions({});
  ASSERT_EQ(bridge->list().size(), 1U);
  EXPECT_EQ(state(), "stopping");
  EXPECT_EQ(bridge->running(), 1U);
  bool stopped = false;
  bridge->stop_all([&] { stopped = true; });
  ASSERT_TRUE(turn_until([&] { return stopped; }));
  EXPECT_TRUE(all_are_gone());
  EXPECT_TRUE(turn_until([this] { return bridge->list().empty(); }));
}

TEST_F(BridgeTest, MayGoWhileServersThatNewSettingsHaveRemovedStillEnd) {
  settings.patience.shutdown = milliseconds(200);
  make({"--ignore", "shutdown", "--ignore", "TERM"});
  request("fake/echo", "[1]");
  bridge->set_definitions({});
  bridge.reset();
  EXPECT_TRUE(turn_until([this] { return all_are_gone(); }));
}

TEST_F(BridgeTest, ReadsAnAnswerInTheTextThatWasAskedAbout) {
  const std::string server = write("late.py", R"(
import sys
sys.path.insert(0, ")" DUET_SOURCE_DIR R"(/tests/fakes")
import language_server
class Late(language_server.Server):
    """Its first definition is held back until the next change of a text."""
    late = None
    def take_question(self, request, params):
        if request["method"] == "textDocument/definition" and self.late is None:
            self.late = self.range_of(self.documents[params["textDocument"]["uri"]][1], "TARGET")
            self.asked = request
        else:
            super().take_question(request, params)
    def take_notification(self, message):
        super().take_notification(message)
        if self.late and message["method"] == "textDocument/didChange":
            self.answer(self.asked, {"uri": self.asked["params"]["textDocument"]["uri"], "range": self.late})
            self.late = False
Late(language_server.parse_arguments()).run()
)");
  Definition definition = fake();
  definition.command[1] = server;
  make_of({definition});
  const std::string path = write("a.txt", "one\nTARGET\n");
  EXPECT_EQ(hover(path, 1, 1), "1|one|0");
  const Outcome out = outcome();
  bridge->ask(Question::definition, {path, 1, 1}, into(out));
  const auto is_asked = [this] { return sent_methods().back() == "textDocument/definition"; };
  for (int looks = 0; looks < 1000 && !is_asked(); ++looks) loop.turn(loop.now() + milliseconds(10));
  ASSERT_TRUE(is_asked());
  write("a.txt", "one\ntwo\nthree TARGET\n");
  EXPECT_EQ(hover(path, 1, 1), "2|one|0");
  const object found = value_of(await(out));
  EXPECT_EQ(found.at("places").at(0).at("line"), 3);
  EXPECT_EQ(found.at("places").at(0).at("column"), 7);
}

TEST_F(BridgeTest, AnswersEverybodyWhenItIsDestroyed) {
  make();
  const Outcome held = outcome();
  const Outcome waiting = outcome();
  request("fake/echo", "[1]");
  bridge->request({.server = "fake", .method = "fake/hold", .params = "[3]", .patience = seconds(30)}, into(held));
  bridge->ask_diagnostics({.path = write("a.txt", "x")}, seconds(100), into(waiting));
  bridge.reset();
  EXPECT_EQ(cause_of(held->value_or(CallResult())), "stopped");
  EXPECT_EQ(cause_of(waiting->value_or(CallResult())), "stopped");
  EXPECT_TRUE(all_are_gone());
}

}  // namespace
}  // namespace duet::bridge
