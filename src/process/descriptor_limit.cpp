#include "process/descriptor_limit.h"

#include <limits>
#include <optional>

#include "duet/base/fd.h"

namespace duet::process {
namespace {

// A limit is the process's, and so is what is known about it.
std::optional<rlim_t> original;

rlimit descriptor_limit() {
  rlimit limit{};
  base::check_call(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  return limit;
}

void set_soft_limit(rlim_t soft) {
  rlimit limit = descriptor_limit();
  limit.rlim_cur = soft;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::size_t raise_descriptor_limit() {
  const rlimit limit = descriptor_limit();
  if (limit.rlim_cur < limit.rlim_max) {
    if (!original) original = limit.rlim_cur;
    set_soft_limit(limit.rlim_max);
  }
  const rlim_t now = descriptor_limit().rlim_cur;
  return now == RLIM_INFINITY ? std::numeric_limits<std::size_t>::max() : now;
}

OriginalDescriptorLimit::OriginalDescriptorLimit() {
  if (original) set_soft_limit(*original);
}

OriginalDescriptorLimit::~OriginalDescriptorLimit() {
  if (original) set_soft_limit(descriptor_limit().rlim_max);
}

}  // namespace duet::process
