#include "app/project/state_owner.h"

#include <string_view>

#include "app/project/git_index.h"

namespace duet::app {
namespace {

bool is_state(std::string_view path) {
  const std::string below = std::string(state_path) + '/';
  return path == ".aiwg" || path == state_path || (path.starts_with(below) && path != below + ".gitignore");
}

}  // namespace

std::optional<std::string> why_not_our_state(const Project& project, const StateFolder& folder) {
  if (!folder.elsewhere().empty()) return std::nullopt;  // it is in the user's state folder
  const auto tracked = find_tracked(project, is_state);
  if (!tracked) return std::nullopt;
  // As git spells it, for git tells large letters from small ones. To move it away alone does not help: git would go
  // on having it.
  const bool is_link = tracked->find('/') == std::string::npos;
  const std::string spelt = tracked->substr(0, is_link ? tracked->size() : std::string_view(state_path).size());
  return std::string(state_path) + " in " + project.root +
         " came with a commit, and its tasks would run: git has checked out " +
         (is_link ? "the link that leads there" : "files in it") +
         "; unless it is your own, move it away; then say 'git rm -r --cached " + spelt + "' there";
}

}  // namespace duet::app
