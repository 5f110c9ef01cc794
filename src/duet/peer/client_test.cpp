#include "duet/peer/client.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/server.h"
#include "duet/transport/memory.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using Cause = Outcome::Cause;

constexpr auto patience = 60s;

/// A server on a thread of its own, since a Client waits inside its calls.
class ServedThread {
 public:
  ServedThread() {
    server_ = std::make_unique<Server>(loop_, tape_.log());
    add_methods();
    server_->start(path());
    thread_ = std::thread([this] { loop_.run(); });
  }
  ServedThread(const ServedThread&) = delete;
  ServedThread& operator=(const ServedThread&) = delete;
  ~ServedThread() { end(); }

  std::string path() const { return folder_.file("socket"); }
  void post(std::function<void(Server&)> task) {
    loop_.post([this, task = std::move(task)] { task(*server_); });
  }
  /// As if the process had died.
  void end() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
    replies_.clear();
    server_.reset();
  }

 private:
  void add_methods() {
    server_->register_method("echo", [](const Request& asked) {
      return asked.params.text().empty() ? rpc::Json(nullptr) : rpc::Json::view(asked.params.text());
    });
    server_->register_method("refuse", [](const Request&) -> rpc::Json {
      throw rpc::Error(-32001, "No", {{"why", "because"}});
    });
    server_->register_method("announce", [this](const Request& asked) -> rpc::Json {
      server_->broadcast("event.first", asked.params);
      server_->broadcast("event.second", {});
      return true;
    });
    server_->register_method("die", [this](const Request&) -> rpc::Json {
      loop_.stop();
      return nullptr;
    });
    server_->register_method("long", [](const Request& asked) {
      return rpc::Json::trusted(
          '"' + std::string(static_cast<std::size_t>(asked.params.value().at("size").as_int64()), 'x') + '"');
    });
    server_->register_method(
        "deep", [](const Request&) { return rpc::Json::trusted(std::string(600, '[') + std::string(600, ']')); });
    server_->methods().add("never", [this](Reply<> reply) { replies_.push_back(std::move(reply)); });
  }

  transport::TemporaryFolder folder_;
  transport::Loop loop_;
  base::LogTape tape_;
  std::unique_ptr<Server> server_;
  std::vector<Reply<>> replies_;
  std::thread thread_;
};

struct Setting {
  Setting() { client.connect(served.path()); }
  ServedThread served;
  Client client;
};

Cause cause_of(const std::function<void()>& call) {
  try {
    call();
    return Cause::answered;
  } catch (const CallFailed& failed) {
    return failed.cause();
  }
}

TEST(ThreadsClient, CallsAndGetsTheResult) {
  Setting s;
  EXPECT_TRUE(s.client.is_connected());
  EXPECT_EQ(s.client.call("echo", {{"a", {1, 2}}}), boost::json::value({{"a", {1, 2}}}));
  EXPECT_EQ(s.client.call("echo"), boost::json::value(nullptr));
  const Outcome raw = s.client.call_raw("echo", rpc::Json::view(R"({ "as" : "it is" })"));
  EXPECT_EQ(raw.cause, Cause::answered);
  EXPECT_EQ(raw.result, R"({ "as" : "it is" })");
}

TEST(ThreadsClient, SaysWhyACallWasRefused) {
  Setting s;
  try {
    s.client.call("refuse");
    FAIL();
  } catch (const CallFailed& failed) {
    EXPECT_EQ(failed.cause(), Cause::refused);
    EXPECT_STREQ(failed.what(), R"(No: {"why":"because"})");
    EXPECT_EQ(failed.error()->code(), -32001);
    EXPECT_EQ(failed.error()->data(), R"({"why":"because"})");
  }
  EXPECT_EQ(cause_of([&] { s.client.call("missing"); }), Cause::refused);
  EXPECT_EQ(cause_of([&] { s.client.call("echo", 5); }), Cause::refused);  // params must be an object or an array
}

TEST(ThreadsClient, ACallTimesOutAndItsLateAnswerIsDropped) {
  Setting s;
  try {
    s.client.call("never", nullptr, 10ms);
    FAIL();
  } catch (const CallFailed& failed) {
    EXPECT_EQ(failed.cause(), Cause::timed_out);
    EXPECT_STREQ(failed.what(), "timed out");
    EXPECT_FALSE(failed.error());
  }
  s.served.post([](Server&) {});
  EXPECT_TRUE(s.client.is_connected());
  EXPECT_TRUE(s.client.notify("$/cancelRequest", {{"id", 1}}));  // its answer is late now
  EXPECT_EQ(s.client.call("echo", boost::json::array{1}), boost::json::array{1});
}

TEST(ThreadsClient, ACallMayWaitWithoutEnd) {
  Setting s;
  EXPECT_EQ(s.client.call("echo", boost::json::array{1}, base::Duration::max()), boost::json::array{1});
  bool came = false;
  s.client.call_later(
      "echo", {}, [&](const Outcome&) { came = true; }, base::Duration::max());
  EXPECT_TRUE(s.client.wait_for([&] { return came; }, base::Duration::max()));
}

TEST(ThreadsClient, HearsNotificationsWhileItsCallsArePending) {
  Setting s;
  Strings heard;
  s.client.on("event.first", [&](const rpc::Json& params) { heard.push_back("first " + std::string(params.text())); });
  s.client.on_any([&](std::string_view method, std::string_view params) {
    heard.push_back(std::string(method) + std::string(params));
  });
  EXPECT_EQ(s.client.call("announce", boost::json::array{7}), boost::json::value(true));
  EXPECT_TRUE(s.client.wait_for([&] { return heard.size() == 2; }, patience));
  EXPECT_EQ(heard, (Strings{"first [7]", "event.second"}));
  EXPECT_THROW(s.client.on("event.first", [](const rpc::Json&) {}), std::invalid_argument);
}

TEST(ThreadsClient, WaitsForWhatItIsToldToAndNoLonger) {
  Setting s;
  EXPECT_FALSE(s.client.wait_for([] { return false; }, 10ms));
  EXPECT_TRUE(s.client.wait_for([] { return true; }, 0ms));
}

TEST(ThreadsClient, TenThousandCallsMayBePendingAtOnce) {
  Setting s;
  constexpr int count = 10'000;
  std::vector<std::string> results;
  for (int i = 0; i < count; ++i) {
    s.client.call_later("echo", std::vector{i}, [&](const Outcome& outcome) {
      EXPECT_EQ(outcome.cause, Cause::answered);
      results.push_back(outcome.result);
    });
  }
  ASSERT_TRUE(s.client.wait_for([&] { return results.size() == count; }, patience));
  for (int i = 0; i < count; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], "[" + std::to_string(i) + "]");
}

TEST(ThreadsClient, ReadsAnswersLargerThanAServerWouldRead) {
  Setting s;
  constexpr std::size_t size = 20U * 1024 * 1024;
  const Outcome outcome = s.client.call_raw("long", {{"size", size}});
  EXPECT_EQ(outcome.cause, Cause::answered);
  EXPECT_EQ(outcome.result.size(), size + 2);
}

TEST(ThreadsClient, AResultTooDeepToBeReadIsStillThereAsText) {
  Setting s;
  EXPECT_THROW(s.client.call("deep"), std::length_error);
  EXPECT_THROW(s.client.call<std::vector<rpc::Json>>("deep"), std::length_error);
  EXPECT_EQ(s.client.call<rpc::Json>("deep").text().size(), 1200U);
  EXPECT_EQ(s.client.call_raw("deep", {}).result.size(), 1200U);
}

TEST(ThreadsClient, PendingCallsFailAtOnceWhenTheServerGoes) {
  Setting s;
  std::vector<Cause> causes;
  const auto keep = [&](const Outcome& outcome) { causes.push_back(outcome.cause); };
  for (int i = 0; i < 3; ++i) s.client.call_later("never", {}, keep, 1h);
  s.served.post([](Server& server) { server.stop(); });
  s.client.wait_for([&] { return causes.size() == 3; }, 100ms);  // what runs may finish, so it goes on
  s.served.end();
  s.client.wait_for([&] { return causes.size() == 3; }, patience);
  EXPECT_EQ(causes, std::vector(3, Cause::disconnected));
  EXPECT_FALSE(s.client.is_connected());
  EXPECT_EQ(cause_of([&] { s.client.call("echo"); }), Cause::disconnected);
  EXPECT_FALSE(s.client.notify("echo"));
}

TEST(ThreadsClient, ACallDuringWhichTheServerDiesFails) {
  Setting s;
  std::thread killer([&] { s.served.end(); });
  const Cause cause = cause_of([&] {
    for (;;) s.client.call("echo");
  });
  killer.join();
  EXPECT_EQ(cause, Cause::disconnected);
}

struct Pair {
  int left = 0;
  std::string right;
};
BOOST_DESCRIBE_STRUCT(Pair, (), (left, right))

TEST(ThreadsClient, CallsWithValuesByPositionOrAsOneStruct) {
  const ServedThread served;
  Client client;
  client.connect(served.path());
  const auto list = client.call<std::vector<rpc::Json>>("echo", 1, "two");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].text(), "\"two\"");
  const Pair pair = client.call<Pair>("echo", Pair{.left = 3, .right = "four"});
  EXPECT_EQ(pair.left, 3);
  EXPECT_EQ(pair.right, "four");
  client.call<void>("echo");
  EXPECT_THROW(client.call<int>("echo", 1, 2), std::invalid_argument);
}

TEST(Client, WithoutAServerConnectThrowsAndCallsFail) {
  const transport::TemporaryFolder folder;
  Client client;
  EXPECT_THROW(client.connect(folder.file("socket")), std::system_error);
  EXPECT_FALSE(client.is_connected());
  EXPECT_EQ(cause_of([&] { client.call("echo"); }), Cause::disconnected);
  EXPECT_FALSE(client.call_raw("echo", {}).was_sent);
  EXPECT_FALSE(client.notify("echo"));
  EXPECT_FALSE(client.wait_for([] { return false; }, 1h));
  client.disconnect();
}

/// A server and a client on one loop, over memory.
struct OneLoop {
  explicit OneLoop(const Protocol& served = Protocol::json_lines(),
                   const Protocol& spoken = Protocol::json_lines_client())
      : server(loop, tape.log(), {}, {}, served), client(loop, spoken) {
    server.methods().add("add", "Adds", {"a", "b"}, [](int a, int b) { return a + b; });
    server.methods().add("never", [this](Reply<> reply) { replies.push_back(std::move(reply)); });
    connect();
  }
  void connect() {
    auto [near, far] = transport::memory_pair(loop);
    server.admit(std::move(near), {});
    client.connect(std::move(far));
  }

  transport::Loop loop;
  base::LogTape tape;
  std::vector<Reply<>> replies;
  Server server;
  Client client;
};

TEST(Client, RunsOnALoopOfYoursOverAnyChannel) {
  OneLoop s;
  EXPECT_EQ(&s.client.loop(), &s.loop);
  EXPECT_EQ(s.client.call<int>("add", 2, 3), 5);
  int sum = 0;
  s.client.call_later("add", rpc::Json::view("[3,4]"),
                      [&](const Outcome& outcome) { sum = std::stoi(outcome.result); });
  while (sum == 0) s.loop.turn();
  EXPECT_EQ(sum, 7);
}

TEST(Client, SpeaksAnyProtocol) {
  OneLoop s(Protocol::lsp_server(), Protocol::lsp_client());
  EXPECT_EQ(s.client.call<int>("add", 2, 3), 5);
}

TEST(Client, WaitsForNothingInsideATurnOfYourLoop) {
  OneLoop s;
  bool refused = false;
  s.loop.defer([&] {
    try {
      s.client.call<int>("add", 2, 3);
    } catch (const std::logic_error&) {
      refused = true;
    }
  });
  s.loop.turn();
  EXPECT_TRUE(refused);
}

TEST(Client, MayGoBeforeYourLoop) {
  transport::Loop loop;
  auto [near, far] = transport::memory_pair(loop);
  auto [other_near, other_far] = transport::memory_pair(loop);
  std::vector<Cause> causes;
  {
    Client client(loop);
    const auto keep = [&](const Outcome& outcome) {
      causes.push_back(outcome.cause);
      if (causes.size() == 2) client.call_later("more", {}, [&](const Outcome& last) { causes.push_back(last.cause); });
    };
    client.connect(std::move(near));
    client.call_later("ask", {}, keep);
    client.connect(std::move(other_near));
    client.call_later("ask", {}, keep);
  }
  EXPECT_EQ(causes, std::vector(3, Cause::disconnected));
  loop.turn(loop.now());
}

TEST(Client, KeepsItsConnectionWhenAnotherCannotBeMade) {
  const transport::TemporaryFolder folder;
  OneLoop s;
  EXPECT_THROW(s.client.connect(folder.file("socket")), std::system_error);
  EXPECT_EQ(s.client.call<int>("add", 2, 3), 5);
}

TEST(ThreadsClient, DisconnectsAndConnectsAgain) {
  Setting s;
  int failed = 0;
  s.client.call_later("never", {}, [&](const Outcome& outcome) { failed += outcome.cause == Cause::disconnected; });
  s.client.disconnect();
  EXPECT_EQ(failed, 1);
  EXPECT_FALSE(s.client.is_connected());
  s.client.connect(s.served.path());
  EXPECT_EQ(s.client.call("echo", boost::json::array{1}), boost::json::array{1});
  s.client.connect(s.served.path());  // replaces the connection
  EXPECT_EQ(s.client.call("echo", boost::json::array{2}), boost::json::array{2});
}

TEST(ThreadsClient, MayConnectAgainInsideTheCallThatTellsItOfTheEnd) {
  Setting s;
  bool again = false;
  s.client.call_later("never", {}, [&](const Outcome&) {
    s.client.connect(s.served.path());
    again = true;
  });
  s.client.disconnect();
  EXPECT_TRUE(again);
  EXPECT_TRUE(s.client.is_connected());
  EXPECT_EQ(s.client.call("echo", boost::json::array{1}), boost::json::array{1});
}

TEST(ThreadsClient, AHandlerThatWaitsForAnotherCallIsRefusedAndHurtsNothing) {
  Setting s;
  int refused = 0;
  s.client.on("event.first", [&](const rpc::Json&) {
    try {
      s.client.call("echo", boost::json::array{1});
    } catch (const std::logic_error&) {
      ++refused;
    }
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(s.client.call("announce", boost::json::array{7}), boost::json::value(true));
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(s.client.call("echo", boost::json::array{2}), boost::json::array{2});
}

TEST(ThreadsClient, AHandlerMayAskWithoutWaiting) {
  Setting s;
  std::string came;
  s.client.on("event.first", [&](const rpc::Json&) {
    s.client.call_later("echo", rpc::Json::view("[3]"), [&](const Outcome& outcome) { came = outcome.result; });
  });
  s.client.call("announce", boost::json::array{7});
  EXPECT_TRUE(s.client.wait_for([&] { return came == "[3]"; }, patience));
}

TEST(ThreadsClient, WhatATaskOnItsLoopThrowsLeavesNoPendingCallBehind) {
  Setting s;
  s.client.loop().defer([] { throw std::runtime_error("oops"); });
  EXPECT_THROW(s.client.call("echo", boost::json::array{1}), std::runtime_error);
  EXPECT_EQ(s.client.call("echo", boost::json::array{2}), boost::json::array{2});
}

}  // namespace
}  // namespace duet::peer
