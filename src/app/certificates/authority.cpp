#include "app/certificates/authority.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "app/certificates/tls_folder.h"
#include "app/project/failure.h"
#include "duet/base/utc_text.h"

namespace duet::app {
namespace {

using transport::openssl;

constexpr std::string_view date_form = "2026-11-16";

std::string day_of(base::UtcTime time) { return base::utc_text(time).substr(0, date_form.size()); }

std::vector<X509Owner> certificates_of_file(const std::string& folder, const std::string& name) {
  const std::optional<std::string> text = read_tls_file(folder, name);
  if (!text) return {};
  PemCertificates read = certificates_in(*text);
  if (read.damaged || read.certificates.empty()) {
    throw Failure(folder + '/' + name + (read.damaged ? ": a certificate in it is damaged" : " holds no certificate"));
  }
  return std::move(read.certificates);
}

Certificate facts_of(X509& certificate, const std::string& path) {
  auto facts = read_certificate(certificate);
  if (!facts) throw Failure(path + ": " + facts.error());
  return std::move(*facts);
}

KeyOwner key_of_authority(const std::string& folder) {
  const std::string path = folder + "/ca.key";
  const std::optional<std::string> text = read_tls_file(folder, "ca.key");
  if (!text) {
    throw Failure("there is no " + path +
                  ", so nothing can be signed: bring it back from where it is kept, or make a new CA with 'duet-rpc "
                  "cert init --force'");
  }
  KeyOwner key = key_in(*text);
  if (!key && is_encrypted_key(*text)) {
    throw Failure(path + " has a password, which is not asked for: 'openssl pkey -in ca.key' takes it off");
  }
  if (!key) throw Failure(path + " holds no private key");
  return key;
}

void refuse_unable(const Certificate& facts, const std::string& path, base::UtcTime now) {
  if (!facts.ca) throw Failure(path + " cannot sign: its certificate is not that of a CA");
  if (now > facts.ends) {
    throw Failure(path + " has expired on " + day_of(facts.ends) +
                  ": 'duet-rpc cert init --force' makes a new CA, and every client needs a new identity then");
  }
  if (now < facts.begins) {
    throw Failure(path + " is not valid before " + day_of(facts.begins) + ": is the clock of this machine right?");
  }
}

// One stray file must not be in the way of revoking another's certificate.
template <typename Read>
void note_failure(std::vector<std::string>& notes, Read read) {
  try {
    read();
  } catch (const Failure& fault) {
    notes.emplace_back(fault.what());
  }
}

std::vector<Certificate> issued_in_file(const std::string& inner, const std::string& name,
                                        const std::vector<X509Owner>& authorities) {
  std::vector<Certificate> out;
  const std::string path = inner + '/' + name;
  for (const X509Owner& certificate : certificates_of_file(inner, name)) {
    const bool ours = std::ranges::any_of(
        authorities, [&](const X509Owner& authority) { return is_issued_by(*certificate, *authority); });
    if (ours) out.push_back(facts_of(*certificate, path));
  }
  return out;
}

std::vector<Certificate> issued_in(const std::string& folder, const std::vector<X509Owner>& authorities,
                                   std::vector<std::string>& notes) {
  std::vector<Certificate> out;
  std::error_code gone;
  const std::string inner = folder + '/' + std::string(issued_folder);
  for (const auto& entry : std::filesystem::directory_iterator(inner, gone)) {
    if (entry.path().extension() != ".pem") continue;
    note_failure(notes, [&] {
      std::ranges::move(issued_in_file(inner, entry.path().filename(), authorities), std::back_inserter(out));
    });
  }
  if (gone && gone != std::errc::no_such_file_or_directory) {
    notes.push_back("cannot read " + inner + ": " + gone.message());
  }
  std::ranges::sort(out, {}, [](const Certificate& each) { return std::pair(each.name, each.begins); });
  return out;
}

}  // namespace

Authority load_authority(const std::string& folder, base::UtcTime now) {
  Authority out{.certificates = certificates_of_file(folder, "ca.pem"), .signing = {}};
  const std::string path = folder + "/ca.pem";
  if (out.certificates.empty()) {
    throw Failure("there is no CA yet (" + path + "): 'duet-rpc cert init' makes one");
  }
  out.signing.key = key_of_authority(folder);
  std::optional<Certificate> facts;
  for (const X509Owner& certificate : out.certificates) {
    const bool fits = openssl().X509_check_private_key(certificate.get(), out.signing.key.get()) == 1;
    openssl().ERR_clear_error();
    if (!fits) continue;
    facts = facts_of(*certificate, path);
    check_openssl(openssl().X509_up_ref(certificate.get()), "a certificate");
    out.signing.certificate.reset(certificate.get());
    if (facts->ca && now >= facts->begins && now <= facts->ends) return out;  // one that was renewed stands there twice
  }
  if (facts) refuse_unable(*facts, path, now);
  throw Failure(folder + "/ca.key is not the key of " + path +
                ": bring back the one that belongs to it, or make a new CA with 'duet-rpc cert init --force'");
}

Holdings read_holdings(const std::string& folder, const std::string& revoked) {
  Holdings out;
  out.authorities = certificates_of_file(folder, "ca.pem");
  for (const X509Owner& authority : out.authorities) {
    out.authority_facts.push_back(facts_of(*authority, folder + "/ca.pem"));
  }
  note_failure(out.notes, [&] {
    const std::vector<X509Owner> server = certificates_of_file(folder, "server.pem");
    if (!server.empty()) out.server = facts_of(*server.front(), folder + "/server.pem");
  });
  out.clients = issued_in(folder, out.authorities, out.notes);
  out.revoked_text = read_tls_file(folder, revoked).value_or("");
  out.revoked = parse_revocations(out.revoked_text);
  return out;
}

std::vector<Certificate> Holdings::clients_called(std::string_view name) const {
  std::vector<Certificate> out;
  std::ranges::copy_if(clients, std::back_inserter(out), [&](const Certificate& each) { return each.name == name; });
  return out;
}

}  // namespace duet::app
