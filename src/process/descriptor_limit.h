#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace duet::process {

/// Lets this process have as many descriptors as the system allows it (the hard limit), and returns how many. What
/// launch() starts gets what it would have had without: programs that use select() cannot do with more than 1024.
std::size_t raise_descriptor_limit();

/// The limit that was there before it was raised, while something is started.
class OriginalDescriptorLimit {
 public:
  OriginalDescriptorLimit();
  OriginalDescriptorLimit(const OriginalDescriptorLimit&) = delete;
  OriginalDescriptorLimit& operator=(const OriginalDescriptorLimit&) = delete;
  ~OriginalDescriptorLimit();
};

}  // namespace duet::process
