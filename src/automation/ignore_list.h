#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pattern/glob.h"

namespace duet::automation {

/// Which files nobody wants to hear of. As in a .gitignore, a glob without a slash is for a name anywhere, one with a
/// slash for a path from the root, one with a slash at its end for folders only; what lies in such a folder is ignored
/// with it. `.git` and `.aiwg` always are, wherever they lie.
class IgnoreList {
 public:
  /// Globs that cannot be read are left out.
  explicit IgnoreList(const std::vector<std::string>& globs = {});

  /// Of a file or folder in a folder that is not ignored.
  bool ignores(std::string_view path, bool is_folder) const;

 private:
  struct Entry {
    pattern::Glob glob;
    bool for_names;
    bool for_folders;
  };
  std::vector<Entry> entries_;
};

}  // namespace duet::automation
