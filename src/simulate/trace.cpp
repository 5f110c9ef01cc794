#include "simulate/trace.h"

#include <array>
#include <cstdio>
#include <utility>

namespace duet::simulate {

// FNV-1a, the line's end included.
void Trace::note(std::string line) {
  line += '\n';
  for (const char byte : line) digest_ = (digest_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  ++count_;
  if (loud_) std::fwrite(line.data(), 1, line.size(), stdout);
  line.pop_back();
  last_.push_back(std::move(line));
  if (last_.size() > kept_) last_.pop_front();
}

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace duet::simulate
