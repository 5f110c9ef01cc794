#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/certificates/authority.h"
#include "app/certificates/tls_folder.h"
#include "app/commands/cert_facts.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/settings/settings_file.h"
#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "app/view/table.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

/// A certificate with what is known of it here.
struct Shown {
  Certificate facts;
  std::string state;
  bool ours = false;  // one of our CAs has signed it
};

std::string given_bytes(const std::string& path) {
  if (path == "-") return read_input();
  auto read = read_settings_file(AT_FDCWD, path, 1, FileOwner::anybody);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) throw Failure(path + ": " + refused->why);
  auto& text = std::get<std::optional<std::string>>(read);
  if (!text) throw Failure("there is no file " + path);
  return std::move(*text);
}

// Certificates of others are shown without a folder of ours, and whatever is wrong with that.
Holdings own_holdings() {
  try {
    return present_holdings();
  } catch (const Failure&) {
    return {};
  }
}

Shown shown(X509& certificate, const std::string& path, const Holdings& own, base::UtcTime now) {
  auto facts = read_certificate(certificate);
  if (!facts) throw Failure(path + ": " + facts.error());
  const bool revoked = own.revoked.fingerprints.contains(facts->fingerprint);
  const bool ours = std::ranges::any_of(
      own.authorities, [&](const X509Owner& authority) { return is_issued_by(certificate, *authority); });
  const std::string state(state_of(*facts, revoked, now));
  return {std::move(*facts), state, ours};
}

std::string key_note(CertificateFile::Key key) {
  switch (key) {
    case CertificateFile::Key::its_own:
      return "its private key is in the file, too";
    case CertificateFile::Key::another:
      return "the private key in the file is not its own";
    case CertificateFile::Key::encrypted:
      return "an encrypted private key is in the file, too";
    case CertificateFile::Key::none:
      break;
  }
  return "";
}

std::string painted(const TextStyle& style, std::string_view state) {
  if (state == "valid") return style.good(state);
  return paint_of_state(state) == Table::Paint::fault ? style.fault(state) : style.warning(state);
}

std::string lines_about(const Shown& shown, const TextStyle& style, const std::string& note) {
  const Certificate& facts = shown.facts;
  std::string out;
  const auto add = [&](const std::string& what, const std::string& text) {
    if (!text.empty()) out += style.faint(what + std::string(13 - what.size(), ' ')) + text + '\n';
  };
  std::vector<std::string> names = facts.hosts;
  std::ranges::copy(facts.others, std::back_inserter(names));
  add("Name", facts.name.empty() ? "-" : style.name(one_line(facts.name)));
  add("Role", facts.role.empty() ? "-" : one_line(facts.role));
  add("Kind", kind_of(facts));
  add("Names", joined_names(names));
  add("State", painted(style, shown.state));
  add("From", date_and_time(facts.begins));
  add("Until", date_and_time(facts.ends));
  add("Issuer", one_line(facts.issuer) + (shown.ours ? " (the CA here)" : ""));
  add("Subject", one_line(facts.subject));
  add("Key", one_line(facts.key));
  add("Serial", facts.serial);
  add("Fingerprint", facts.fingerprint);
  add("Note", note);
  return out;
}

object json_about(const Shown& shown) {
  object out = certificate_json(shown.facts, shown.state);
  out["ours"] = shown.ours;
  return out;
}

std::vector<Shown> all_of(const Holdings& holdings, base::UtcTime now) {
  std::vector<Shown> out;
  const auto add = [&](const Certificate& each) {
    const bool revoked = holdings.revoked.fingerprints.contains(each.fingerprint);
    out.push_back({each, std::string(state_of(each, revoked, now)), true});
  };
  std::ranges::for_each(holdings.authority_facts, add);
  if (holdings.server) add(*holdings.server);
  std::ranges::for_each(holdings.clients, add);
  return out;
}

Table table_of(const std::vector<Shown>& certificates) {
  Table table({"NAME", "ROLE", "KIND", "EXPIRES", "STATE"});
  for (const auto& [facts, state, ours] : certificates) {
    table.add({{one_line(facts.name), Table::Paint::name},
               {facts.role.empty() ? "-" : one_line(facts.role)},
               {kind_of(facts)},
               {day_text(facts.ends)},
               {state, paint_of_state(state)}});
  }
  return table;
}

}  // namespace

int run_cert_list(const CommandLine& line) {
  const std::string folder = tls_folder_path();
  refuse_unfinished(folder);
  const Holdings holdings = present_holdings();
  tell_notes(line, holdings);
  const std::vector<Shown> certificates = all_of(holdings, base::system_clock().utc());
  if (line.flag("json")) {
    array out;
    for (const Shown& each : certificates) out.push_back(certificate_json(each.facts, each.state));
    return print_text(rpc::to_text(out) + '\n');
  }
  if (certificates.empty()) return print_text("there are no certificates: 'duet-rpc cert init' makes the first\n");
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(table_of(certificates).text(style, terminal_width(STDOUT_FILENO)));
}

int run_cert_show(const CommandLine& line) {
  const std::string path = line.arguments.front();
  const auto file = parse_certificate_file(given_bytes(path));
  if (!file) throw Failure(path + ": " + file.error());
  const Holdings own = own_holdings();
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  std::string text;
  object first;
  array others;
  for (const X509Owner& certificate : file->certificates) {
    const Shown each = shown(*certificate, path, own, base::system_clock().utc());
    const bool is_first = text.empty();
    text += (is_first ? "" : "\n") + lines_about(each, style, is_first ? key_note(file->key) : "");
    is_first ? static_cast<void>(first = json_about(each)) : others.push_back(json_about(each));
  }
  if (!line.flag("json")) return print_text(text);
  first["hasKey"] = file->key == CertificateFile::Key::its_own;
  first["others"] = std::move(others);
  return print_text(rpc::to_text(first) + '\n');
}

}  // namespace duet::app
