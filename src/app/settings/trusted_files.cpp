#include "app/settings/trusted_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "app/project/failure.h"
#include "app/project/user_state.h"
#include "app/settings/settings_file.h"
#include "app/words/sha256.h"

namespace duet::app {
namespace {

using Entry = TrustedFiles::Entry;

constexpr std::size_t digits_of_sha256 = 64;
constexpr std::size_t list_mebibytes = 16;
constexpr std::size_t long_list = std::size_t{512} << 10U;  // some 4,000 files

// As sha256sum does: a line with such a name begins with a backslash.
std::string escaped(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    const char c = text[++at];
    out += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

std::string line_of(const Entry& entry) {
  const std::string path = escaped(entry.path);
  return (path == entry.path ? "" : "\\") + entry.sha256 + "  " + path + '\n';
}

std::string text_of(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) text += line_of(entry);
  return text;
}

// Of a worktree or a temporary folder, say. A file that alone is gone keeps its agents from being replaced.
bool is_folder_gone(const Entry& entry) {
  struct stat status {};
  const std::string folder = entry.path.substr(0, entry.path.rfind('/') + 1);
  return stat(folder.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool is_sha256(std::string_view text) {
  return text.size() == digits_of_sha256 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// None: the line is something else.
std::optional<Entry> entry_in(std::string_view line) {
  const bool is_escaped = line.starts_with('\\');
  if (is_escaped) line.remove_prefix(1);
  const std::string_view sha = line.substr(0, digits_of_sha256);
  if (!is_sha256(sha) || !line.substr(digits_of_sha256).starts_with("  /")) return std::nullopt;
  const std::string_view path = line.substr(digits_of_sha256 + 2);
  return Entry{is_escaped ? unescaped(path) : std::string(path), std::string(sha)};
}

std::vector<Entry> entries_in(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto entry = entry_in(text.substr(0, end))) entries.push_back(std::move(*entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

std::optional<std::string> sha256_for(std::string_view path, const std::vector<Entry>& entries) {
  const auto found = std::ranges::find(entries, path, &Entry::path);
  return found == entries.end() ? std::nullopt : std::optional(found->sha256);
}

void forget_contents(int folder, const std::vector<Entry>& kept) {
  const std::unique_ptr<DIR, int (*)(DIR*)> names(fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 3)), closedir);
  if (!names) return;
  std::set<std::string_view> used;
  for (const Entry& entry : kept) used.insert(entry.sha256);
  while (const dirent* const file = readdir(names.get())) {
    const std::string name = file->d_name;
    if (!used.contains(name) && name != "." && name != "..") unlinkat(folder, name.c_str(), 0);
  }
}

}  // namespace

std::string settings_path_of(const Project& project) {
  const std::string present = present_path(project);
  const std::string& root = present.empty() ? project.root : present;
  return (root == "/" ? "" : root) + "/.duet-rpc.toml";
}

tl::expected<std::vector<Entry>, std::string> TrustedFiles::list() const {
  if (folder_.empty()) return std::vector<Entry>();
  const std::string path = folder_ + '/' + name;
  auto read = read_settings_file(AT_FDCWD, path, list_mebibytes);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) {
    return tl::unexpected(path + " is not used: " + refused->why);
  }
  const auto& text = std::get<std::optional<std::string>>(read);
  return text ? entries_in(*text) : std::vector<Entry>();
}

tl::expected<std::optional<std::string>, std::string> TrustedFiles::trusted(std::string_view path) const {
  const auto entries = list();
  if (!entries) return tl::unexpected(entries.error());
  return sha256_for(path, *entries);
}

std::optional<std::string> TrustedFiles::said_to_be_trusted(std::string_view path) const {
  if (folder_.empty()) return std::nullopt;
  const auto read = read_settings_file(AT_FDCWD, folder_ + '/' + name, list_mebibytes, FileOwner::anybody);
  const auto* const text = std::get_if<std::optional<std::string>>(&read);
  return text != nullptr && *text ? sha256_for(path, entries_in(**text)) : std::nullopt;
}

std::optional<std::string> TrustedFiles::content(const std::string& sha256_of_it) const {
  auto read = read_settings_file(AT_FDCWD, folder_ + '/' + contents_name + '/' + sha256_of_it);
  auto* const text = std::get_if<std::optional<std::string>>(&read);
  const bool is_whole = text != nullptr && *text && sha256(**text) == sha256_of_it;
  return is_whole ? std::move(*text) : std::nullopt;
}

void TrustedFiles::replace(const std::vector<Entry>& entries, int folder) const {
  if (!replace_file(folder, name, text_of(entries))) {
    throw Failure("cannot write " + folder_ + '/' + name + ": " + std::strerror(errno));
  }
}

void TrustedFiles::trust(const std::string& path, std::string_view content) const {
  const base::Fd folder = make_user_folder(folder_);
  const base::Fd contents = make_user_folder(folder_, contents_name);
  const base::Fd lock = lock_in(folder.get(), "trusted.lock", "the user's state folder");
  auto entries = list();
  if (!entries) throw Failure(entries.error());
  std::erase_if(*entries, [&](const Entry& entry) { return entry.path == path; });
  if (text_of(*entries).size() > long_list) std::erase_if(*entries, is_folder_gone);
  entries->push_back({path, sha256(content)});
  std::ranges::sort(*entries, {}, &Entry::path);
  if (text_of(*entries).size() > list_mebibytes << 20U) {
    throw Failure(folder_ + '/' + name + " is full: 'duet-rpc trust --list' shows the files, --revoke takes one out");
  }
  if (!replace_file(contents.get(), sha256(content), content)) {
    throw Failure("cannot write to " + folder_ + '/' + contents_name + ": " + std::strerror(errno));
  }
  replace(*entries, folder.get());
  forget_contents(contents.get(), *entries);
}

bool TrustedFiles::revoke(std::string_view path) const {
  const auto before = list();
  if (!before) throw Failure(before.error());
  if (std::ranges::find(*before, path, &Entry::path) == before->end()) return false;
  const base::Fd folder = make_user_folder(folder_);
  const base::Fd contents = make_user_folder(folder_, contents_name);
  const base::Fd lock = lock_in(folder.get(), "trusted.lock", "the user's state folder");
  auto entries = list();
  if (!entries) throw Failure(entries.error());
  std::erase_if(*entries, [&](const Entry& entry) { return entry.path == path; });
  replace(*entries, folder.get());
  forget_contents(contents.get(), *entries);
  return true;
}

}  // namespace duet::app
