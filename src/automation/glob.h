#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "automation/regex.h"

namespace duet::automation {

/// A pattern for paths with `/` between the names: `*` and `?` stay within a name, `**` as a whole name stands for any
/// number of folders (at the end: for everything below), `[a-z]` and `[!a-z]` for a character, `{a,b}` for either; `\`
/// takes away a character's meaning. Upper and lower case differ; a leading dot is like any other character.
class Glob {
 public:
  bool matches(std::string_view path) const { return regex_.matches_all_of(path); }

 private:
  friend std::variant<Glob, std::string> parse_glob(std::string_view text);
  explicit Glob(Regex regex) : regex_(std::move(regex)) {}

  Regex regex_;
};

/// The text says what is wrong.
std::variant<Glob, std::string> parse_glob(std::string_view text);

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
    Glob glob;
    bool for_names;
    bool for_folders;
  };
  std::vector<Entry> entries_;
};

}  // namespace duet::automation
