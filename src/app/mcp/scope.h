#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "app/mcp/tool_result.h"

namespace duet::app::mcp {

/// Which project a door belongs to, and which files it may be asked about.
///
/// Home is `--project`; else the nearest project from the working directory upward; else from CLAUDE_PROJECT_DIR
/// upward; never `/` or the user's home folder. Files must lie in home, in another worktree of its repository, or below
/// an `--allow`, links resolved. It looks at the disk when it is asked, and changes nothing there. For one thread.
class Scope {
 public:
  struct Options {
    std::optional<std::string> project = {};
    std::vector<std::string> allow = {};
  };
  explicit Scope(Options options) : options_(std::move(options)) {}

  /// The root of home, found when it is first asked for.
  const tl::expected<std::string, ToolError>& home();

  struct Target {
    std::string path;  ///< absolute, links resolved
    std::string root;  ///< of the project whose daemon is to be asked
  };
  /// Of a path from home's root, an absolute one or a `file:` URI; it need not exist.
  tl::expected<Target, ToolError> locate(std::string_view given);
  /// The same of a file that must be there.
  tl::expected<Target, ToolError> locate_file(std::string_view given);

 private:
  tl::expected<std::string, ToolError> find_home() const;

  Options options_;
  std::optional<tl::expected<std::string, ToolError>> home_;
};

/// `a.cpp:7:21` taken apart.
struct NamedPlace {
  std::string file;
  std::optional<std::int64_t> line = {};
  std::optional<std::int64_t> column = {};
};
NamedPlace split_place(std::string_view text);

}  // namespace duet::app::mcp
