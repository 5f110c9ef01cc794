#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::task::postgres {

/// What a worker has to know after a restart: who it is in which queue, and the newest it has seen of the database.
///
/// It is kept in the project's state folder. `place` tells where that is (the machine, and the folder itself): a copy
/// of the folder has another one, and is another worker.
struct WorkerMemory {
  std::string queue = {};  ///< its id; another one: nothing of the rest counts
  std::string place = {};
  std::int64_t worker = 0;
  std::string incarnation = {};          ///< the last that the database has confirmed
  std::vector<std::string> before = {};  ///< those before that, the newest first: a failover may have lost the last,
                                         ///< and a call to join may arrive late
  std::string next = {};                 ///< one that it was told, and may have taken; empty: none
  std::string system = {};               ///< identifier of the database's server
  std::int64_t timeline = 0;             ///< the highest that was seen
  std::int64_t newest_event_ms = 0;
  std::int64_t lease_ms = 0;  ///< that keepers were told last, or a longer one; 0: none was

  bool operator==(const WorkerMemory&) const = default;
};

/// Its name in the state folder.
inline constexpr const char* memory_file = "cluster";

std::string memory_text(const WorkerMemory& memory);
/// None if it is nothing that memory_text() made.
std::optional<WorkerMemory> memory_of(std::string_view text);

}  // namespace duet::task::postgres
