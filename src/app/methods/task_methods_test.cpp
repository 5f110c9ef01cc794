#include "app/methods/task_methods.h"

#include <fstream>

#include "duet/peer/connection.h"
#include "duet/peer/far_end_test.h"
#include "duet/transport/memory.h"
#include "task/run_record.h"
#include "task/supervisor_fixture_test.h"

namespace duet::app {
namespace {

using boost::json::value;

/// A client that asks one thing after the other.
class TaskMethodsTest : public task::SupervisorTest {
 protected:
  void SetUp() override {
    task::SupervisorTest::SetUp();
    add_task_methods(methods_, *supervisor);
    connect({});
  }
  void connect(const peer::Peer& peer) {
    connection_.reset();
    auto [near, far] = transport::memory_pair(loop);
    far_.emplace(std::move(far));
    connection_ = std::make_unique<peer::Connection>(loop, std::move(near), peer::Protocol::json_lines(), methods_, log,
                                                     peer::ConnectionEvents{}, peer);
    connection_->open();
  }
  /// As if through a network door.
  void connect_as(std::string name) {
    peer::Peer peer{.connection = 7};
    peer.admission = std::make_shared<const peer::Admission>(
        peer::Admission{.door = "http", .name = std::move(name), .role = "own"});
    connect(peer);
  }
  std::string asked_by(const char* task) {
    return std::string(
        ask("task.get", R"({"taskId":")" + std::string(task) + "\"}").at("metadata").at("by").as_string());
  }
  void TearDown() override { connection_.reset(); }

  void send(std::string_view method, std::string_view params) {
    far_->send(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":)" + std::string(params) +
               "}\n");
  }
  value answer() {
    std::vector<std::string> lines;
    const bool came = turn_until([&] {
      if (lines.empty()) lines = far_->take(peer::Framing::lines);
      return !lines.empty();
    });
    return came ? rpc::parse_value(lines.front()) : value();
  }
  value ask(std::string_view method, std::string_view params) {
    send(method, params);
    const value whole = answer();
    wait_for_store();
    const value* result = whole.as_object().if_contains("result");
    return result != nullptr ? *result : whole.at("error");
  }
  /// The code, and what the data says.
  std::string refusal(std::string_view method, std::string_view params) {
    const value error = ask(method, params);
    return rpc::to_text(error.at("code")) + ' ' + rpc::to_text(error.at("data"));
  }
  void write_output(task::RunId run, std::string_view bytes) {
    std::ofstream(folder.file("tasks/" + task::output_name(run)), std::ios::binary | std::ios::app) << bytes;
  }
  std::string output(std::string_view params) { return rpc::to_text(ask("task.output", params)); }

  peer::Methods methods_;
  std::optional<peer::FarEnd> far_;
  std::unique_ptr<peer::Connection> connection_;
};

TEST_F(TaskMethodsTest, ASubmittedTaskIsAnsweredWithItsIdAndState) {
  EXPECT_EQ(rpc::to_text(ask("task.submit", R"({"prompt":"echo"})")), R"({"taskId":"task-1","state":"queued"})");
  EXPECT_EQ(rpc::to_text(ask("task.submit", R"(["echo","shell",3])")), R"({"taskId":"task-2","state":"queued"})");
  EXPECT_EQ(task(2).priority, 3);
  EXPECT_EQ(rpc::to_text(ask("chat.send", R"({"message":"hello"})")), R"({"taskId":"task-3"})");
  EXPECT_EQ(task(3).priority, 5);
  EXPECT_EQ(task(3).agent, "shell");
}

TEST_F(TaskMethodsTest, EveryWishOfASubmissionIsTaken) {
  submit();
  ask("task.submit", R"({"prompt":"p","agent":"cat","priority":-2,"key":"k","cwd":"sub","env":{"A":"secret"},)"
                     R"("timeoutSeconds":1.5,"retries":2,"after":["task-1"]})");
  run_exits({1, 1}, 0);
  const task::Assignment& assignment = runner.started.at(1);
  EXPECT_EQ(assignment.environment.at("A"), "secret");
  EXPECT_EQ(assignment.time_limit, std::chrono::milliseconds(1500));
  EXPECT_EQ(assignment.directory, "/project/sub");
  const value record = ask("task.get", R"({"taskId":"task-2"})");
  EXPECT_EQ(rpc::to_text(record.at("metadata")),
            R"({"key":"k","cwd":"sub","timeoutSeconds":1.5,"retries":2,"after":["task-1"],"by":"unix"})");
  EXPECT_EQ(rpc::to_text(record).find("secret"), std::string::npos);
}

TEST_F(TaskMethodsTest, ATaskSaysWhoAskedForIt) {
  ask("task.submit", R"({"prompt":"one","delaySeconds":60})");
  EXPECT_EQ(asked_by("task-1"), "unix");
  connect_as("ci");
  ask("task.submit", R"({"prompt":"two"})");
  ask("chat.send", R"({"message":"three"})");
  EXPECT_EQ(asked_by("task-2"), "http:ci");
  EXPECT_EQ(asked_by("task-3"), "http:ci");
  ask("task.edit", R"({"taskId":"task-1","priority":3})");
  EXPECT_EQ(asked_by("task-1"), "unix") << "who changes it is another question";
  EXPECT_EQ(rpc::to_text(ask("task.restart", R"({"taskId":"task-1"})").at("taskId")), R"("task-4")");
  EXPECT_EQ(asked_by("task-4"), "http:ci");
  connect({});
  ask("task.restart", R"({"taskId":"task-2"})");
  EXPECT_EQ(asked_by("task-5"), "unix");
}

TEST_F(TaskMethodsTest, AKeyMeansTheSameTaskWhoeverAsks) {
  ask("task.submit", R"({"prompt":"one","key":"k"})");
  connect_as("ci");
  EXPECT_EQ(rpc::to_text(ask("task.submit", R"({"prompt":"one","key":"k"})").at("taskId")), R"("task-1")");
  EXPECT_EQ(asked_by("task-1"), "unix");
}

TEST_F(TaskMethodsTest, WhatCannotBeMeantIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", R"(-32602 {"param":"prompt","expected":"string","received":"missing"})"},
      {R"({"prompt":5})", R"(-32602 {"param":"prompt","expected":"string","received":"number"})"},
      {R"({"prompt":""})", R"(-32602 {"param":"prompt","expected":"string that is not blank","received":"string"})"},
      {R"({"prompt":" \t\r\n"})",
       R"(-32602 {"param":"prompt","expected":"string that is not blank","received":"string"})"},
      {R"({"prompt":"a\u0000b"})",
       R"(-32602 {"param":"prompt","expected":"string without NUL for this agent","received":"string"})"},
      {R"({"prompt":"p","env":{"A":1}})",
       R"(-32602 {"param":"env","expected":"object of strings","received":"object"})"},
      {R"({"prompt":"p","timeoutSeconds":0})",
       R"(-32602 {"param":"timeoutSeconds","expected":"number above 0","received":"number"})"},
      {R"({"prompt":"p","retries":-1})",
       R"(-32602 {"param":"retries","expected":"integer from 0 on","received":"number"})"},
      {R"({"prompt":"p","key":""})",
       R"(-32602 {"param":"key","expected":"string of 1 to 1024 bytes","received":"string"})"},
      {R"({"prompt":"p","after":[1]})", R"(-32602 {"param":"after","expected":"array of strings","received":"array"})"},
      {R"({"prompt":"p","after":["task-9"]})", R"(-32000 {"taskId":"task-9"})"},
      {R"({"prompt":"p","after":["nonsense"]})", R"(-32000 {"taskId":"nonsense"})"}};
  for (const auto& [params, expected] : cases) EXPECT_EQ(refusal("task.submit", params), expected);
  EXPECT_EQ(refusal("task.submit", R"({"prompt":"p","env":{"A=B":"secret"}})").find("secret"), std::string::npos);
  EXPECT_EQ(refusal("chat.send", R"({"message":"\n"})"),
            R"(-32602 {"param":"message","expected":"string that is not blank","received":"string"})");
  EXPECT_EQ(refusal("task.get", R"({"taskId":"task-1"})"), R"(-32000 {"taskId":"task-1"})");
  EXPECT_EQ(refusal("task.cancel", R"({"taskId":"what"})"), R"(-32000 {"taskId":"what"})");
  EXPECT_EQ(refusal("task.list", R"({"state":"lost"})"),
            R"(-32602 {"param":"state","expected":"string","received":"lost",)"
            R"("accepted":["queued","running","completed","failed","cancelled"]})");
  EXPECT_EQ(refusal("task.list", R"({"limit":0})"),
            R"(-32602 {"param":"limit","expected":"integer from 1 on","received":"number"})");
}

TEST_F(TaskMethodsTest, SubmissionsOfOneConnectionShareACommit) {
  for (int i = 0; i < 20; ++i) send("task.submit", R"({"prompt":"p"})");
  std::vector<std::string> lines;
  turn_until([&] {
    for (std::string& line : far_->take(peer::Framing::lines)) lines.push_back(std::move(line));
    return lines.size() == 20;
  });
  EXPECT_EQ(lines.back(), R"({"jsonrpc":"2.0","id":1,"result":{"taskId":"task-20","state":"queued"}})");
}

TEST_F(TaskMethodsTest, WhatWasSubmittedBeforeIsFoundByWhatIsAskedAfter) {
  send("task.submit", R"({"prompt":"p"})");
  send("task.get", R"({"taskId":"task-1"})");
  send("task.submit", R"({"prompt":"p"})");
  send("task.cancel", R"({"taskId":"task-2"})");
  send("task.list", R"({"limit":1})");
  send("task.stats", "{}");
  send("task.get", R"({"taskId":"task-9"})");
  std::vector<std::string> lines;
  turn_until([&] {
    for (std::string& line : far_->take(peer::Framing::lines)) lines.push_back(std::move(line));
    if (!runner.cancelled.empty()) tell.terminated(runner.cancelled.front());
    return lines.size() == 7;
  });
  ASSERT_EQ(lines.size(), 7U);
  const auto result = [&](std::size_t at) { return rpc::parse_value(lines[at]).at("result"); };
  EXPECT_EQ(result(1).at("id"), "task-1");
  EXPECT_EQ(result(3).at("cancelled"), true);
  EXPECT_EQ(result(4).at(0).at("id"), "task-2");
  EXPECT_EQ(result(5).at("total"), 2);
  EXPECT_EQ(rpc::parse_value(lines[6]).at("error").at("code"), -32000);
}

TEST_F(TaskMethodsTest, CancelIsAnsweredWhenItIsCertain) {
  submit();
  run_started({1, 1});
  send("task.cancel", R"({"taskId":"task-1"})");
  ASSERT_TRUE(turn_until([&] { return !runner.cancelled.empty(); }));
  EXPECT_TRUE(far_->take(peer::Framing::lines).empty());
  tell.terminated({1, 1});
  EXPECT_EQ(rpc::to_text(answer()), R"({"jsonrpc":"2.0","id":1,"result":{"cancelled":true}})");
  run_ends({1, 1}, {.kind = task::Outcome::Kind::signalled, .signal = 15});
  EXPECT_EQ(refusal("task.cancel", R"({"taskId":"task-1"})"),
            R"(-32001 {"taskId":"task-1","state":"cancelled","reason":"ended"})");
}

TEST_F(TaskMethodsTest, AGroupThatTheSettingsDoNotHaveAnyMoreIsPausedWhileItHasTasks) {
  settings.max_running = 0;
  settings.groups["night"] = {};
  supervisor->change_settings(settings);
  submit({.prompt = "true", .group = "night"});
  settings.groups.clear();
  supervisor->change_settings(settings);
  EXPECT_EQ(rpc::to_text(ask("queue.pause", R"({"group":"night"})")),
            R"({"paused":true,"changed":true,"pausedGroups":["night"]})");
  settings.max_running = 2;
  supervisor->change_settings(settings);
  wait_for_store();
  EXPECT_TRUE(started().empty());
  EXPECT_EQ(ask("queue.resume", R"({"group":"night"})").at("changed"), true);
  EXPECT_EQ(started(), Strings{"1.1"});
  EXPECT_EQ(ask("queue.pause", R"({"group":"night"})").at("changed"), true) << "what runs is in it, too";
  EXPECT_EQ(ask("queue.resume", R"({"group":"night"})").at("changed"), true);
  run_exits({1, 1}, 0);
  EXPECT_EQ(refusal("queue.pause", R"({"group":"night"})"),
            R"(-32602 {"param":"group","expected":"the name of a group","received":"night","accepted":["default"]})");
  EXPECT_EQ(ask("queue.pause", R"({"group":""})").at("code"), -32602);
}

TEST_F(TaskMethodsTest, ListsAndCounts) {
  for (int i = 0; i < 25; ++i) submit();
  run_started({1, 1});
  run_exits({2, 1}, 0);
  EXPECT_EQ(ask("task.list", "{}").as_array().size(), 20U);
  EXPECT_EQ(ask("task.list", R"({"limit":3,"before":"task-9"})").at(0).at("id"), "task-8");
  const value running = ask("task.list", R"({"state":"Running"})");
  ASSERT_EQ(running.as_array().size(), 1U);
  EXPECT_EQ(running.at(0).at("id"), "task-1");
  EXPECT_TRUE(ask("task.list", R"({"state":"CANCELLED"})").as_array().empty()) << "completed begins with a c, too";
  EXPECT_EQ(ask("task.list", R"({"state":"completed"})").at(0).at("id"), "task-2");
  EXPECT_EQ(rpc::to_text(ask("task.stats", "{}")),
            R"({"total":25,"queued":23,"running":1,"completed":1,"failed":0,"cancelled":0})");
}

TEST_F(TaskMethodsTest, WaitAnswersAtTheEndOrWhenTheTimeIsUp) {
  submit();
  send("task.wait", R"({"taskId":"task-1","timeoutSeconds":2})");
  wait_for_store();
  EXPECT_TRUE(far_->take(peer::Framing::lines).empty());
  clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(answer().at("result").at("state"), "queued");
  send("task.wait", R"({"taskId":"task-1"})");
  wait_for_store();
  run_exits({1, 1}, 7);
  EXPECT_EQ(answer().at("result").at("exitCode"), 7);
  EXPECT_EQ(ask("task.wait", R"({"taskId":"task-1"})").at("state"), "failed");
}

TEST_F(TaskMethodsTest, AWaiterWhoGoesIsForgotten) {
  submit();
  send("task.wait", R"({"taskId":"task-1"})");
  wait_for_store();
  connection_.reset();
  run_exits({1, 1}, 0);
  EXPECT_EQ(state(1), task::State::completed);
}

TEST_F(TaskMethodsTest, OutputIsReadByOffset) {
  submit();
  run_started({1, 1});
  EXPECT_EQ(output(R"({"taskId":"task-1"})"), R"({"offset":0,"data":"","next":0,"done":false})");
  write_output({1, 1}, "hello world");
  EXPECT_EQ(output(R"({"taskId":"task-1","limit":5})"), R"({"offset":0,"data":"hello","next":5,"done":false})");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":5})"), R"({"offset":5,"data":" world","next":11,"done":false})");
  run_exits({1, 1}, 0);
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":5,"limit":3})"),
            R"({"offset":5,"data":" wo","next":8,"done":false})");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":8})"), R"({"offset":8,"data":"rld","next":11,"done":true})");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":8,"encoding":"base64"})"),
            R"({"offset":8,"data":"cmxk","next":11,"done":true})");
  EXPECT_EQ(refusal("task.output", R"({"taskId":"task-2"})"), R"(-32000 {"taskId":"task-2"})");
}

TEST_F(TaskMethodsTest, AsTextNoCharacterIsCutAndEveryReadGetsOn) {
  submit();
  run_started({1, 1});
  write_output({1, 1}, "a\u20acb\xFF\xE2\x82");
  EXPECT_EQ(output(R"({"taskId":"task-1","limit":3})"), R"({"offset":0,"data":"a","next":1,"done":false})");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":1,"limit":1})"), R"({"offset":1,"data":"€","next":4,"done":false})");
  EXPECT_EQ(output(R"({"taskId":"task-1","limit":5})"), R"({"offset":0,"data":"a€b","next":5,"done":false})");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":5})"),
            "{\"offset\":5,\"data\":\"\uFFFD\",\"next\":6,\"done\":false}");
  EXPECT_EQ(output(R"({"taskId":"task-1","offset":6})"), R"({"offset":6,"data":"","next":6,"done":false})");
  run_exits({1, 1}, 0);
  EXPECT_EQ(ask("task.output", R"({"taskId":"task-1","offset":6,"limit":1})").at("done"), false);
  const value rest = ask("task.output", R"({"taskId":"task-1","offset":6})");
  EXPECT_EQ(rest.at("next"), 8);
  EXPECT_EQ(rest.at("done"), true);
}

}  // namespace
}  // namespace duet::app
