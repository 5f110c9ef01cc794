#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"

namespace duet::app {

/// Where the user's keys and certificates are: tls_folder(), as for the daemon's door. Throws Failure if there is no
/// place for it.
std::string tls_folder_path();

/// The list of revoked certificates: where the settings say that the daemon's door looks for it. Throws Failure if they
/// are faulty.
std::string revoked_path();

/// The text of a file in it, or of one with an absolute name; none if there is none. Throws Failure if it cannot be
/// read, is a link to nothing, is not plain, or could have been written by somebody else; a key's (`*.key`) also if
/// others may read it.
std::optional<std::string> read_tls_file(const std::string& folder, const std::string& name);

struct TlsFile {
  std::string name;
  std::string text;
};

/// The folder while this process, and no other, changes something in it.
///
/// Files that belong together are replaced together: they are written to `begun`, which becomes `unfinished` when all
/// of them are on disk, and are moved from there to their places. So a process that is killed has changed nothing, or
/// the next one to hold the folder finishes it. Everything is 0600 and the folders are 0700.
class TlsFolderHold {
 public:
  /// Makes the folder if it is not there, and waits up to 10 s for whoever holds it. Throws Failure.
  explicit TlsFolderHold(std::string path);

  const std::string& path() const { return path_; }
  /// What a process that was killed had begun to replace, and has its place now. If `ca.key` was begun it is among
  /// them.
  const std::vector<std::string>& finished() const { return finished_; }

  /// All of them or none. Throws Failure.
  void replace_together(const std::vector<TlsFile>& files);
  /// One file, in the folder or in a folder in it. Throws Failure.
  void replace(const std::string& inner, const TlsFile& file);
  /// One that nobody has seen yet. Whether that works changes little.
  void remove(const std::string& inner, const std::string& name);

 private:
  void forget_begun();
  std::vector<std::string> finish();

  std::string path_;
  base::Fd folder_;
  base::Fd lock_;
  std::vector<std::string> finished_;
};

/// For who only reads: that a process was killed which had begun to replace files, and the cure. Empty: none was.
std::string unfinished_note(const std::string& folder);
/// Throws Failure with that note if there is one.
void refuse_unfinished(const std::string& folder);

}  // namespace duet::app
