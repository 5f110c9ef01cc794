#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include <boost/json/object.hpp>

#include "app/certificates/authority.h"
#include "app/certificates/issue.h"
#include "app/certificates/tls_folder.h"
#include "app/client/task_end.h"
#include "app/commands/cert_facts.h"
#include "app/commands/commands.h"
#include "app/commands/password.h"
#include "app/project/failure.h"
#include "app/project/user_state.h"
#include "app/view/display_text.h"
#include "app/words/client_name.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

/// The file of --p12, in its folder.
struct BrowserFile {
  std::string path;
  base::Fd folder;
  std::string name;
  bool may_overwrite = false;
};

std::optional<BrowserFile> browser_file(const CommandLine& line) {
  const auto path = line.text("p12");
  if (!path) return std::nullopt;
  const std::size_t slash = path->rfind('/');
  const std::string folder = slash == path->npos ? "." : path->substr(0, slash + 1);
  BrowserFile out{*path, base::Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path->substr(slash + 1),
                  line.flag("force")};
  if (!out.folder) throw Failure("cannot write " + *path + ": " + folder + ": " + std::strerror(errno));
  if (out.name.empty()) throw Failure(*path + " is a folder: --p12 wants a file");
  struct stat status {};
  const bool there = fstatat(out.folder.get(), out.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && S_ISDIR(status.st_mode)) throw Failure(*path + " is a folder: --p12 wants a file");
  if (there && !S_ISREG(status.st_mode)) throw Failure(*path + " is not a plain file: --p12 wants one, or none");
  if (there && !out.may_overwrite) throw Failure(*path + " is there already: --force overwrites it");
  return out;
}

// Those that let somebody in now.
std::vector<Certificate> valid_ones(const Holdings& holdings, const std::string& name, base::UtcTime now) {
  std::vector<Certificate> out = holdings.clients_called(name);
  std::erase_if(out, [&](const Certificate& each) {
    return state_of(each, holdings.revoked.fingerprints.contains(each.fingerprint), now) != "valid";
  });
  return out;
}

// Revoked and expired ones leave their name to others.
void refuse_taken(const CommandLine& line, const std::vector<Certificate>& valid) {
  if (valid.empty()) return;
  const std::string name = one_line(valid.front().name);
  const std::string which = name + (valid.size() == 1 ? " has a certificate already" : " has certificates already") +
                            ", good until " + day_text(valid.back().ends);
  if (!line.flag("force")) {
    throw Failure(which + ": --force makes another beside it; 'duet-rpc cert revoke " + name + "' ends it first");
  }
  print_aside(std::string(line.program) + ": " + which +
              ", and stays valid until it is revoked: 'duet-rpc cert revoke " + valid.back().fingerprint + "'\n");
}

// It will hold a key: a file that a shell has just made is for its owner alone, before there is anything in it.
void close_to_others() {
  struct stat status {};
  if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return;
  const bool is_open = (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (!is_open || fchmod(STDOUT_FILENO, S_IRUSR | S_IWUSR) == 0) return;
  throw Failure("stdout is a file that others can read, and that cannot be changed: " +
                std::string(std::strerror(errno)) + ": write to another place");
}

void tell_person(const CommandLine& line, const Certificate& made, const std::optional<BrowserFile>& file) {
  if (isatty(STDERR_FILENO) != 1) return;
  const std::string where =
      file ? "import " + one_line(file->path) + " into the browser, then remove it"
           : "it holds a key: bring it there over a safe way, as tls/client.pem beside config.toml, "
             "with mode 600";
  print_aside(std::string(line.program) + ": " + made.name + " may " + made.role + " until " + day_text(made.ends) +
              "; " + where + '\n');
}

// What could not be written down could not be revoked: nobody gets it before.
void hand_out(TlsFolderHold& hold, const Certificate& made, const std::string& pem,
              const std::optional<BrowserFile>& file, const std::string& bytes) {
  const std::string inner(issued_folder);
  const std::string record = made.serial + ".pem";
  hold.replace(inner, {record, pem});
  const WhatIsThere there = file && file->may_overwrite ? WhatIsThere::goes : WhatIsThere::stays;
  if (!file || replace_file(file->folder.get(), file->name, bytes, there)) return;
  const int error = errno;
  hold.remove(inner, record);
  throw Failure("cannot write " + file->path + ": " + std::strerror(error));
}

int print_identity(const CommandLine& line, const Certificate& made, const std::string& identity, bool in_file) {
  boost::json::object out = certificate_json(made, "valid");
  out["identity"] = identity;
  if (!line.flag("json") && in_file && isatty(STDOUT_FILENO) == 1) return 0;  // a key is not shown for nothing
  try {
    return print_text(line.flag("json") ? rpc::to_text(out) + '\n' : identity);
  } catch (const std::system_error& error) {
    throw Failure(std::string(error.what()) + "; the certificate is made all the same: 'duet-rpc cert revoke " +
                  made.name + "', then try again");
  }
}

}  // namespace

int run_cert_client(const CommandLine& line) {
  const std::string& name = line.arguments.front();
  if (!is_client_name(name)) throw Failure("'" + one_line(name) + "' is no name: it is 1 to 64 of A-Z a-z 0-9 . _ -");
  const auto role = line.text("role");
  if (!role)
    throw Failure("cert client needs --role: observe sees everything, operate steers, own may run any program");
  const std::optional<BrowserFile> file = browser_file(line);
  const std::string folder = tls_folder_path();
  if (!unfinished_note(folder).empty()) TlsFolderHold finishing(folder);
  load_authority(folder, base::system_clock().utc());  // before anybody is asked for a password
  close_to_others();
  const std::string password = file ? new_password(one_line(file->path)) : "";

  TlsFolderHold hold(folder);
  const base::UtcTime now = base::system_clock().utc();
  const Authority authority = load_authority(folder, now);
  refuse_taken(line, valid_ones(present_holdings(), name, now));
  const std::chrono::days days(line.number("days").value_or(life_of_client.count()));
  const KeyPair client = make_client(authority.signing, name, *role, life_from(now, days));
  const Certificate made = read_certificate(*client.certificate).value();
  hand_out(hold, made, pem_of(*client.certificate), file,
           file ? pkcs12_of(client, authority.certificates, name, password) : "");
  const std::string identity = pem_of(*client.key) + pem_of(*client.certificate) + pem_of(authority.certificates);
  const int code = print_identity(line, made, identity, file.has_value());
  tell_person(line, made, file);
  return code;
}

}  // namespace duet::app
