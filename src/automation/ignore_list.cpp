#include "automation/ignore_list.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace duet::automation {
namespace {

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

IgnoreList::IgnoreList(const std::vector<std::string>& globs) {
  for (std::string_view text : globs) {
    const bool for_folders = text.ends_with('/');
    if (for_folders) text.remove_suffix(1);
    const bool for_names = text.find('/') == text.npos;
    if (text.starts_with('/')) text.remove_prefix(1);
    auto parsed = pattern::parse_glob(text);
    if (auto* glob = std::get_if<pattern::Glob>(&parsed))
      entries_.push_back({std::move(*glob), for_names, for_folders});
  }
}

bool IgnoreList::ignores(std::string_view path, bool is_folder) const {
  const std::string_view name = last_name(path);
  if (name == ".git" || name == ".aiwg") return true;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return (is_folder || !entry.for_folders) && entry.glob.matches(entry.for_names ? name : path);
  });
}

}  // namespace duet::automation
