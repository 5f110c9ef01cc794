#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "app/project/project.h"

namespace duet::app {

/// The settings file of a project, as it is known here: its absolute path.
std::string settings_path_of(const Project& project);

/// Which contents of settings files this user has trusted, one for each path.
///
/// They are lines of SHA-256 and path in the file `trusted` of the user's state folder, as sha256sum(1) writes them, so
/// that `sha256sum -c` can check it; the contents are kept beside, in `trusted.d`, for the difference to what comes
/// next. A file that somebody else could have written counts as none. Changes are made under a lock and at once;
/// several processes may make them. A list of more than 512 KiB forgets the projects whose folder is gone whenever it
/// grows; one of more than 16 MiB is not made. Reads nothing before it is asked, and keeps nothing.
class TrustedFiles {
 public:
  struct Entry {
    std::string path;
    std::string sha256;
  };

  /// The user's state folder; empty: there is none, and nothing is trusted.
  explicit TrustedFiles(std::string user_state) : folder_(std::move(user_state)) {}

  /// Ordered by path; or why the file is not used, on one line.
  tl::expected<std::vector<Entry>, std::string> list() const;
  /// The SHA-256 that is trusted for this path; none: there is none. The error is that of list().
  tl::expected<std::optional<std::string>, std::string> trusted(std::string_view path) const;
  /// The same, of a list that somebody else could have written as well: good for nothing but to keep others from the
  /// place of what was trusted.
  std::optional<std::string> said_to_be_trusted(std::string_view path) const;
  /// The content with this SHA-256, if it is still there.
  std::optional<std::string> content(const std::string& sha256) const;

  /// From now on this content counts for the path, and no other one. Throws Failure.
  void trust(const std::string& path, std::string_view content) const;
  /// False: nothing was trusted there. Throws Failure.
  bool revoke(std::string_view path) const;

  static constexpr const char* name = "trusted";
  static constexpr const char* contents_name = "trusted.d";

 private:
  void replace(const std::vector<Entry>& entries, int folder) const;

  std::string folder_;
};

}  // namespace duet::app
