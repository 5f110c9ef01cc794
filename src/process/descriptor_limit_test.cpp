#include "process/descriptor_limit.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "process/launch.h"

namespace duet::process {
namespace {

std::string soft_limit_of_a_child() {
  base::Pipe pipe = base::make_pipe();
  const Child child = launch({.arguments = {"/bin/sh", "-c", "ulimit -Sn"},
                              .environment = current_environment(),
                              .standard = {-1, pipe.write_end.get(), -1}});
  pipe.write_end.reset();
  std::array<char, 64> room;
  const ssize_t count = read(pipe.read_end.get(), room.data(), room.size());
  reap(child);
  return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

// In a process of its own, since the limit is the process's.
int raised_process() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit = {.rlim_cur = 100, .rlim_max = std::min<rlim_t>(limit.rlim_max, 4096)};
  setrlimit(RLIMIT_NOFILE, &limit);
  if (raise_descriptor_limit() != limit.rlim_max) return 1;
  if (soft_limit_of_a_child() != "100\n") return 2;
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  if (now.rlim_cur != limit.rlim_max) return 3;
  return raise_descriptor_limit() == limit.rlim_max ? 0 : 4;
}

TEST(DescriptorLimit, IsRaisedForUsAndNotForWhatWeStart) {
  const pid_t pid = fork();
  if (pid == 0) _exit(raised_process());
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace duet::process
