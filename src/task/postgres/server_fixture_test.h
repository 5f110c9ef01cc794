#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/fd.h"
#include "duet/transport/await_test.h"
#include "duet/transport/loop.h"
#include "duet/transport/temporary_folder_test.h"
#include "task/postgres/admin_session.h"
#include "task/postgres/environment_test.h"
#include "task/postgres/store_address.h"

namespace duet::task::postgres {

/// A PostgreSQL of its own for a test, in a temporary folder, on a Unix socket, without a password. Root starts it as
/// `nobody`, since PostgreSQL does not run as root. It is ended with this, and with the test's thread.
class TestServer {
 public:
  /// Where `initdb` and `postgres` are; none: they are not installed.
  static std::optional<std::string> programs() {
    std::vector<std::string> folders;
    for (const char* version : {"18", "17", "16", "15", "14"}) {
      folders.push_back(std::string("/usr/lib/postgresql/") + version + "/bin");
    }
    folders.emplace_back("/usr/bin");
    for (const std::string& folder : folders) {
      if (::access((folder + "/initdb").c_str(), X_OK) == 0) return folder;
    }
    return std::nullopt;
  }

  TestServer() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    std::filesystem::create_directory(data());
    std::filesystem::create_directory(sockets());
    if (::geteuid() == 0) {
      if (::chown(data().c_str(), 65534, 65534) != 0 || ::chown(sockets().c_str(), 65534, 65534) != 0) std::abort();
    }
    std::filesystem::permissions(data(), std::filesystem::perms(0700));
    const int made = wait_for(spawn(
        {*programs() + "/initdb", "-D", data(), "-U", "duet", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}));
    if (made != 0) throw std::runtime_error("initdb failed: " + read_log());
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() { stop(SIGQUIT); }

  std::string data() const { return folder_.file("data"); }
  std::string sockets() const { return folder_.file("s"); }
  std::string log() const { return folder_.file("log"); }
  std::string read_log() const {
    std::ifstream file(log());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string socket_file(int port) const { return sockets() + "/.s.PGSQL." + std::to_string(port); }

  /// From the next start on, at a free port of 127.0.0.1 as well.
  void listen_on_loopback() {
    const base::Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) std::abort();
    port_ = ntohs(address.sin_port);
    listen_ = "127.0.0.1";
  }
  int port() const { return port_; }

  /// A line of postgresql.conf, for the next start.
  void set(const std::string& line) { std::ofstream(data() + "/postgresql.conf", std::ios::app) << line << '\n'; }
  /// A file that only the server may read.
  std::string keep(const std::string& name, const std::string& text) {
    const std::string path = data() + "/" + name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    if (::geteuid() == 0 && ::chown(path.c_str(), 65534, 65534) != 0) std::abort();
    return path;
  }

  void start() {
    // Processes of one that was killed may take a moment to go.
    ASSERT_TRUE(transport::await([&] {
      if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
      if (pid_ <= 0) pid_ = spawn(command());
      return AdminSession::open(address(), std::chrono::seconds(2)).has_value();
    })) << "the server did not start: "
        << read_log();
  }
  void start_without_waiting() { pid_ = spawn(command()); }
  /// Also where nothing may be written.
  bool takes_connections() const {
    const auto any = StoreAddress::parse(store() + "&target_session_attrs=any", {"test"});
    return AdminSession::open(any.value(), std::chrono::seconds(2)).has_value();
  }
  void stop(int how = SIGINT) {
    if (pid_ <= 0) return;
    ::kill(pid_, how);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

  /// Through the Unix socket of that port; 0: the server's own.
  std::string store(int port = 0) const {
    return "postgresql://duet@/postgres?host=" + sockets() + "&port=" + std::to_string(port == 0 ? port_ : port);
  }
  StoreAddress address(int port = 0) const { return StoreAddress::parse(store(port), {"test"}).value(); }
  std::unique_ptr<AdminSession> open() const { return AdminSession::open(address(), std::chrono::seconds(60)).value(); }

  /// Starts a program as the server's user, ended with the test's thread; the caller ends and reaps it.
  pid_t spawn(std::vector<std::string> arguments) const {
    std::vector<std::string> all = {"/usr/bin/setpriv", "--pdeathsig", "QUIT"};
    if (::geteuid() == 0) all.insert(all.end(), {"--reuid=65534", "--regid=65534", "--clear-groups"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> words;
    for (std::string& word : all) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    char path[] = "PATH=/usr/bin:/bin";
    char language[] = "LC_ALL=C";
    char* environment[] = {path, language, nullptr};
    const int failed = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environment);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("setpriv cannot be started");
    return pid;
  }

 private:
  std::vector<std::string> command() const {
    std::vector<std::string> words = {*programs() + "/postgres", "-D", data(), "-k", sockets()};
    words.insert(words.end(), {"-p", std::to_string(port_), "-c", "listen_addresses=" + listen_});
    words.insert(words.end(), {"-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=60"});
    return words;
  }

  static int wait_for(pid_t pid) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    return status;
  }

  transport::TemporaryFolder folder_;
  int port_ = 5432;
  std::string listen_;
  pid_t pid_ = -1;
};

/// Tests with a server, one for all of a suite. They are skipped with a line where PostgreSQL is not installed.
class ServerTest : public testing::Test {
 public:
  static void TearDownTestSuite() { shared_.reset(); }

 protected:
  void SetUp() override {
    if (!TestServer::programs()) GTEST_SKIP() << "SKIPPED: PostgreSQL is not installed (Debian: postgresql)";
    if (!shared_) {
      shared_ = std::make_unique<TestServer>();
      shared_->start();
    }
  }
  TestServer& server() { return *shared_; }

 private:
  inline static std::unique_ptr<TestServer> shared_;
  Environment host_{"PGHOST", std::nullopt};
  Environment service_{"PGSERVICE", std::nullopt};
  Environment mode_{"PGSSLMODE", std::nullopt};
};

/// Turns a loop until `done`; false if that takes too long.
template <typename Done>
bool turn_until(transport::Loop& loop, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + transport::test_patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    loop.turn(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace duet::task::postgres
