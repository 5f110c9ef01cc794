#include "duet/transport/unix_socket.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;

/// The errno that the call throws; 0: none.
template <typename Call>
int error_of(Call call) {
  try {
    call();
    return 0;
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

void expect_conversation(const base::Fd& listener, const base::Fd& client) {
  const base::Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(send(client.get(), "hello", 5, 0), 5);
  char text[6] = {};
  EXPECT_EQ(recv(accepted.get(), text, 5, MSG_WAITALL), 5);
  EXPECT_STREQ(text, "hello");
}

TEST(UnixSocket, WorksAtPathsOfAnyLength) {
  const TemporaryFolder folder;
  for (const std::size_t length : {50U, 106U, 107U, 108U, 109U, 300U, 1000U}) {
    const std::string path = folder.file_of_length(length, "daemon.sock");
    ASSERT_EQ(path.size(), length);
    const base::Fd listener = listen_unix(path);
    EXPECT_TRUE(std::filesystem::is_socket(path)) << length;
    expect_conversation(listener, connect_unix(path));
    std::filesystem::remove(path);
  }
}

TEST(UnixSocket, ARelativePathIsRelativeToTheWorkingFolder) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string name(107, 'n');
  const base::Fd listener = listen_unix(name);
  expect_conversation(listener, connect_unix(name));
  EXPECT_EQ(error_of([] { connect_unix(std::string(108, 'n')); }), ENAMETOOLONG);
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_socket(folder.file(name)));
}

TEST(UnixSocket, AFileNameTooLongForAnyAddressIsRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { listen_unix(folder.file(std::string(150, 'n'))); }), ENAMETOOLONG);
}

TEST(UnixSocket, APathThatIsNoneIsRefused) {
  EXPECT_EQ(error_of([] { listen_unix(""); }), EINVAL);
  EXPECT_EQ(error_of([] { connect_unix(""); }), EINVAL);
  const std::string abstract_name("\0hidden", 7);
  EXPECT_EQ(error_of([&] { listen_unix(abstract_name); }), EINVAL);
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { listen_unix(folder.file("cut") + std::string("\0off", 4)); }), EINVAL);
  EXPECT_FALSE(std::filesystem::exists(folder.file("cut")));
}

TEST(UnixSocket, AFolderThatIsMissingIsNamedByTheError) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { listen_unix(folder.file("missing/daemon.sock")); }), ENOENT);
  EXPECT_EQ(error_of([&] { listen_unix(folder.file(std::string(200, 'x') + "/daemon.sock")); }), ENOENT);
}

TEST(UnixSocket, TheFileIsOnlyForItsOwnerWhateverTheUmask) {
  const TemporaryFolder folder;
  for (const mode_t mask : {0000U, 0022U, 0077U}) {
    const std::string path = folder.file("socket" + std::to_string(mask));
    const mode_t before = umask(mask);
    const base::Fd listener = listen_unix(path);
    umask(before);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
  }
}

TEST(UnixSocket, WhatIsThereAlreadyIsNotRemoved) {
  const TemporaryFolder folder;
  { const base::Fd listener = listen_unix(folder.file("stale")); }
  EXPECT_EQ(error_of([&] { listen_unix(folder.file("stale")); }), EADDRINUSE);
  EXPECT_EQ(error_of([&] { connect_unix(folder.file("stale")); }), ECONNREFUSED);
  EXPECT_EQ(error_of([&] { connect_unix(folder.file("missing")); }), ENOENT);
}

/// What the call's exception says.
template <typename Call>
std::string text_of_error(Call call) {
  try {
    call();
    return {};
  } catch (const std::system_error& error) {
    return error.what();
  }
}

TEST(UnixSocket, EveryErrorNamesThePath) {
  const TemporaryFolder folder;
  const std::string far_away = folder.file(std::string(200, 'x') + "/socket");
  for (const std::string& path : {folder.file("missing/socket"), far_away}) {
    EXPECT_NE(text_of_error([&] { connect_unix(path); }).find(path), std::string::npos) << path;
    EXPECT_NE(text_of_error([&] { listen_unix(path); }).find(path), std::string::npos) << path;
  }
}

TEST(UnixSocket, KnowsWhoIsAtTheOtherEnd) {
  const TemporaryFolder folder;
  const base::Fd listener = listen_unix(folder.file("socket"));
  const base::Fd client = connect_unix(folder.file("socket"));
  const PeerIdentity identity = identity_of(client.get());
  EXPECT_EQ(identity.pid, getpid());
  EXPECT_EQ(identity.uid, geteuid());
  EXPECT_EQ(error_of([] { identity_of(-1); }), EBADF);
}

/// A server that does not accept, with as many connections waiting as it allows.
struct BusyServer {
  explicit BusyServer(const std::string& path) : listener(listen_unix(path, 0)) {
    while (waiting.size() < 100) {
      try {
        waiting.push_back(connect_unix(path, 0ms));
      } catch (const std::system_error&) {
        return;
      }
    }
    ADD_FAILURE() << "the backlog is endless";
  }
  base::Fd listener;
  std::vector<base::Fd> waiting;
};

TEST(UnixSocket, AServerThatDoesNotAcceptIsGivenUp) {
  const TemporaryFolder folder;
  const BusyServer server(folder.file("socket"));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of([&] { connect_unix(folder.file("socket"), 30ms); }), ETIMEDOUT);
  const auto waited = std::chrono::steady_clock::now() - before;
  EXPECT_GE(waited, 25ms);  // the kernel counts in ticks
  EXPECT_LT(waited, test_patience);
}

TEST(ThreadsUnixSocket, AConnectThatASignalInterruptsGoesOn) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR2, &action, &before);
  const TemporaryFolder folder;
  const BusyServer server(folder.file("socket"));
  const pthread_t connecting = pthread_self();
  const pid_t connecting_id = gettid();
  std::thread accepting([&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(await_asleep(connecting_id));
      pthread_kill(connecting, SIGUSR2);
    }
    EXPECT_TRUE(await_asleep(connecting_id));
    EXPECT_TRUE(base::Fd(accept4(server.listener.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  });
  EXPECT_EQ(error_of([&] { connect_unix(folder.file("socket"), test_patience); }), 0);
  accepting.join();
  sigaction(SIGUSR2, &before, nullptr);
}

}  // namespace
}  // namespace duet::transport
