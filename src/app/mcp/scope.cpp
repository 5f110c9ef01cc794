#include "app/mcp/scope.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/words/number.h"
#include "bridge/file_uri.h"
#include "bridge/source_file.h"

namespace duet::app::mcp {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_shown = 300;  // characters of a path that was given

bool is_below(const fs::path& path, const fs::path& folder) {
  const std::string& inner = path.native();
  const std::string& outer = folder.native();
  if (inner == outer || outer == "/") return true;
  return inner.size() > outer.size() && inner.starts_with(outer) && inner[outer.size()] == '/';
}

// As far as it exists links are resolved; the rest is taken as it is written.
fs::path resolved(const fs::path& path) {
  std::error_code fault;
  fs::path real = fs::weakly_canonical(path, fault);
  return fault ? path.lexically_normal() : real;
}

bool is_forbidden(const fs::path& root) {
  const char* const home = std::getenv("HOME");
  return root == "/" || (home != nullptr && *home != '\0' && resolved(home) == root);
}

std::optional<std::string> nearest_root(const fs::path& from) {
  std::error_code fault;
  fs::path folder = from;
  while (!fs::is_directory(folder, fault) && folder.has_relative_path()) folder = folder.parent_path();
  try {
    const std::optional<Project> found = nearest_project(folder.string());
    if (found && !is_forbidden(found->root)) return found->root;
  } catch (const Failure&) {  // a folder that cannot be entered is no project of ours
  }
  return std::nullopt;
}

// Of a file as git makes them; whatever else stands in its place is not waited for, nor read without end.
std::string first_line(const fs::path& file) {
  constexpr std::size_t most = 8192;
  const std::optional<bridge::SourceFile> content = bridge::read_source_file(file.string(), most);
  return content ? content->bytes.substr(0, content->bytes.find('\n')) : std::string();
}

bool is_own_folder(const fs::path& path) {
  std::error_code fault;
  return fs::symlink_status(path, fault).type() == fs::file_type::directory;
}

// What the worktrees of a repository share; empty: it is none. A folder can say of itself what it likes: the repository
// must know the worktree, too. A submodule's is its own.
fs::path repository_of(const fs::path& root, bool is_home) {
  constexpr std::string_view mark = "gitdir: ";
  const fs::path git = root / ".git";
  if (is_own_folder(git)) return resolved(git);
  const std::string line = first_line(git);
  if (!line.starts_with(mark)) return {};
  const fs::path own = resolved(root / line.substr(mark.size()));
  const std::string shared = first_line(own / "commondir");
  if (shared.empty()) return is_home ? own : fs::path();
  const fs::path back = own / first_line(own / "gitdir");
  return resolved(back) == resolved(git) ? resolved(own / shared) : fs::path();
}

ToolError no_project() {
  return {.code = "no-project",
          .problem = "no project was found from the working directory upward",
          .remedy = "start this server inside a repository, or with --project DIR"};
}

}  // namespace

const tl::expected<std::string, ToolError>& Scope::home() {
  if (!home_) home_ = find_home();
  return *home_;
}

tl::expected<std::string, ToolError> Scope::find_home() const {
  try {
    if (options_.project) {
      const std::string root = find_project(options_.project).root;
      if (!is_forbidden(root)) return root;
      return tl::unexpected(ToolError{.code = "no-project",
                                      .problem = "--project is " + root + ", which is never a project",
                                      .remedy = "--project with a folder below it"});
    }
    if (const auto root = nearest_root(working_directory())) return *root;
  } catch (const Failure& failure) {
    if (options_.project) {
      return tl::unexpected(ToolError{.code = "no-project",
                                      .problem = "'" + *options_.project + "' is no folder that can be used",
                                      .remedy = "--project with a folder that exists"});
    }
  }
  const char* const claude = std::getenv("CLAUDE_PROJECT_DIR");
  if (claude != nullptr && *claude == '/') {
    if (const auto root = nearest_root(claude)) return *root;
  }
  return tl::unexpected(no_project());
}

tl::expected<Scope::Target, ToolError> Scope::locate(std::string_view given) {
  const tl::expected<std::string, ToolError>& root = home();
  if (!root) return tl::unexpected(root.error());
  if (given.empty()) return tl::unexpected(bad_argument("a path is empty", "a path from the project's root"));
  const std::optional<std::string> named = bridge::path_of(given);
  const fs::path path = resolved(fs::path(*root) / (named ? *named : std::string(given)));
  if (is_below(path, *root)) return Target{path.string(), *root};
  const std::optional<std::string> own = nearest_root(path);
  const fs::path repository = repository_of(*root, true);
  if (own && !repository.empty() && repository_of(*own, false) == repository) return Target{path.string(), *own};
  for (const std::string& allowed : options_.allow) {
    const fs::path folder = resolved(fs::absolute(allowed));
    if (is_below(path, folder)) return Target{path.string(), own.value_or(folder.string())};
  }
  return tl::unexpected(
      ToolError{.code = "outside-project",
                .problem = one_line(path.string(), most_shown) + " is outside the project " + *root,
                .remedy = "a file in the project, or ask the user to start this server with --allow"});
}

tl::expected<Scope::Target, ToolError> Scope::locate_file(std::string_view given) {
  tl::expected<Target, ToolError> target = locate(given);
  std::error_code fault;
  if (!target || fs::is_regular_file(target->path, fault)) return target;
  return tl::unexpected(ToolError{.code = "not-found",
                                  .problem = "there is no file " + one_line(target->path, most_shown),
                                  .remedy = "a path from the project's root, " + *home()});
}

NamedPlace split_place(std::string_view text) {
  NamedPlace place{.file = std::string(text)};
  std::vector<std::int64_t> numbers;
  std::string_view rest = text;
  while (numbers.size() < 2) {
    const std::size_t colon = rest.rfind(':');
    const auto number = colon == rest.npos ? std::nullopt : parse_number(rest.substr(colon + 1));
    if (!number || *number < 1 || colon == 0) break;
    numbers.insert(numbers.begin(), *number);
    rest = rest.substr(0, colon);
  }
  if (numbers.empty()) return place;
  place.file = rest;
  place.line = numbers[0];
  if (numbers.size() > 1) place.column = numbers[1];
  return place;
}

}  // namespace duet::app::mcp
