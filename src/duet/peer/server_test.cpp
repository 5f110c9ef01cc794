#include "duet/peer/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/few_descriptors_test.h"
#include "duet/peer/server_fixture_test.h"
#include "duet/transport/memory.h"
#include "duet/transport/unix_acceptor.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

int error_of_start(ServerSetting& s, const std::string& path) {
  try {
    s.server.start(path);
    return 0;
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

TEST(Server, ServesManyClients) {
  ServerSetting s;
  s.server.start(s.path);
  std::vector<std::unique_ptr<FarEnd>> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(s.connect());
  EXPECT_EQ(s.server.client_count(), 100U);
  for (int i = 0; i < 100; ++i) {
    for (auto& client : clients) client->send(request(std::to_string(i), "echo", "[1]") + '\n');
  }
  s.turn(200);
  for (auto& client : clients) {
    const Strings answers = client->take(Framing::lines);
    ASSERT_EQ(answers.size(), 100U);
    EXPECT_EQ(answers[99], result("99", "[1]"));
  }
  clients.resize(40);
  s.turn();
  EXPECT_EQ(s.server.client_count(), 40U);
}

TEST(Server, TellsHandlersWhoAsks) {
  ServerSetting s;
  s.server.start(s.path);
  const auto first = s.connect();
  const auto second = s.connect();
  const auto who = [](int connection) {
    return result("1", R"({"connection":)" + std::to_string(connection) + R"(,"pid":)" + std::to_string(getpid()) +
                           R"(,"uid":)" + std::to_string(geteuid()) + "}");
  };
  EXPECT_EQ(s.ask(*first, request("1", "whoami")), Strings{who(1)});
  EXPECT_EQ(s.ask(*second, request("1", "whoami")), Strings{who(2)});
}

TEST(Server, TakesClientsOverAnyChannel) {
  ServerSetting s;
  auto [near, far] = transport::memory_pair(s.loop);
  s.server.admit(std::move(near), {.pid = 5, .uid = 6});
  FarEnd client(std::move(far));
  EXPECT_EQ(s.ask(client, request("1", "whoami")), Strings{result("1", R"({"connection":1,"pid":5,"uid":6})")});
  EXPECT_EQ(s.server.client_count(), 1U);
}

TEST(Server, PutsBetweenConnectionAndChannelWhatItsOwnerSays) {
  base::VirtualClock clock;
  transport::Loop loop(clock);
  base::LogTape tape;
  std::vector<std::uint64_t> wrapped;
  ServerEvents events;
  events.wrap_channel = [&](std::unique_ptr<transport::Channel> channel, const Peer& peer) {
    wrapped.push_back(peer.uid);
    return channel;
  };
  Server server(loop, tape.log(), events);
  auto [near, far] = transport::memory_pair(loop);
  server.admit(std::move(near), {.pid = 5, .uid = 6});
  EXPECT_EQ(wrapped, std::vector<std::uint64_t>{6});
}

TEST(Server, TakesMethodsAtAnyTimeButNoNameTwice) {
  ServerSetting s;
  s.server.start(s.path);
  const auto client = s.connect();
  EXPECT_EQ(s.ask(*client, request("1", "new")), Strings{error("1", -32601, "Method not found")});
  s.server.register_methods({{"new", [](const Request&) -> rpc::Json { return 1; }},
                             {"newer", [](const Request&) -> rpc::Json { return 2; }}});
  EXPECT_EQ(s.ask(*client, request("1", "new")), Strings{result("1", "1")});
  EXPECT_EQ(s.ask(*client, request("2", "newer")), Strings{result("2", "2")});
  EXPECT_THROW(s.server.register_method("new", [](const Request&) -> rpc::Json { return 3; }), std::invalid_argument);
}

TEST(Server, ALateAnswerHoldsUpNoOtherConnection) {
  ServerSetting s;
  s.server.start(s.path);
  const auto first = s.connect();
  const auto second = s.connect();
  EXPECT_EQ(s.ask(*first, request("1", "late")), Strings{});
  EXPECT_EQ(s.ask(*second, request("1", "echo")), Strings{result("1", "null")});
  s.replies.front().ok(true);
  s.turn();
  EXPECT_EQ(first->take(Framing::lines), Strings{result("1", "true")});
}

TEST(Server, ClientsMayDieAtAnyTime) {
  ServerSetting s;
  s.server.start(s.path);
  int empty = 0;
  s.events.on_empty = [&] { ++empty; };
  for (int i = 0; i < 20; ++i) {
    const auto client = s.connect();
    client->read(false);
    client->send(request("1", i % 2 == 0 ? "late" : "long") + '\n' + request("2", "long") + "\n{\"half");
    s.turn(i % 4);
  }
  s.turn(50);
  EXPECT_EQ(s.server.client_count(), 0U);
  EXPECT_GE(empty, 1);
  for (const Reply<>& reply : s.replies) EXPECT_TRUE(reply.abandoned());
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, StartsAtAPathOfAThousandBytes) {
  ServerSetting s;
  s.path = s.folder.file_of_length(1000, "daemon.sock");
  s.server.start(s.path);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
  s.server.stop();
  EXPECT_FALSE(fs::exists(s.path));
}

TEST(Server, TakesASocketThatListensAlready) {
  ServerSetting s;
  s.server.listen(transport::inherited_acceptor(s.loop, s.tape.log(), transport::listen_unix(s.path)));
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
  s.server.stop();
  EXPECT_TRUE(fs::exists(s.path));  // it is not ours
}

TEST(Server, ListensAtSeveralPlacesAtOnce) {
  ServerSetting s;
  s.server.start(s.path);
  s.server.start(s.path + "2");
  const std::string first = std::exchange(s.path, s.path + "2");
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
  fs::remove(s.path);
  EXPECT_FALSE(s.server.is_reachable());
  s.server.restore();
  EXPECT_EQ(s.ask(*s.connect(), request("2", "echo")), Strings{result("2", "null")});
  s.path = first;
  EXPECT_EQ(s.ask(*s.connect(), request("3", "echo")), Strings{result("3", "null")});
  s.server.stop();
  EXPECT_FALSE(fs::exists(first));
  EXPECT_FALSE(fs::exists(first + "2"));
}

/// Lets in whoever the test says.
struct TestAcceptor final : transport::Acceptor {
  struct State {
    Listener* listener = nullptr;
    int resumed = 0;
  };
  explicit TestAcceptor(std::shared_ptr<State> shared) : state(std::move(shared)) {}
  void open(Listener& listener) override { state->listener = &listener; }
  void resume() override { ++state->resumed; }
  bool is_reachable() const override { return true; }
  void restore() override {}
  void close() override { state->listener = nullptr; }
  std::shared_ptr<State> state;
};

TEST(Server, ServesWhomeverAnAcceptorLetsIn) {
  ServerSetting s({.max_clients = 1, .visitors = 0});
  const auto state = std::make_shared<TestAcceptor::State>();
  s.server.listen(std::make_unique<TestAcceptor>(state));
  ASSERT_NE(state->listener, nullptr);
  EXPECT_TRUE(state->listener->has_room());
  auto [near, far] = transport::memory_pair(s.loop);
  state->listener->admit(std::move(near), {.pid = 5, .uid = 6});
  {
    FarEnd client(std::move(far));
    EXPECT_EQ(s.ask(client, request("1", "whoami")), Strings{result("1", R"({"connection":1,"pid":5,"uid":6})")});
    EXPECT_FALSE(state->listener->has_room());
    EXPECT_EQ(state->resumed, 0);
  }
  s.turn();
  EXPECT_EQ(state->resumed, 1);
  EXPECT_TRUE(state->listener->has_room());
  s.server.stop();
  EXPECT_EQ(state->listener, nullptr);
  EXPECT_EQ(state.use_count(), 2) << "an acceptor may have called stop()";
  s.turn();
  EXPECT_EQ(state.use_count(), 1);
}

TEST(Server, ReplacesASocketNobodyListensOn) {
  ServerSetting s;
  { const base::Fd left_behind = transport::listen_unix(s.path); }
  s.server.start(s.path);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, LeavesALiveSocketAlone) {
  ServerSetting s;
  ServerSetting other;
  s.server.start(s.path);
  EXPECT_EQ(error_of_start(other, s.path), EADDRINUSE);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, DoesNotWaitForAServerThatIsTooBusyToAccept) {
  ServerSetting s;
  const base::Fd listener = transport::listen_unix(s.path, 0);
  std::vector<base::Fd> waiting;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) waiting.push_back(transport::connect_unix(s.path, 0ms)),
               std::system_error);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of_start(s, s.path), EADDRINUSE);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 30s);
  EXPECT_TRUE(fs::exists(s.path));
}

TEST(Server, LeavesWhatIsNoSocketAlone) {
  ServerSetting s;
  std::ofstream(s.path) << "precious";
  EXPECT_EQ(error_of_start(s, s.path), EADDRINUSE);
  EXPECT_EQ(fs::file_size(s.path), 8U);
  const std::string link = s.folder.file("link");
  { const base::Fd left_behind = transport::listen_unix(s.folder.file("real")); }
  fs::create_symlink(s.folder.file("real"), link);
  EXPECT_EQ(error_of_start(s, link), EADDRINUSE);
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST(Server, RemovesItsSocketWhenItStopsOrGoes) {
  ServerSetting s;
  s.server.start(s.path);
  EXPECT_TRUE(fs::is_socket(s.path));
  s.server.stop();
  EXPECT_FALSE(fs::exists(s.path));
  {
    Server other(s.loop, s.tape.log());
    other.start(s.path);
    EXPECT_TRUE(fs::is_socket(s.path));
  }
  EXPECT_FALSE(fs::exists(s.path));
}

TEST(Server, RemovesOnlyItsOwnSocket) {
  ServerSetting s;
  s.server.start(s.path);
  fs::rename(s.path, s.path + ".away");
  const base::Fd another = transport::listen_unix(s.path);
  s.server.stop();
  EXPECT_TRUE(fs::is_socket(s.path));
  fs::remove(s.path);
  s.server.stop();
}

TEST(Server, RestoresItsSocketWhereTheFileIsGone) {
  ServerSetting s;
  s.server.start(s.path);
  const auto before = s.connect();
  const base::Fd in_the_backlog = transport::connect_unix(s.path);
  EXPECT_TRUE(s.server.is_reachable());
  fs::remove(s.path);
  EXPECT_FALSE(s.server.is_reachable());
  s.server.restore();
  EXPECT_TRUE(s.server.is_reachable());
  EXPECT_EQ(s.ask(*before, request("1", "echo")), Strings{result("1", "null")});
  EXPECT_EQ(s.ask(*s.connect(), request("2", "echo")), Strings{result("2", "null")});
  ASSERT_EQ(write(in_the_backlog.get(), "{}\n", 3), 3);
  s.turn();
  char first = 0;
  EXPECT_EQ(recv(in_the_backlog.get(), &first, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(first, '{');
}

TEST(Server, StopLetsWhatRunsFinishAndTakesNobodyNew) {
  ServerSetting s;
  s.server.start(s.path);
  int empty = 0;
  s.events.on_empty = [&] { ++empty; };
  const auto client = s.connect();
  const auto idle = s.connect();
  EXPECT_EQ(s.ask(*client, request("1", "late") + '\n' + request("2", "echo")), Strings{});
  s.server.stop();
  s.turn();
  EXPECT_THROW(transport::connect_unix(s.path), std::system_error);
  EXPECT_TRUE(idle->ended());
  EXPECT_EQ(s.server.client_count(), 1U);
  EXPECT_EQ(empty, 0);
  s.replies.front().ok(1);
  s.turn();
  EXPECT_EQ(client->take(Framing::lines), Strings{result("1", "1")});
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(empty, 1);
}

TEST(Server, MayBeStoppedByAHandlerAndStartedAgain) {
  ServerSetting s;
  s.server.register_method("stop", [&](const Request&) -> rpc::Json {
    s.server.stop();
    return true;
  });
  for (int i = 0; i < 2; ++i) {
    s.server.start(s.path);
    const auto client = s.connect();
    EXPECT_EQ(s.ask(*client, request("1", "stop") + '\n' + request("2", "echo")), Strings{result("1", "true")});
    EXPECT_TRUE(client->ended());
  }
}

TEST(Server, GoesWithClientsConnectedAndAnswersOwed) {
  transport::TemporaryFolder folder;
  base::VirtualClock clock;
  transport::Loop loop(clock);
  base::LogTape tape;
  std::vector<Reply<>> replies;
  FarEnd far([&] {
    auto server = std::make_unique<Server>(loop, tape.log());
    server->methods().add("late", [&](Reply<> reply) { replies.push_back(std::move(reply)); });
    server->start(folder.file("socket"));
    auto channel = std::make_unique<transport::FdChannel>(loop, transport::connect_unix(folder.file("socket")));
    const std::string text = request("1", "late") + '\n';
    EXPECT_EQ(channel->write(text).count, text.size());
    for (int i = 0; i < 5; ++i) loop.turn(loop.now());
    EXPECT_EQ(replies.size(), 1U);
    return channel;
  }());
  EXPECT_TRUE(replies.at(0).abandoned());
  for (int i = 0; i < 5; ++i) loop.turn(loop.now());
  EXPECT_TRUE(far.ended());
}

TEST(Server, RefusesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ServerSetting s;
  fs::permissions(s.folder.path(), fs::perms::all);
  s.server.start(s.path);
  fs::permissions(s.path, fs::perms::all);
  const pid_t child = fork();
  if (child == 0) {
    // The server is not served while we are here: it is connected to by its backlog.
    if (setuid(65534) != 0) _exit(2);
    try {
      const base::Fd socket = transport::connect_unix(s.path);
      char byte = 0;
      _exit(recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 3);
    } catch (const std::system_error&) {
      _exit(4);
    }
  }
  int status = -1;
  ASSERT_TRUE(s.turn_until([&] {
    usleep(100);
    return waitpid(child, &status, WNOHANG) == child;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(s.server.client_count(), 0U);
  EXPECT_EQ(s.tape.lines(), Strings{"warn  Connection of another user refused uid=65534 pid=" + std::to_string(child)});
}

TEST(Server, WithoutDescriptorsGoesOnAsSoonAsAClientLeaves) {
  ServerSetting s;
  s.server.start(s.path);
  s.connect().reset();  // without descriptors a sanitizer cannot look at objects of a kind that is new to it
  s.turn();
  auto first = s.connect();
  const base::Fd second = transport::connect_unix(s.path);
  {
    const base::FewDescriptors none;
    s.turn();
    EXPECT_EQ(s.server.client_count(), 1U);
    first.reset();
    s.turn();
    EXPECT_EQ(s.server.client_count(), 1U);
  }
  EXPECT_EQ(transport::identity_of(second.get()).pid, getpid());
}

}  // namespace
}  // namespace duet::peer
