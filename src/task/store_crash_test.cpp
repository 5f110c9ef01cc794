#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

// Submits tasks, several at once, and writes the number of each that was taken to the pipe; until it is killed.
[[noreturn]] void submit_for_ever(const std::string& folder, int pipe) {
  transport::Loop loop;
  const base::Fd directory = open_folder(folder);
  Store store(loop, std::make_unique<StoreFolder>(directory.get()));
  TaskId id = store.read([](StoreReader& tasks) { return tasks.newest(); }).value();
  std::function<void()> submit = [&] {
    const Submission submission{.prompt = std::string((id * 37) % 6000, 'p')};
    ++id;
    store.write(insertion({.id = id}, submission, [&, submitted = id](bool kept) {
      if (!kept) _exit(1);
      if (write(pipe, &submitted, sizeof submitted) != sizeof submitted) _exit(2);
      submit();
    }));
  };
  for (int i = 0; i < 8; ++i) submit();
  loop.run();
  _exit(3);
}

// `begun`: the life is counted from the first that was acknowledged.
std::set<TaskId> submit_until_killed(const std::string& folder, std::chrono::microseconds life, bool begun) {
  base::Pipe pipe = base::make_pipe();
  const pid_t child = fork();
  if (child == 0) submit_for_ever(folder, pipe.write_end.get());
  pipe.write_end.reset();
  pollfd first{.fd = pipe.read_end.get(), .events = POLLIN, .revents = 0};
  if (begun) {
    EXPECT_EQ(poll(&first, 1, 90'000), 1);
  }
  std::this_thread::sleep_for(life);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "ended by itself with " << WEXITSTATUS(status);
  std::set<TaskId> acknowledged;
  for (TaskId id = 0; read(pipe.read_end.get(), &id, sizeof id) == sizeof id;) acknowledged.insert(id);
  return acknowledged;
}

TEST(StoreCrash, WhatWasAcknowledgedIsThereWheneverTheDaemonIsKilled) {
  StoreBox box;
  std::mt19937 chance(std::random_device{}());
  std::set<TaskId> acknowledged;
  for (int round = 0; round < 30; ++round) {
    const auto life = std::chrono::microseconds(20'000 + chance() % 100'000);
    acknowledged.merge(submit_until_killed(box.folder.path(), life, round % 5 != 0));
    box.open();
    for (const TaskId id : acknowledged) ASSERT_TRUE(box.find(id)) << "task-" << id << " in round " << round;
    box.store.reset();
  }
  EXPECT_GT(acknowledged.size(), 20U);
}

}  // namespace
}  // namespace duet::task
