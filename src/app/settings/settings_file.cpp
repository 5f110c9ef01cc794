#include "app/settings/settings_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "app/project/user_state.h"
#include "duet/base/fd.h"

namespace duet::app {
namespace {

using Read = std::variant<std::optional<std::string>, RefusedFile>;

std::optional<RefusedFile> refusal(const struct stat& status, FileOwner owner) {
  if (!S_ISREG(status.st_mode)) return RefusedFile{"it is not a plain file"};
  if (owner == FileOwner::anybody) return std::nullopt;
  if (auto why = why_not_ours(status.st_uid, status.st_mode)) return RefusedFile{std::move(*why)};
  return std::nullopt;
}

Read all_of(int file, std::size_t most_mebibytes) {
  std::string text;
  while (text.size() <= most_mebibytes << 20U) {
    const std::size_t begun = text.size();
    text.resize(begun + 64 * std::size_t{1024});
    const ssize_t count = read(file, text.data() + begun, text.size() - begun);
    if (count < 0 && errno != EINTR) return RefusedFile{std::string("it cannot be read: ") + std::strerror(errno)};
    text.resize(begun + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count == 0) return text;
  }
  const std::string most = most_mebibytes == 1 ? "a megabyte" : std::to_string(most_mebibytes) + " megabytes";
  return RefusedFile{"it is larger than " + most};
}

}  // namespace

Read read_settings_file(int folder, const std::string& name, std::size_t most_mebibytes, FileOwner owner,
                        bool* others_may_read) {
  // Without O_NONBLOCK a FIFO would hold us up.
  const base::Fd file(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file) return RefusedFile{std::string("it cannot be opened: ") + std::strerror(errno)};
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return RefusedFile{std::strerror(errno)};
  if (auto refused = refusal(status, owner)) return *refused;
  if (others_may_read != nullptr) *others_may_read = (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
  return all_of(file.get(), most_mebibytes);
}

}  // namespace duet::app
