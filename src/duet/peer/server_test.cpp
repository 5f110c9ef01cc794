#include "duet/peer/server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/conversation_test.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string quoted_text(std::size_t size) { return "[\"" + std::string(size, 'x') + "\"]"; }

struct Setting {
  explicit Setting(ServerLimits limits = {}) : server(loop, tape.log(), limits) {
    server.register_method("echo", [](const Request& asked) {
      return asked.params.raw().empty() ? Answer(nullptr) : Answer::view(asked.params.raw());
    });
    server.register_method("whoami", [](const Request& asked) -> Answer {
      const Peer& peer = asked.connection.peer();
      return {{"connection", peer.connection}, {"pid", peer.pid}, {"uid", peer.uid}};
    });
    server.register_method("long", [this](const Request& asked) {
      asking.insert(&asked.connection);
      return Answer::raw('"' + std::string(100'000, 'y') + '"');
    });
    Method late;
    late.name = "late";
    late.late_handler = [this](const Request&, Reply reply) { replies.push_back(std::move(reply)); };
    server.methods().add(std::move(late));
  }

  std::unique_ptr<FarEnd> connect() {
    auto far = std::make_unique<FarEnd>(std::make_unique<transport::FdChannel>(loop, transport::connect_unix(path)));
    turn();
    return far;
  }
  void turn(int times = 10) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  template <typename Done>
  bool turn_until(Done done) {
    for (int i = 0; i < 200'000; ++i) {
      if (done()) return true;
      loop.turn(loop.now());
    }
    return false;
  }
  Strings ask(FarEnd& far, const std::string& message) {
    far.send(message + '\n');
    turn();
    return far.take(Door::socket);
  }

  transport::TemporaryFolder folder;
  std::string path = folder.file("socket");
  base::VirtualClock clock;
  transport::Loop loop{clock};
  LogTape tape;
  std::vector<Reply> replies;
  std::set<Connection*> asking;  // for `long`
  Server server;
};

int error_of_start(Setting& s, const std::string& path) {
  try {
    s.server.start(path);
    return 0;
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

TEST(Server, ServesManyClients) {
  Setting s;
  s.server.start(s.path);
  std::vector<std::unique_ptr<FarEnd>> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(s.connect());
  EXPECT_EQ(s.server.client_count(), 100U);
  for (int i = 0; i < 100; ++i) {
    for (auto& client : clients) client->send(request(std::to_string(i), "echo", "[1]") + '\n');
  }
  s.turn(200);
  for (auto& client : clients) {
    const Strings answers = client->take(Door::socket);
    ASSERT_EQ(answers.size(), 100U);
    EXPECT_EQ(answers[99], result("99", "[1]"));
  }
  clients.resize(40);
  s.turn();
  EXPECT_EQ(s.server.client_count(), 40U);
}

TEST(Server, TellsHandlersWhoAsks) {
  Setting s;
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

TEST(Server, TakesMethodsAtAnyTimeButNoNameTwice) {
  Setting s;
  s.server.start(s.path);
  const auto client = s.connect();
  EXPECT_EQ(s.ask(*client, request("1", "new")), Strings{error("1", -32601, "Method not found")});
  s.server.register_methods(
      {{"new", [](const Request&) -> Answer { return 1; }}, {"newer", [](const Request&) -> Answer { return 2; }}});
  EXPECT_EQ(s.ask(*client, request("1", "new")), Strings{result("1", "1")});
  EXPECT_EQ(s.ask(*client, request("2", "newer")), Strings{result("2", "2")});
  EXPECT_THROW(s.server.register_method("new", [](const Request&) -> Answer { return 3; }), std::invalid_argument);
}

TEST(Server, ALateAnswerHoldsUpNoOtherConnection) {
  Setting s;
  s.server.start(s.path);
  const auto first = s.connect();
  const auto second = s.connect();
  EXPECT_EQ(s.ask(*first, request("1", "late")), Strings{});
  EXPECT_EQ(s.ask(*second, request("1", "echo")), Strings{result("1", "null")});
  s.replies.front().ok(true);
  s.turn();
  EXPECT_EQ(first->take(Door::socket), Strings{result("1", "true")});
}

TEST(Server, ClientsMayDieAtAnyTime) {
  Setting s;
  s.server.start(s.path);
  int empty = 0;
  s.server.on_empty = [&] { ++empty; };
  for (int i = 0; i < 20; ++i) {
    const auto client = s.connect();
    client->read(false);
    client->send(request("1", i % 2 == 0 ? "late" : "long") + '\n' + request("2", "long") + "\n{\"half");
    s.turn(i % 4);
  }
  s.turn(50);
  EXPECT_EQ(s.server.client_count(), 0U);
  EXPECT_GE(empty, 1);
  for (const Reply& reply : s.replies) EXPECT_TRUE(reply.abandoned());
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, StartsAtAPathOfAThousandBytes) {
  Setting s;
  s.path = s.folder.file_of_length(1000, "daemon.sock");
  s.server.start(s.path);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
  s.server.stop();
  EXPECT_FALSE(fs::exists(s.path));
}

TEST(Server, TakesASocketThatListensAlready) {
  Setting s;
  s.server.start(transport::listen_unix(s.path));
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
  s.server.stop();
  EXPECT_TRUE(fs::exists(s.path));  // it is not ours
}

TEST(Server, ReplacesASocketNobodyListensOn) {
  Setting s;
  { const base::Fd left_behind = transport::listen_unix(s.path); }
  s.server.start(s.path);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, LeavesALiveSocketAlone) {
  Setting s;
  Setting other;
  s.server.start(s.path);
  EXPECT_EQ(error_of_start(other, s.path), EADDRINUSE);
  EXPECT_EQ(s.ask(*s.connect(), request("1", "echo")), Strings{result("1", "null")});
}

TEST(Server, DoesNotWaitForAServerThatIsTooBusyToAccept) {
  Setting s;
  const base::Fd listener = transport::listen_unix(s.path, 0);
  std::vector<base::Fd> waiting;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) waiting.push_back(transport::connect_unix(s.path, 0ms)),
               std::system_error);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of_start(s, s.path), EADDRINUSE);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  EXPECT_TRUE(fs::exists(s.path));
}

TEST(Server, LeavesWhatIsNoSocketAlone) {
  Setting s;
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
  Setting s;
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
  Setting s;
  s.server.start(s.path);
  fs::rename(s.path, s.path + ".away");
  const base::Fd another = transport::listen_unix(s.path);
  s.server.stop();
  EXPECT_TRUE(fs::is_socket(s.path));
  fs::remove(s.path);
  s.server.stop();
}

TEST(Server, StartsAgainWhereItsSocketIsGone) {
  Setting s;
  s.server.start(s.path);
  const auto before = s.connect();
  const base::Fd in_the_backlog = transport::connect_unix(s.path);
  EXPECT_TRUE(s.server.is_reachable());
  fs::remove(s.path);
  EXPECT_FALSE(s.server.is_reachable());
  s.server.start(s.path);
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
  Setting s;
  s.server.start(s.path);
  int empty = 0;
  s.server.on_empty = [&] { ++empty; };
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
  EXPECT_EQ(client->take(Door::socket), Strings{result("1", "1")});
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(empty, 1);
}

TEST(Server, MayBeStoppedByAHandlerAndStartedAgain) {
  Setting s;
  s.server.register_method("stop", [&](const Request&) -> Answer {
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
  LogTape tape;
  std::vector<Reply> replies;
  FarEnd far([&] {
    auto server = std::make_unique<Server>(loop, tape.log());
    Method late;
    late.name = "late";
    late.late_handler = [&](const Request&, Reply reply) { replies.push_back(std::move(reply)); };
    server->methods().add(std::move(late));
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
  Setting s;
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
  Setting s;
  s.server.start(s.path);
  s.connect().reset();  // without descriptors a sanitizer cannot look at objects of a kind that is new to it
  s.turn();
  auto first = s.connect();
  const base::Fd second = transport::connect_unix(s.path);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(base::Fd(dup(0)).get()), before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  s.turn();
  EXPECT_EQ(s.server.client_count(), 1U);
  first.reset();
  s.turn();
  EXPECT_EQ(s.server.client_count(), 1U);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(transport::identity_of(second.get()).pid, getpid());
}

TEST(Broadcast, ReachesEveryClient) {
  Setting s;
  s.server.start(s.path);
  const auto first = s.connect();
  const auto second = s.connect();
  EXPECT_EQ(s.server.broadcast("event.tick", R"({"seq":1})"), 0U);
  s.turn();
  EXPECT_EQ(first->take(Door::socket), Strings{notification("event.tick", R"({"seq":1})")});
  EXPECT_EQ(second->take(Door::socket), Strings{notification("event.tick", R"({"seq":1})")});
}

TEST(Broadcast, AClientThatDoesNotReadMissesEventsAndNeverItsReplies) {
  ServerLimits limits;
  limits.max_unread_broadcast = 50'000;
  Setting s(limits);
  s.server.start(s.path);
  const auto slow = s.connect();
  const auto quick = s.connect();
  int missed = 0;
  s.server.on_missed = [&](Connection& connection) {
    ++missed;
    EXPECT_EQ(connection.peer().connection, 1U);
  };
  slow->read(false);
  slow->send(request("1", "long") + '\n' + request("2", "long") + '\n');
  s.turn();
  constexpr int events = 3000;
  std::size_t missed_sum = 0;
  for (int i = 0; i < events; ++i) {
    missed_sum += s.server.broadcast("event.tick", quoted_text(1000));
    s.turn(1);
  }
  slow->send(request("3", "long") + '\n');
  ASSERT_TRUE(s.turn_until([&] { return slow->sent_all(); }));
  s.turn();
  EXPECT_GT(missed, 1000);
  EXPECT_EQ(missed_sum, static_cast<std::size_t>(missed));
  EXPECT_EQ(quick->take(Door::socket).size(), std::size_t{events});
  slow->read(true);
  Strings heard;
  ASSERT_TRUE(s.turn_until([&] {
    for (std::string& message : slow->take(Door::socket)) heard.push_back(std::move(message));
    return !heard.empty() && heard.back().starts_with(R"({"jsonrpc":"2.0","id":3)");
  }));
  EXPECT_EQ(heard.size(), static_cast<std::size_t>(events - missed) + 3);
  EXPECT_TRUE(slow->is_whole());
}

/// Clients that ask for much and do not read.
struct Crowd : Setting {
  static constexpr std::size_t bound = 2'000'000;
  static ServerLimits limits() {
    ServerLimits bounded;
    bounded.max_waiting = bound;
    bounded.connection.max_waiting = 1'000'000;
    return bounded;
  }
  Crowd() : Setting(limits()) { server.start(path); }

  void add_greedy(int requests) {
    greedy.push_back(connect());
    greedy.back()->read(false);
    for (int i = 0; i < requests; ++i) greedy.back()->send(request("1", "long") + '\n');
    turn(200);
  }
  std::vector<std::unique_ptr<FarEnd>> greedy;
};

TEST(ServerBound, HoldsHoweverManyClientsDoNotRead) {
  Crowd s;
  for (int i = 0; i < 20; ++i) {
    s.add_greedy(1000);
    std::size_t sum = 0;
    for (const Connection* connection : s.asking) sum += connection->load();
    EXPECT_LT(sum, Crowd::bound + s.asking.size() * 150'000) << i;  // one answer each is always given
  }
  EXPECT_EQ(s.asking.size(), 20U);
}

TEST(ServerBound, WhoeverReadsIsServedBesideThoseWhoDoNot) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(1000);
  const auto modest = s.connect();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(s.ask(*modest, request("1", "echo")), Strings{result("1", "null")});
}

TEST(ServerBound, CountsBroadcastsToo) {
  Crowd s;
  for (int i = 0; i < 30; ++i) s.add_greedy(1);
  for (int i = 0; i < 5000; ++i) {
    s.server.broadcast("event.tick", quoted_text(1000));
    s.turn(1);
  }
  std::size_t sum = 0;
  for (const Connection* connection : s.asking) sum += connection->load();
  EXPECT_EQ(s.asking.size(), 30U);
  EXPECT_LT(sum, Crowd::bound + 30 * 2000);
}

TEST(ServerBound, AnHonestClientIsNotPausedForEverBecauseOfTheOthers) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(1000);
  const auto honest = s.connect();
  for (int i = 0; i < 10; ++i) {
    honest->read(false);
    for (int k = 0; k < 8; ++k) honest->send(request(std::to_string(k), "long") + '\n');
    s.turn(50);
    honest->read(true);
    Strings heard;
    ASSERT_TRUE(s.turn_until([&] {
      for (std::string& answer : honest->take(Door::socket)) heard.push_back(std::move(answer));
      return heard.size() == 8;
    })) << i;
  }
}

TEST(ServerBound, ThePausedGoOnWhenThereIsRoomAgain) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(30);
  for (const auto& greedy : s.greedy) greedy->read(true);
  for (const auto& greedy : s.greedy) {
    std::size_t heard = 0;
    ASSERT_TRUE(s.turn_until([&] {
      heard += greedy->take(Door::socket).size();
      return heard == 30;
    }));
  }
}

TEST(ServerBound, ForgetsWhatConnectionsHeldThatAreGone) {
  Crowd s;
  s.server.register_method("vanish", [](const Request& asked) {
    asked.connection.close();
    return Answer::raw('"' + std::string(500'000, 'z') + '"');
  });
  for (int i = 0; i < 20; ++i) s.ask(*s.connect(), request("1", "vanish"));
  const auto honest = s.connect();
  for (int i = 0; i < 3; ++i) {
    honest->read(false);
    for (int k = 0; k < 5; ++k) honest->send(request("1", "long") + '\n');
    s.turn(50);
    honest->send(request("2", "echo") + '\n');
    s.turn(50);
    honest->read(true);
    std::size_t heard = 0;
    ASSERT_TRUE(s.turn_until([&] {
      heard += honest->take(Door::socket).size();
      return heard == 6;
    }));
  }
}

}  // namespace
}  // namespace duet::peer
