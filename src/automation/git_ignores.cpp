#include "automation/git_ignores.h"

#include <cstddef>
#include <utility>

#include "automation/watch_scope.h"

namespace duet::automation {
namespace {

std::optional<std::string> place(std::string file, const pattern::GitIgnore::Match& match) {
  return match.ignored ? std::optional(std::move(file) + ":" + std::to_string(match.line)) : std::nullopt;
}

}  // namespace

std::shared_ptr<const GitIgnores::File> GitIgnores::read(const std::optional<std::string>& text) {
  return text ? std::make_shared<const File>(File{*text, pattern::GitIgnore(*text)}) : nullptr;
}

void GitIgnores::put(const std::string& folder, const std::optional<std::string>& text) {
  if (text) {
    files_[folder] = read(text);
  } else {
    files_.erase(folder);
  }
}

bool GitIgnores::has(std::string_view folder, const std::optional<std::string>& text) const {
  const auto found = files_.find(folder);
  return found == files_.end() ? !text : text == found->second->text;
}

void GitIgnores::forget(std::string_view folder) {
  std::erase_if(files_, [folder](const auto& file) { return is_within(file.first, folder); });
}

// The deepest file that says something decides.
std::optional<std::string> GitIgnores::ignored_by(std::string_view path, bool is_folder) const {
  std::string_view folder = path;
  while (!files_.empty() && !folder.empty()) {
    const std::size_t slash = folder.rfind('/');
    folder = slash == folder.npos ? std::string_view() : folder.substr(0, slash);
    const auto file = files_.find(folder);
    if (file == files_.end()) continue;
    const std::string_view below = path.substr(folder.empty() ? 0 : folder.size() + 1);
    const auto match = file->second->patterns.match(below, is_folder);
    if (match) return place(join_path(folder, ".gitignore"), *match);
  }
  const auto match = exclude_ ? exclude_->patterns.match(path, is_folder) : std::nullopt;
  return match ? place(".git/info/exclude", *match) : std::nullopt;
}

}  // namespace duet::automation
