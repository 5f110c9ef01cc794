#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace duet::simulate {

/// What happens in a simulation, a line each: the last ones for whoever looks for a fault, and a digest of all of them,
/// by which two runs are the same or not. With `loud` each line goes to stdout at once.
class Trace {
 public:
  explicit Trace(bool loud = false, std::size_t kept = 60) : loud_(loud), kept_(kept) {}

  void note(std::string line);
  std::uint64_t digest() const { return digest_; }
  std::uint64_t count() const { return count_; }
  const std::deque<std::string>& last() const { return last_; }

 private:
  bool loud_;
  std::size_t kept_;
  std::uint64_t digest_ = 0xcbf29ce484222325;
  std::uint64_t count_ = 0;
  std::deque<std::string> last_;
};

std::string hex(std::uint64_t number);

}  // namespace duet::simulate
