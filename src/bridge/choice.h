#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/definition.h"
#include "pattern/glob.h"

namespace duet::bridge {

/// The servers that need no settings.
std::vector<Definition> well_known_servers();

/// Those of the settings, in their order, then the well-known ones that the settings do not name. What a definition of
/// the settings leaves out (`command`, `files`, `roots`) is taken from the well-known one of its name.
std::vector<Definition> with_well_known(std::vector<Definition> settings);

/// Which server a file is for, by its name. What is installed plays no part.
class FileChoice {
 public:
  /// Globs that cannot be read fit nothing.
  explicit FileChoice(const std::vector<Definition>& definitions);

  /// Which of the definitions is the first with a glob that fits.
  std::optional<std::size_t> choose(std::string_view path) const;

 private:
  std::vector<std::vector<pattern::Glob>> globs_;  // of each definition; reading them takes longer than matching
};

/// The folder a server is started in for a file. The first of `markers` that some folder upward from the file holds
/// decides; the search ends at `project`, or for a file outside of it at the file system's root. Without a hit it is
/// `project`.
std::string find_root(const std::vector<std::string>& markers, const std::string& path, const std::string& project);

/// What LSP calls the language of a file, by its name; `plaintext` for those nobody knows.
std::string_view language_of(std::string_view path);

}  // namespace duet::bridge
