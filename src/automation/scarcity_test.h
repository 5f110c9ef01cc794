#pragma once

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "duet/base/fd.h"

namespace duet::automation {

/// The descriptors of this process that are of a kind, such as `anon_inode:[timerfd]`.
inline std::vector<int> descriptors_of(std::string_view kind) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == kind) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

/// While it lives, no loop of this process can watch anything new. None may turn meanwhile.
class BlindLoops {
 public:
  BlindLoops() {
    const base::Fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (const int loop : descriptors_of("anon_inode:[eventpoll]")) {
      before_.emplace_back(loop, base::duplicate(loop));
      dup3(other.get(), loop, O_CLOEXEC);
    }
  }
  BlindLoops(const BlindLoops&) = delete;
  BlindLoops& operator=(const BlindLoops&) = delete;
  ~BlindLoops() {
    for (const auto& [loop, kept] : before_) dup3(kept.get(), loop, O_CLOEXEC);
  }

 private:
  std::vector<std::pair<int, base::Fd>> before_;
};

/// While it lives, permissions hold for this thread, though it may be root's.
class NoPrivileges {
 public:
  NoPrivileges() {
    syscall(SYS_capget, &header_, before_.data());
    auto none = before_;
    none[0].effective &= ~((1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH));
    syscall(SYS_capset, &header_, none.data());
  }
  NoPrivileges(const NoPrivileges&) = delete;
  NoPrivileges& operator=(const NoPrivileges&) = delete;
  ~NoPrivileges() { syscall(SYS_capset, &header_, before_.data()); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
};

}  // namespace duet::automation
