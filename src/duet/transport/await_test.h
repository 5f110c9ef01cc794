#pragma once

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace duet::transport {

inline constexpr std::chrono::seconds test_patience{60};

/// Waits until another thread or process has brought about what `done` looks at; false if it never does.
template <typename Done>
bool await(Done done) {
  const auto deadline = std::chrono::steady_clock::now() + test_patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Waits until that thread of this process waits in the kernel.
inline bool await_asleep(pid_t thread) {
  return await([&] {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    const std::size_t name_end = stat.rfind(')');
    return name_end != std::string::npos && stat.substr(name_end, 3) == ") S";
  });
}

}  // namespace duet::transport
