#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace duet::app {

/// Why a settings file is not read, for people, on one line.
struct RefusedFile {
  std::string why;
};

/// Whose files are read.
enum class FileOwner : std::uint8_t { ours, anybody };

/// The text of a settings file below `folder` (or AT_FDCWD); nothing if there is none. A file that belongs to somebody
/// else, that others may write, that is not a plain file or is larger than so many MiB is refused: agents are started
/// by what stands in it. With `anybody` the first two do not matter; that is for texts that can only forbid something,
/// and for what is only shown. `others_may_read` is told whether group or others may read it.
std::variant<std::optional<std::string>, RefusedFile> read_settings_file(int folder, const std::string& name,
                                                                         std::size_t most_mebibytes = 1,
                                                                         FileOwner owner = FileOwner::ours,
                                                                         bool* others_may_read = nullptr);

}  // namespace duet::app
