#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "automation/git_ignores.h"
#include "automation/ignore_list.h"
#include "automation/rule.h"

namespace duet::automation {

/// `folder/name`; the root's name is empty.
std::string join_path(std::string_view folder, std::string_view name);
/// Whether it is the folder or something below it.
bool is_within(std::string_view path, std::string_view folder);

/// Which files of a project are told of: those that the settings name, that are not ignored, and that somebody asks
/// for. What the settings name as a path to watch is not left out for what a `.gitignore` says of it or of the folders
/// above it. Paths are from the root, as bytes. It looks at names only, never at a disk.
class WatchScope {
 public:
  using Wanted = std::function<bool(std::string_view path)>;

  WatchScope(const WatchSettings& settings, Wanted wanted);

  bool heeds_git() const { return heeds_git_; }
  const GitIgnores& git() const { return git_; }
  GitIgnores& git() { return git_; }

  /// Of a folder or file in a folder that is followed.
  bool follows(std::string_view folder) const;
  bool tells(std::string_view file) const;
  /// Of any: all folders on the way there must be followed.
  bool reaches_folder(std::string_view folder) const;
  bool reaches(std::string_view file) const;
  /// Why a file is not told of, whoever asks for it; none if it is.
  std::optional<std::string> why_not(std::string_view file) const;

 private:
  std::optional<std::string> why_not_itself(std::string_view path, bool is_folder) const;
  bool is_inside(std::string_view path) const;
  bool leads_to_path(std::string_view folder) const;

  std::vector<std::string> paths_;
  IgnoreList ignored_;
  Wanted wanted_;
  bool heeds_git_;
  GitIgnores git_;
};

}  // namespace duet::automation
