#include "app/methods/successor.h"

#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// A process that does nothing for a while.
class Sleeper {
 public:
  explicit Sleeper(const std::string& program) {
    std::string name = "sleep";
    std::string seconds = "1000";
    char* const words[] = {name.data(), seconds.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), nullptr, nullptr, words, environ), 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

ino_t inode_of(const base::Fd& program) {
  struct stat status {};
  EXPECT_EQ(fstat(program.get(), &status), 0);
  return status.st_ino;
}

ino_t inode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_ino;
}

TEST(Successor, IsTheProgramThatAsksIfItIsThisOneInAnotherVersion) {
  const transport::TemporaryFolder folder;
  const std::string newer = folder.file("duet-rpc");
  fs::copy_file("/bin/sleep", newer);
  const ino_t inode = inode_of(newer);
  const Sleeper asking(newer);
  EXPECT_EQ(inode_of(successor_for(asking.pid())), inode);
  fs::remove(newer);
  EXPECT_EQ(inode_of(successor_for(asking.pid())), inode) << "though it was removed since";
}

TEST(Successor, IsTheDaemonsOwnProgramIfSomethingElseAsks) {
  const Sleeper asking("/bin/sleep");
  EXPECT_EQ(inode_of(successor_for(asking.pid())), inode_of("/proc/self/exe"));
  EXPECT_EQ(inode_of(successor_for(getpid())), inode_of("/proc/self/exe"));
}

TEST(Successor, IsNoneIfNobodyCanTellWhatAsks) { EXPECT_FALSE(successor_for(0)); }

}  // namespace
}  // namespace duet::app
