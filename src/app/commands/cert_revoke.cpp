#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/certificates/authority.h"
#include "app/certificates/tls_folder.h"
#include "app/commands/cert_facts.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/user_state.h"
#include "app/settings/door_settings.h"
#include "app/view/display_text.h"
#include "app/words/near_miss.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

std::string comment_on(const Certificate& certificate, base::UtcTime now) {
  return one_line(certificate.name) + ", good until " + day_text(certificate.ends) + ", revoked " + day_text(now);
}

[[noreturn]] void refuse_unknown(const Holdings& holdings, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Certificate& each : holdings.clients) names.emplace_back(each.name);
  const std::string_view meant = near_miss(name, names);
  const auto is_it = [&](const std::string& host) { return host == name; };
  if (holdings.server && (holdings.server->name == name || std::ranges::any_of(holdings.server->hosts, is_it))) {
    throw Failure("'" + one_line(name) +
                  "' is this machine's own certificate, which is not revoked but replaced: 'duet-rpc cert server "
                  "--force', or, if its key was stolen, 'duet-rpc cert init --force'");
  }
  throw Failure("there is no certificate of a client '" + one_line(name) + "'" +
                (meant.empty() ? ": 'duet-rpc cert list' shows them" : ": did you mean '" + one_line(meant) + "'?"));
}

/// What is to be revoked, with its comment.
struct Wanted {
  std::string fingerprint;
  std::string comment;
};

// By name, or one by its fingerprint, which may be that of a certificate that others made.
std::vector<Wanted> wanted_by(const Holdings& holdings, const std::string& word, base::UtcTime now) {
  std::vector<Wanted> out;
  const std::string fingerprint = fingerprint_in(word);
  for (const Certificate& each : holdings.clients) {
    if (each.name == word || each.fingerprint == fingerprint) out.push_back({each.fingerprint, comment_on(each, now)});
  }
  if (out.empty() && fingerprint.empty()) refuse_unknown(holdings, word);
  if (out.empty()) out.push_back({fingerprint, "revoked " + day_text(now)});
  return out;
}

// A fingerprint is enough, whatever is wrong with the certificates here.
Holdings holdings_for(const std::string& word, const std::string& folder, const std::string& list) {
  try {
    return read_holdings(folder, list);
  } catch (const Failure& fault) {
    if (fingerprint_in(word).empty()) throw;
    Holdings out{.notes = {fault.what()}};
    out.revoked_text = read_tls_file(folder, list).value_or("");
    out.revoked = parse_revocations(out.revoked_text);
    return out;
  }
}

// What daemons would not read would revoke nothing.
void refuse_useless(const Holdings& holdings, const std::string& list) {
  const std::string fault = fault_of_revoked(holdings.revoked, list);
  if (!fault.empty()) throw Failure(fault + ": nothing in the list counts before that line is mended or removed");
}

void write_list(const std::string& list, const std::string& text) {
  constexpr std::size_t most = std::size_t{1} << 20U;  // as much as the door reads
  if (text.size() > most) throw Failure(list + " would be larger than 1 MiB, and not be read: remove old lines of it");
  const std::filesystem::path path(list);
  const base::Fd folder(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && replace_file(folder.get(), path.filename(), text)) return;
  throw Failure("cannot write " + list + ": " + std::strerror(errno));
}

/// The list with what was added to it.
struct Longer {
  std::string text;
  std::size_t added = 0;
};

Longer with_all(const Holdings& holdings, const std::vector<Wanted>& wanted) {
  Longer out{holdings.revoked_text};
  for (const auto& [fingerprint, comment] : wanted) {
    if (holdings.revoked.fingerprints.contains(fingerprint)) continue;
    out.text = with_revoked(out.text, fingerprint, comment);
    ++out.added;
  }
  return out;
}

int tell_revoked(const CommandLine& line, const std::vector<Wanted>& wanted, std::size_t added) {
  const std::string word = one_line(line.arguments.front());
  if (line.flag("json")) {
    boost::json::array revoked;
    for (const Wanted& each : wanted) revoked.emplace_back(each.fingerprint);
    const boost::json::object out{{"name", word}, {"added", added}, {"revoked", std::move(revoked)}};
    return print_text(rpc::to_text(out) + '\n');
  }
  if (added == 0) return print_text(word + " was revoked already\n");
  const std::string many = wanted.size() == 1 ? "" : " (" + std::to_string(wanted.size()) + " certificates)";
  return print_text(word + " is revoked" + many + "; daemons that run notice it within 5 seconds\n");
}

}  // namespace

int run_cert_revoke(const CommandLine& line) {
  const std::string folder = tls_folder_path();
  const std::string list = revoked_path();
  const base::UtcTime now = base::system_clock().utc();
  const std::string& word = line.arguments.front();
  wanted_by(holdings_for(word, folder, list), word, now);  // an unknown name does not make a folder
  const TlsFolderHold hold(folder);
  const Holdings holdings = holdings_for(word, folder, list);
  tell_notes(line, holdings);
  refuse_useless(holdings, list);
  const std::vector<Wanted> wanted = wanted_by(holdings, word, now);
  const Longer longer = with_all(holdings, wanted);
  if (longer.added > 0) write_list(list, longer.text);
  return tell_revoked(line, wanted, longer.added);
}

}  // namespace duet::app
