#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>

namespace duet::bridge {

/// What tells whether a file was written since it was read, without reading it.
class FileStamp {
 public:
  FileStamp() = default;
  explicit FileStamp(const struct stat& status);

  /// The file at `path` is surely the one that was read. One that was written just before it was read may have been
  /// written again within the same tick of the file system's clock, so that is not sure.
  bool still_holds(const std::string& path) const;

 private:
  bool same_file(const struct stat& status) const;

  struct stat status_ {};
  bool sure_ = false;
};

struct SourceFile {
  std::string bytes;
  FileStamp stamp;
};

/// The largest file that is handed to a server.
inline constexpr std::size_t max_source_file = 32U << 20U;

/// nullopt: no regular file, too large, or not readable; errno says why. Never waits for a pipe's other end.
std::optional<SourceFile> read_source_file(const std::string& path, std::size_t most = max_source_file);

}  // namespace duet::bridge
