#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include "duet/base/fd.h"

namespace duet::base {

/// While it lives this process can open `left` more descriptors, if it closes none.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left = 0) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const Fd next(open("/", O_RDONLY | O_CLOEXEC));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next.get() + left);
    setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace duet::base
