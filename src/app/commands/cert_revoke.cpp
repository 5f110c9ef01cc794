#include <unistd.h>

#include <algorithm>
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
  const std::string fingerprint = plain_fingerprint(word);
  for (const Certificate& each : holdings.clients) {
    if (each.name == word || each.fingerprint == fingerprint) out.push_back({each.fingerprint, comment_on(each, now)});
  }
  if (out.empty() && fingerprint.empty()) refuse_unknown(holdings, word);
  if (out.empty()) out.push_back({fingerprint, "revoked " + day_text(now)});
  return out;
}

}  // namespace

int run_cert_revoke(const CommandLine& line) {
  const std::string folder = tls_folder_path();
  const base::UtcTime now = base::system_clock().utc();
  const std::string& word = line.arguments.front();
  wanted_by(read_holdings(folder), word, now);  // an unknown name does not make a folder
  TlsFolderHold hold(folder);
  const Holdings holdings = read_holdings(folder);
  const std::vector<Wanted> wanted = wanted_by(holdings, word, now);
  std::string text = holdings.revoked_text;
  boost::json::array revoked;
  std::size_t added = 0;
  for (const Wanted& each : wanted) {
    revoked.emplace_back(each.fingerprint);
    if (holdings.revoked.fingerprints.contains(each.fingerprint)) continue;
    text = with_revoked(text, each.fingerprint, each.comment);
    ++added;
  }
  if (added > 0) hold.replace("", {"revoked", text});
  if (line.flag("json")) {
    const boost::json::object out{{"name", one_line(word)}, {"added", added}, {"revoked", std::move(revoked)}};
    return print_text(rpc::to_text(out) + '\n');
  }
  if (added == 0) return print_text(one_line(word) + " was revoked already\n");
  const std::string many = wanted.size() == 1 ? "" : " (" + std::to_string(wanted.size()) + " certificates)";
  return print_text(one_line(word) + " is revoked" + many + "; daemons that run notice it within 5 seconds\n");
}

}  // namespace duet::app
