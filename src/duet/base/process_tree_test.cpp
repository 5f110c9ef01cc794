#include "duet/base/process_tree.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "duet/base/process.h"

namespace duet::base {
namespace {

TEST(Descendants, FindsChildrenAndTheirChildren) {
  const Pipe pipe = make_pipe();
  const Child child = launch({.arguments = {"sh", "-c", "sleep 600 & echo $!; wait"},
                              .environment = current_environment(),
                              .standard = {-1, pipe.write_end.get(), -1}});
  std::string text(64, '\0');
  const ssize_t count = read(pipe.read_end.get(), text.data(), text.size());
  ASSERT_GT(count, 0);
  const pid_t grandchild = std::stoi(text);
  const std::vector<pid_t> found = descendants(getpid());
  const auto place = [&](pid_t pid) { return std::find(found.begin(), found.end(), pid) - found.begin(); };
  EXPECT_LT(place(child.pid), place(grandchild));
  EXPECT_LT(place(grandchild), static_cast<long>(found.size()));
  EXPECT_EQ(descendants(grandchild), std::vector<pid_t>());
  kill(-child.pid, SIGKILL);
  reap(child);
}

TEST(Descendants, TellsWhatAProcessHasInMemory) {
  EXPECT_GT(resident_memory(getpid()), 100'000U);
  EXPECT_EQ(resident_memory(0x7FFFFFFF), 0U);
}

}  // namespace
}  // namespace duet::base
