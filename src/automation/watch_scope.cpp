#include "automation/watch_scope.h"

#include <limits.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace duet::automation {
namespace {

// `./src//x/` as `src/x`; `.` as nothing.
std::string normalized(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (!name.empty() && name != ".") result = join_path(result, name);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return result;
}

}  // namespace

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty()) path += '/';
  return path.append(name);
}

bool is_within(std::string_view path, std::string_view folder) {
  return folder.empty() || path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

WatchScope::WatchScope(const WatchSettings& settings, Wanted wanted)
    : ignored_(settings.ignore), wanted_(std::move(wanted)) {
  for (const std::string& path : settings.paths) paths_.push_back(normalized(path));
  if (paths_.empty()) paths_.emplace_back();
}

bool WatchScope::follows(std::string_view folder) const {
  if (folder.empty()) return true;
  if (ignored_.ignores(folder, true)) return false;
  return std::any_of(paths_.begin(), paths_.end(),
                     [folder](const std::string& path) { return is_within(folder, path) || is_within(path, folder); });
}

bool WatchScope::tells(std::string_view file) const {
  const bool inside =
      std::any_of(paths_.begin(), paths_.end(), [file](const std::string& path) { return is_within(file, path); });
  return inside && file.size() < PATH_MAX && !ignored_.ignores(file, false) && wanted_(file);
}

bool WatchScope::reaches_folder(std::string_view folder) const {
  for (std::size_t end = folder.find('/'); end != folder.npos; end = folder.find('/', end + 1)) {
    if (!follows(folder.substr(0, end))) return false;
  }
  return follows(folder);
}

bool WatchScope::reaches(std::string_view file) const {
  const std::size_t end = file.rfind('/');
  return tells(file) && (end == file.npos || reaches_folder(file.substr(0, end)));
}

}  // namespace duet::automation
