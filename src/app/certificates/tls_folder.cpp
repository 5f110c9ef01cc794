#include "app/certificates/tls_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "app/project/failure.h"
#include "app/project/user_state.h"
#include "app/settings/settings.h"
#include "app/settings/settings_file.h"

namespace duet::app {
namespace {

constexpr const char* begun_name = "begun";
constexpr const char* unfinished_name = "unfinished";

[[noreturn]] void refuse_write(const std::string& what) {
  throw Failure("cannot write " + what + ": " + std::strerror(errno));
}

base::Fd open_folder(int where, const char* name) {
  return base::Fd(openat(where, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> names(fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 3)), closedir);
  while (const dirent* const entry = names ? readdir(names.get()) : nullptr) {
    if (const std::string name = entry->d_name; name != "." && name != "..") out.push_back(name);
  }
  return out;
}

// A folder that cannot be made for lack of room has a code of its own only for who starts daemons.
base::Fd make_tls_folder(const std::string& path, const std::string& inner) {
  try {
    return make_user_folder(path, inner, "XDG_CONFIG_HOME");
  } catch (const Failure& failure) {
    throw Failure(failure.what());
  }
}

void refuse_loose_link(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    throw Failure(path + " is not used: it is a link to a file that is not there");
  }
}

void refuse_open_key(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  throw Failure(path + " is not used: others can read it: take that away with chmod 600");
}

}  // namespace

std::string tls_folder_path() {
  std::string folder = tls_folder(settings_places());
  if (folder.empty()) throw Failure("there is no place for certificates: set HOME or XDG_CONFIG_HOME");
  return folder;
}

std::string revoked_path() {
  const auto settings = tls_settings(settings_places());
  if (const auto* const error = std::get_if<SettingsError>(&settings)) {
    throw Failure("where the revoked certificates stand is not known: " + error->text);
  }
  return std::filesystem::path(tls_folder_path()) / std::get<TlsSettings>(settings).revoked;
}

std::optional<std::string> read_tls_file(const std::string& folder, const std::string& name) {
  const std::string path = std::filesystem::path(folder) / name;
  auto read = read_settings_file(AT_FDCWD, path);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) throw Failure(path + " is not used: " + refused->why);
  auto& text = std::get<std::optional<std::string>>(read);
  if (!text) refuse_loose_link(path);
  if (text && name.ends_with(".key")) refuse_open_key(path);
  return std::move(text);
}

std::string unfinished_note(const std::string& folder) {
  struct stat status {};
  if (stat((folder + '/' + unfinished_name).c_str(), &status) != 0) return "";
  return "a cert command was killed before it had finished, or is at it: 'duet-rpc cert init' finishes it";
}

void refuse_unfinished(const std::string& folder) {
  if (const std::string note = unfinished_note(folder); !note.empty()) throw Failure(note);
}

TlsFolderHold::TlsFolderHold(std::string path) : path_(std::move(path)), folder_(make_tls_folder(path_, {})) {
  lock_ = lock_in(folder_.get(), "lock", path_);
  forget_begun();
  finished_ = finish();
}

void TlsFolderHold::forget_begun() {
  const base::Fd begun = open_folder(folder_.get(), begun_name);
  if (!begun) return;
  for (const std::string& name : names_in(begun.get())) unlinkat(begun.get(), name.c_str(), 0);
  unlinkat(folder_.get(), begun_name, AT_REMOVEDIR);
}

std::vector<std::string> TlsFolderHold::finish() {
  const base::Fd unfinished = open_folder(folder_.get(), unfinished_name);
  if (!unfinished) return {};
  std::vector<std::string> names = names_in(unfinished.get());
  std::ranges::sort(names, std::greater());  // ca.key comes last
  for (const std::string& name : names) {
    if (renameat(unfinished.get(), name.c_str(), folder_.get(), name.c_str()) != 0) refuse_write(path_ + '/' + name);
  }
  const bool done = fsync(folder_.get()) == 0 && unlinkat(folder_.get(), unfinished_name, AT_REMOVEDIR) == 0 &&
                    fsync(folder_.get()) == 0;
  if (!done) refuse_write("to " + path_);
  return names;
}

void TlsFolderHold::replace_together(const std::vector<TlsFile>& files) {
  bool done = mkdirat(folder_.get(), begun_name, 0700) == 0;
  const base::Fd begun = done ? open_folder(folder_.get(), begun_name) : base::Fd();
  done = static_cast<bool>(begun);
  for (const TlsFile& file : files) done = done && replace_file(begun.get(), file.name, file.text);
  done = done && renameat(folder_.get(), begun_name, folder_.get(), unfinished_name) == 0;
  if (!done) {
    const int error = errno;
    forget_begun();
    errno = error;
    refuse_write("to " + path_);
  }
  if (fsync(folder_.get()) != 0) refuse_write("to " + path_);
  finish();
}

void TlsFolderHold::replace(const std::string& inner, const TlsFile& file) {
  const base::Fd folder = make_tls_folder(path_, inner);
  if (replace_file(folder.get(), file.name, file.text)) return;
  refuse_write(path_ + '/' + inner + (inner.empty() ? "" : "/") + file.name);
}

void TlsFolderHold::remove(const std::string& inner, const std::string& name) {
  unlinkat(folder_.get(), (inner + '/' + name).c_str(), 0);
}

}  // namespace duet::app
