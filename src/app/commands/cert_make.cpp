#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "app/certificates/authority.h"
#include "app/certificates/issue.h"
#include "app/certificates/server_name.h"
#include "app/certificates/tls_folder.h"
#include "app/client/task_end.h"
#include "app/commands/cert_facts.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/view/text_style.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

// Empty: it has none that could stand in a certificate.
std::string machine_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return is_server_name(name.data()) ? name.data() : "";
}

std::vector<std::string> checked_names(const std::vector<std::string>& words) {
  auto names = server_names(words);
  if (!names) throw Failure(names.error());
  return std::move(*names);
}

// A machine may have a name that nobody can ask for.
std::vector<std::string> names_of_machine() {
  std::vector<std::string> names{"localhost"};
  if (const std::string machine = machine_name(); !machine.empty()) names.insert(names.begin(), machine);
  return names;
}

bool is_there(const std::string& folder, const std::string& name) {
  struct stat status {};
  return lstat((folder + '/' + name).c_str(), &status) == 0;
}

void refuse_overwriting(const std::string& folder, const std::vector<std::string>& names, const std::string& what) {
  const auto name = std::ranges::find_if(names, [&](const std::string& each) { return is_there(folder, each); });
  if (name != names.end()) throw Failure(folder + '/' + *name + " is there already: --force " + what);
}

void add_pair(std::vector<TlsFile>& files, const std::string& name, const KeyPair& pair) {
  files.push_back({name + ".key", pem_of(*pair.key)});
  files.push_back({name + ".pem", pem_of(*pair.certificate)});
}

Certificate facts(X509& certificate) { return read_certificate(certificate).value(); }

std::string line_about(const TextStyle& style, const std::string& path, const std::string& what,
                       const Certificate& made) {
  return style.name(path) + "  " + what + ", good until " + day_text(made.ends) + '\n';
}

std::string server_line(const TextStyle& style, const std::string& folder, const Certificate& server) {
  return line_about(style, folder + "/server.pem", "this machine's certificate, for " + joined_names(server.hosts),
                    server);
}

constexpr const char* how_to_load = "A daemon that runs takes it over with 'duet-rpc daemon reload'.\n";

int tell_made(const CommandLine& line, const std::string& folder, const Certificate& authority,
              const Certificate& server) {
  if (line.flag("json")) {
    const object out{{"folder", folder},
                     {"ca", certificate_json(authority, "valid")},
                     {"server", certificate_json(server, "valid")}};
    return print_text(rpc::to_text(out) + '\n');
  }
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(
      line_about(style, folder + "/ca.pem", "the CA, " + authority.name, authority) +
      server_line(style, folder, server) +
      "Next: 'duet-rpc cert client NAME --role observe|operate|own' makes an identity for another machine, "
      "and [tls] in config.toml opens the door.\n");
}

// Of another command, whose names are the ones that count.
int tell_finished(const CommandLine& line, const std::string& folder) {
  const Holdings holdings = read_holdings(folder);
  if (!holdings.server || holdings.authority_facts.empty())
    throw Failure(folder + " is not whole: --force makes it anew");
  print_aside(std::string(line.program) +
              ": an interrupted command is finished, and nothing else is made; 'duet-rpc cert server NAME... --force' "
              "gives the certificate other names\n");
  return tell_made(line, folder, holdings.authority_facts.front(), *holdings.server);
}

// Names that were not given are those of the certificate that is there.
std::vector<std::string> names_for_server(const CommandLine& line, const std::string& folder) {
  if (!line.arguments.empty()) return checked_names(line.arguments);
  const auto present = read_holdings(folder).server;
  if (!present && is_there(folder, "server.pem")) {
    throw Failure(folder + "/server.pem cannot be read, so its names are not known: give them");
  }
  return present && !present->hosts.empty() ? checked_names(present->hosts) : checked_names(names_of_machine());
}

}  // namespace

int run_cert_init(const CommandLine& line) {
  std::vector<std::string> words = names_of_machine();
  std::ranges::copy(line.arguments, std::back_inserter(words));
  const std::vector<std::string> names = checked_names(words);
  TlsFolderHold hold(tls_folder_path());
  const bool force = line.flag("force");
  // Nobody has seen what an interrupted one made: its CA is this one's.
  const bool begun = !force && std::ranges::find(hold.finished(), "ca.key") != hold.finished().end();
  if (!force && !begun && !hold.finished().empty()) return tell_finished(line, hold.path());
  if (!force && !begun) {
    refuse_overwriting(hold.path(), {"ca.pem", "ca.key", "server.pem", "server.key"},
                       "makes all of it anew, and then every client needs a new identity");
  }
  const base::UtcTime now = base::system_clock().utc();
  std::vector<TlsFile> files;
  KeyPair authority;
  if (begun) {
    authority = std::move(load_authority(hold.path(), now).signing);
  } else {
    authority = make_authority(machine_name(), life_from(now, life_of_authority));
    add_pair(files, "ca", authority);
  }
  const KeyPair server = make_server(authority, names, life_from(now, life_of_server));
  add_pair(files, "server", server);
  hold.replace_together(files);
  return tell_made(line, hold.path(), facts(*authority.certificate), facts(*server.certificate));
}

int run_cert_server(const CommandLine& line) {
  const std::string folder = tls_folder_path();
  if (!line.arguments.empty()) checked_names(line.arguments);  // before anything is made
  TlsFolderHold hold(folder);
  const base::UtcTime now = base::system_clock().utc();
  const Authority authority = load_authority(folder, now);
  if (!line.flag("force")) {
    refuse_overwriting(folder, {"server.pem", "server.key"}, "makes it anew; its clients need nothing new");
  }
  const KeyPair server = make_server(authority.signing, names_for_server(line, folder), life_from(now, life_of_server));
  std::vector<TlsFile> files;
  add_pair(files, "server", server);
  hold.replace_together(files);
  const Certificate made = facts(*server.certificate);
  if (line.flag("json")) {
    return print_text(rpc::to_text(object{{"folder", folder}, {"server", certificate_json(made, "valid")}}) + '\n');
  }
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(server_line(style, folder, made) + how_to_load);
}

}  // namespace duet::app
