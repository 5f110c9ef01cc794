#include "task/outsider.h"

#include <string>

namespace duet::task {

bool is_outsider(const process::ProcessEntry& process) {
  return process::has_in_environment(process.pid, daemon_assignment) ||
         process::has_in_environment(process.pid, std::string(nursery_variable) + "=1");
}

}  // namespace duet::task
