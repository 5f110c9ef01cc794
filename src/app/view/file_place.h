#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace duet::app {

/// A place as it stands on a command line: `FILE`, `FILE:LINE` or `FILE:LINE:COL`, a colon at the end being ignored as
/// compilers write it; or by name: `FILE#NAME`, `FILE:LINE#NAME`, `#NAME`.
struct FilePlace {
  std::string file;  ///< may be empty if there is a symbol
  std::optional<std::int64_t> line = {};
  std::optional<std::int64_t> column = {};
  std::optional<std::string> symbol = {};
};

/// A file that is there by the whole text is meant, whatever its name looks like. `is_here`: else the file is one of
/// another machine, and nobody looks for it.
FilePlace parse_file_place(const std::string& text, bool is_here = true);

/// How a file is named to the daemon: its absolute path, or a file: URI where that is not UTF-8. Else why it cannot be,
/// for people.
tl::expected<std::string, std::string> file_for_daemon(const std::string& file);

/// How a file is named to people: from the working directory if it is below that. Takes what the daemon gives.
std::string file_for_people(std::string_view file);

}  // namespace duet::app
