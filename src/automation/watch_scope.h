#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "automation/ignore_list.h"
#include "automation/rule.h"

namespace duet::automation {

/// `folder/name`; the root's name is empty.
std::string join_path(std::string_view folder, std::string_view name);
/// Whether it is the folder or something below it.
bool is_within(std::string_view path, std::string_view folder);

/// Which files of a project are told of: those that the settings name, that are not ignored, and that somebody asks
/// for. Paths are from the root, as bytes. It looks at names only, never at a disk.
class WatchScope {
 public:
  using Wanted = std::function<bool(std::string_view path)>;

  WatchScope(const WatchSettings& settings, Wanted wanted);

  /// Of a folder or file in a folder that is followed.
  bool follows(std::string_view folder) const;
  bool tells(std::string_view file) const;
  /// Of any: all folders on the way there must be followed.
  bool reaches_folder(std::string_view folder) const;
  bool reaches(std::string_view file) const;

 private:
  std::vector<std::string> paths_;
  IgnoreList ignored_;
  Wanted wanted_;
};

}  // namespace duet::automation
