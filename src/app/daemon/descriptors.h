#pragma once

#include <cstddef>

namespace duet::app {

/// Who may have how many of the process's descriptors, so that neither tasks nor clients leave the daemon without one:
/// it stays reachable, and can still write its store and start what it must.
struct DescriptorBudget {
  std::size_t limit = 0;
  std::size_t clients = 0;  ///< at all doors together
  std::size_t http = 1;     ///< of these, at the HTTP door
  std::size_t tls = 1;
  std::size_t tasks = 0;

  /// Throws Failure if that is too little for a daemon.
  static DescriptorBudget of(std::size_t limit);
};

}  // namespace duet::app
