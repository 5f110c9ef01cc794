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
    : ignored_(settings.ignore), wanted_(std::move(wanted)), heeds_git_(settings.gitignore) {
  for (const std::string& path : settings.paths) paths_.push_back(normalized(path));
  if (paths_.empty()) paths_.emplace_back();
}

bool WatchScope::is_inside(std::string_view path) const {
  return std::any_of(paths_.begin(), paths_.end(), [path](const std::string& of) { return is_within(path, of); });
}

// It is one of the paths, or on the way to one.
bool WatchScope::leads_to_path(std::string_view folder) const {
  return std::any_of(paths_.begin(), paths_.end(), [folder](const std::string& of) { return is_within(of, folder); });
}

std::optional<std::string> WatchScope::why_not_itself(std::string_view path, bool is_folder) const {
  if (ignored_.ignores(path, is_folder)) return "[watch] ignore";
  return leads_to_path(path) ? std::nullopt : git_.ignored_by(path, is_folder);
}

bool WatchScope::follows(std::string_view folder) const {
  if (folder.empty()) return true;
  return (is_inside(folder) || leads_to_path(folder)) && !why_not_itself(folder, true);
}

bool WatchScope::tells(std::string_view file) const {
  return is_inside(file) && file.size() < PATH_MAX && wanted_(file) && !why_not_itself(file, false);
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

std::optional<std::string> WatchScope::why_not(std::string_view file) const {
  if (!is_inside(file)) return "it is not in [watch] paths";
  for (std::size_t end = file.find('/'); end != file.npos; end = file.find('/', end + 1)) {
    const std::string_view folder = file.substr(0, end);
    if (const auto by = why_not_itself(folder, true)) return std::string(folder) + " is ignored by " + *by;
  }
  const auto by = why_not_itself(file, false);
  return by ? std::optional("it is ignored by " + *by) : std::nullopt;
}

}  // namespace duet::automation
