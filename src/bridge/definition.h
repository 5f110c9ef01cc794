#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace duet::bridge {

/// A language server, as the settings or the built-in list describe it.
struct Definition {
  std::string name;
  std::vector<std::string> command;
  std::vector<std::string> files = {};  ///< globs on file names
  std::vector<std::string> roots = {};  ///< names that mark the root folder
  std::map<std::string, std::string, std::less<>> env = {};
  std::uint64_t max_memory = 0;         ///< bytes; 0: no bound
  std::chrono::milliseconds idle{0};    ///< shut down after so long without a request; 0: never
  std::uint64_t max_body = 64U << 20U;  ///< the largest message the server may send
  std::string options = {};             ///< its `initializationOptions`, JSON text; may be empty
  std::string encoding = {};            ///< in which units it counts if it does not say; empty: as LSP has it, utf-16
  /// Findings without a version are about the latest text once it has been silent for a while. Known of some servers.
  bool settles = false;

  bool operator==(const Definition&) const = default;
};

}  // namespace duet::bridge
