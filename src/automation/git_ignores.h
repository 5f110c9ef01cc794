#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pattern/git_ignore.h"

namespace duet::automation {

/// What the `.gitignore` files of a project say, each for its folder and those below, the deeper one first, and at the
/// end `.git/info/exclude`. Paths are from the project's root. It looks at no disk: who reads the folders tells what is
/// in them. A copy shares the files.
class GitIgnores {
 public:
  /// The text of a folder's file; none if it has none.
  void put(const std::string& folder, const std::optional<std::string>& text);
  /// Whether that is what is known already.
  bool has(std::string_view folder, const std::optional<std::string>& text) const;
  /// Of `.git/info/exclude`.
  void exclude(const std::optional<std::string>& text) { exclude_ = read(text); }
  /// As another one knows them.
  void take_files_of(const GitIgnores& other) { files_ = other.files_; }
  /// Those of the folder and of all below it.
  void forget(std::string_view folder);

  /// Of a file or folder in a folder that is not ignored: where it stands (`src/.gitignore:3`); none if it is not.
  std::optional<std::string> ignored_by(std::string_view path, bool is_folder) const;

 private:
  struct File {
    std::string text;
    pattern::GitIgnore patterns;
  };
  static std::shared_ptr<const File> read(const std::optional<std::string>& text);

  std::map<std::string, std::shared_ptr<const File>, std::less<>> files_;  // by folder
  std::shared_ptr<const File> exclude_;
};

}  // namespace duet::automation
