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
  const std::string name(state_path);
  return name + " in " + project.root + " came with a commit, and its tasks would run: git has checked out " +
         (*tracked == ".aiwg" ? "the link that leads there" : "files in it") +
         "; move it away, or, if it is your own, 'git rm -r --cached " + (*tracked == ".aiwg" ? ".aiwg" : name) + "'";
}

}  // namespace duet::app
