#include "app/project/git_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "duet/base/fd.h"

namespace duet::app {
namespace {

using Wanted = std::function<bool(std::string_view)>;

constexpr std::size_t largest_index = std::size_t{1} << 30U;

/// Reads the entries one after the other; each says how much of it there is.
class IndexReader {
 public:
  IndexReader(std::string_view bytes, std::size_t hash_size) : bytes_(bytes), hash_size_(hash_size) {
    if (bytes_.size() < header_size || !bytes_.starts_with("DIRC")) return;
    version_ = number(4, 4);
    left_ = version_ >= 2 && version_ <= 4 ? number(8, 4) : 0;
  }

  /// False: there are no more, or this is none.
  bool next() {
    if (left_ == 0) return false;
    --left_;
    const std::size_t begin = at_;
    at_ += status_size + hash_size_;
    if (at_ + 4 > bytes_.size()) return false;
    const std::size_t flags = number(at_, 2);
    at_ += (flags & extended) != 0 ? 4 : 2;
    path_.resize(version_ == 4 ? path_.size() - std::min(path_.size(), read_dropped()) : 0);
    const std::size_t end = bytes_.find('\0', at_);
    if (end == bytes_.npos) return false;
    path_ += bytes_.substr(at_, end - at_);
    at_ = version_ == 4 ? end + 1 : begin + ((end - begin) / 8 + 1) * 8;
    return (flags & longest_noted) == std::min(path_.size(), longest_noted);
  }

  const std::string& path() const { return path_; }

 private:
  static constexpr std::size_t header_size = 12;
  static constexpr std::size_t status_size = 40;
  static constexpr std::size_t extended = 0x4000;
  static constexpr std::size_t longest_noted = 0xFFF;

  std::size_t number(std::size_t at, std::size_t size) const {
    std::size_t value = 0;
    for (; size > 0; --size) value = value << 8U | static_cast<unsigned char>(bytes_[at++]);
    return value;
  }

  // How much of the path before goes off its end, in version 4.
  std::size_t read_dropped() {
    std::size_t value = 0;
    for (bool more = true; more && at_ < bytes_.size(); ++value) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value = value << 7U | (byte & 0x7FU);
      more = (byte & 0x80U) != 0;
    }
    return value - 1;
  }

  std::string_view bytes_;
  std::size_t hash_size_;
  std::size_t version_ = 0;
  std::size_t left_ = 0;
  std::size_t at_ = header_size;
  std::string path_;
};

std::string content_of(int folder, const std::string& path) {
  const base::Fd file(openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  const bool is_plain = file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (!is_plain || static_cast<std::size_t>(status.st_size) > largest_index) return {};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < text.size();
       size += static_cast<std::size_t>(std::max<ssize_t>(count, 0)))
    count = read(file.get(), text.data() + size, text.size() - size);
  text.resize(size);
  return text;
}

// Of the working tree at `folder`. In a worktree and a submodule .git is a file that names the place.
std::string index_of(int folder) {
  constexpr std::string_view key = "gitdir: ";
  std::string place = content_of(folder, ".git");
  if (!place.starts_with(key)) return content_of(folder, ".git/index");
  while (place.ends_with('\n')) place.pop_back();
  return content_of(folder, place.substr(key.size()) + "/index");
}

std::string in_small_letters(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool is_same(int a, int b) {
  struct stat one {};
  struct stat other {};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// A repository above the project that somebody else has put there, as in a folder where everybody may write, says
// nothing of it; nor does a link to one of ours.
bool has_repository(int folder, const struct stat& project) {
  struct stat mark {};
  if (fstatat(folder, ".git", &mark, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return mark.st_uid == geteuid() || mark.st_uid == 0 || mark.st_uid == project.st_uid;
}

}  // namespace

std::optional<std::string> find_in_index(std::string_view index, const Wanted& each) {
  for (const std::size_t hash_size : {20U, 32U}) {  // SHA-1 and SHA-256; the index does not say which
    for (IndexReader reader(index, hash_size); reader.next();) {
      if (each(reader.path())) return reader.path();
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_tracked(const Project& project, const Wanted& wanted) {
  base::Fd folder = base::duplicate(project.directory.get());
  struct stat own {};
  if (fstat(folder.get(), &own) != 0) return std::nullopt;
  std::string_view above = project.root;
  while (!has_repository(folder.get(), own)) {
    base::Fd next(openat(folder.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next || is_same(next.get(), folder.get())) return std::nullopt;
    folder = std::move(next);
    above = above.substr(0, std::min(above.rfind('/'), above.size()));
  }
  const std::string_view below = std::string_view(project.root).substr(above.size());
  const std::string prefix = below.empty() || below == "/" ? "" : in_small_letters(below.substr(1)) + '/';
  std::optional<std::string> found;
  find_in_index(index_of(folder.get()), [&](std::string_view path) {
    const std::string small = in_small_letters(path);
    if (!small.starts_with(prefix) || !wanted(std::string_view(small).substr(prefix.size()))) return false;
    found = path.substr(prefix.size());
    return true;
  });
  return found;
}

}  // namespace duet::app
