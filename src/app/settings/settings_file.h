#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

namespace duet::app {

/// Why a settings file is not read, for people, on one line.
struct RefusedFile {
  std::string why;
};

/// The text of a settings file below `folder` (or AT_FDCWD); nothing if there is none. A file that belongs to somebody
/// else, that others may write, that is not a plain file or is larger than so many MiB is refused: agents are started
/// by what stands in it.
std::variant<std::optional<std::string>, RefusedFile> read_settings_file(int folder, const std::string& name,
                                                                         std::size_t most_mebibytes = 1);

/// The same of a plain file that may be anybody's, for what is only shown.
std::variant<std::optional<std::string>, RefusedFile> read_anybodys_file(int folder, const std::string& name,
                                                                         std::size_t most_mebibytes = 1);

}  // namespace duet::app
