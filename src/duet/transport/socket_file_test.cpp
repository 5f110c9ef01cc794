#include "duet/transport/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/transport/unix_socket.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;

/// The errno of a failed attempt; 0: it listens.
int attempt(const std::string& path, std::optional<UnixListener>& listener, std::chrono::milliseconds patience = 5s) {
  try {
    listener = listen_replacing_stale(path, patience);
    return 0;
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.code().value();
  }
}

int attempt(const std::string& path) {
  std::optional<UnixListener> listener;
  return attempt(path, listener);
}

void leave_stale_socket(const std::string& path) { listen_unix(path); }

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(SocketFile, IsMadeForAListenerAndGoesWithIt) {
  const TemporaryFolder folder;
  {
    const UnixListener listener = listen_replacing_stale(folder.file("socket"));
    EXPECT_TRUE(listener.file.is_in_place());
    EXPECT_TRUE(connect_unix(folder.file("socket")));
    EXPECT_EQ(files_in(folder.path()), 1U);
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(SocketFile, AStaleSocketIsReplaced) {
  const TemporaryFolder folder;
  leave_stale_socket(folder.file("socket"));
  const UnixListener listener = listen_replacing_stale(folder.file("socket"));
  EXPECT_TRUE(connect_unix(folder.file("socket")));
}

TEST(SocketFile, WhatIsInUseOrNoSocketStays) {
  const TemporaryFolder folder;
  const UnixListener listener = listen_replacing_stale(folder.file("socket"));
  EXPECT_EQ(attempt(folder.file("socket")), EADDRINUSE);
  std::ofstream(folder.file("file")) << "text";
  EXPECT_EQ(attempt(folder.file("file")), EADDRINUSE);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder.file("file")));
  EXPECT_EQ(attempt(folder.file("missing/socket")), ENOENT);
  EXPECT_TRUE(listener.file.is_in_place());
}

TEST(SocketFile, OfAnotherServerIsNotRemoved) {
  const TemporaryFolder folder;
  std::optional<UnixListener> first(listen_replacing_stale(folder.file("socket")));
  std::filesystem::remove(folder.file("socket"));
  EXPECT_FALSE(first->file.is_in_place());
  const UnixListener second = listen_replacing_stale(folder.file("socket"));
  first.reset();
  EXPECT_TRUE(second.file.is_in_place());
}

TEST(SocketFile, AMovedOneHasLeftNothingBehind) {
  const TemporaryFolder folder;
  UnixListener listener = listen_replacing_stale(folder.file("socket"));
  SocketFile file = std::move(listener.file);
  EXPECT_FALSE(listener.file.is_in_place());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(file.is_in_place());
  file = {};
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(SocketFile, AFolderThatSomebodyHoldsLockedIsGivenUp) {
  const TemporaryFolder folder;
  const base::Fd held(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  std::optional<UnixListener> listener;
  EXPECT_EQ(attempt(folder.file("socket"), listener, 10ms), ETIMEDOUT);
  flock(held.get(), LOCK_UN);
  EXPECT_EQ(attempt(folder.file("socket"), listener), 0);
}

TEST(ThreadsSocketFile, OfManyThreadsThatTryAtOnceOneListens) {
  const TemporaryFolder folder;
  const std::string path = folder.file("socket");
  constexpr std::size_t starters = 8;
  for (int round = 0; round < 50; ++round) {
    leave_stale_socket(path);
    std::vector<std::optional<UnixListener>> listeners(starters);
    std::vector<int> errors(starters, -1);
    std::atomic<std::size_t> ready = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < starters; ++i) {
      threads.emplace_back([&, i] {
        for (++ready; ready < starters;) std::this_thread::yield();
        errors[i] = attempt(path, listeners[i], test_patience);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::count(errors.begin(), errors.end(), 0), 1);
    EXPECT_EQ(std::count(errors.begin(), errors.end(), EADDRINUSE), starters - 1);
    EXPECT_TRUE(connect_unix(path));
  }
}

// A server that stops removes its file without the folder's lock.
TEST(ThreadsSocketFile, OneThatIsRemovedAtThatMomentIsInNobodysWay) {
  const TemporaryFolder folder;
  const std::string path = folder.file("socket");
  constexpr int rounds = 3000;
  std::atomic<int> begun = 0;
  std::atomic<int> removed = 0;
  std::thread stopping([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (begun < round) std::this_thread::yield();
      const auto when = std::chrono::steady_clock::now() + round % 100 * 400ns;
      while (std::chrono::steady_clock::now() < when) continue;
      unlink(path.c_str());
      removed = round;
    }
  });
  int refused = 0;
  for (int round = 1; round <= rounds; ++round) {
    leave_stale_socket(path);
    std::optional<UnixListener> listener;
    begun = round;
    if (attempt(path, listener) == EADDRINUSE) ++refused;  // else it may be its own file that was removed
    while (removed < round) std::this_thread::yield();
  }
  stopping.join();
  EXPECT_EQ(refused, 0);
}

/// A process that tries to listen and then waits until `stay` is closed. Exits with the errno.
pid_t start_starter(const std::string& path, const base::Pipe& told, const base::Pipe& stay) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  close(stay.write_end.get());
  std::optional<UnixListener> listener;
  const char error = static_cast<char>(attempt(path, listener, test_patience));
  char end = 0;
  if (write(told.write_end.get(), &error, 1) != 1 || read(stay.read_end.get(), &end, 1) != 0) _exit(255);
  _exit(0);
}

TEST(SocketFile, OfManyProcessesThatTryAtOnceOneListens) {
  const TemporaryFolder folder;
  const std::string path = folder.file("socket");
  constexpr std::size_t starters = 20;
  leave_stale_socket(path);
  const base::Pipe told = base::make_pipe();
  base::Pipe stay = base::make_pipe();
  std::vector<pid_t> processes;
  for (std::size_t i = 0; i < starters; ++i) processes.push_back(start_starter(path, told, stay));
  std::string errors;
  for (char error = 0; errors.size() < starters && read(told.read_end.get(), &error, 1) == 1;) errors += error;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), 0), 1);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), EADDRINUSE), starters - 1);
  EXPECT_TRUE(connect_unix(path));
  stay.write_end.reset();
  for (const pid_t process : processes) waitpid(process, nullptr, 0);
}

}  // namespace
}  // namespace duet::transport
