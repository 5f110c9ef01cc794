#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace duet::framing {

/// A stream of frames, some of them damaged, and what must come of it. The generator knows which
/// messages it left intact and where it did damage; it leaves out the few damages whose outcome is
/// another well-formed stream (a dropped blank before a length, two equal lengths in a row).
struct DamagedStream {
  /// A message that must be delivered, or a damage that must be reported.
  struct Part {
    std::string message;  // empty: a damage
    unsigned places = 0;  // of a damage: in how many places it was done; in several, they may make up for each other
  };

  std::string bytes;
  std::vector<Part> parts;
};

DamagedStream damaged_stream(std::uint32_t seed);

/// Empty, or what is wrong with the events a decoder gave for the stream: every message once, in
/// order; one fault for each damage. Damages with no intact message between them may be reported as
/// one, since nothing is said until the next frame is found.
std::string complaint(const DamagedStream& stream, const std::vector<std::string>& events);

}  // namespace duet::framing
