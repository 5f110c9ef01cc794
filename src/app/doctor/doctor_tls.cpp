// The files of the TLS door, as a daemon would read them.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "app/doctor/doctor.h"
#include "app/doors/tls_files.h"
#include "duet/base/clock.h"
#include "duet/base/utc_text.h"
#include "duet/transport/tls_certificate.h"
#include "duet/transport/tls_context.h"

namespace duet::app {
namespace {

using transport::TlsCertificate;
using Verdict = Finding::Verdict;

std::string names_of(const TlsCertificate& certificate) {
  std::string text;
  for (const auto* const list : {&certificate.dns_names, &certificate.addresses}) {
    for (const std::string& name : *list) text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

Finding check_certificate(const TlsCertificate& own, base::UtcTime now) {
  const std::string subject = "tls certificate";
  const std::string until = base::utc_text(own.not_after);
  const std::string names = names_of(own);
  if (names.empty()) {
    return {
        subject, Verdict::wrong,
        "it has no alternative names, and clients look at nothing else: 'duet-rpc cert server NAME…' makes another"};
  }
  if (ends_soon(own, now))
    return {subject, Verdict::wrong, "it ends at " + until + ": 'duet-rpc cert server NAME…' makes another"};
  return {subject, Verdict::good, "for " + names + ", until " + until};
}

std::vector<Finding> check_authorities(const std::vector<TlsCertificate>& authorities, base::UtcTime now) {
  std::vector<Finding> findings;
  const std::vector<TlsCertificate> ending = ending_authorities(authorities, now);
  for (const TlsCertificate& authority : authorities) {
    const bool is_early = authority.not_before > now;
    const bool ends = std::ranges::find(ending, authority.fingerprint, &TlsCertificate::fingerprint) != ending.end();
    std::string text = authority.subject + ", from " + base::utc_text(authority.not_before) + " until " +
                       base::utc_text(authority.not_after);
    if (is_early) text += ": is the clock right?";
    if (ends) text += ": " + std::string(cure_of_authority);
    findings.push_back({"tls clients", is_early || ends ? Verdict::wrong : Verdict::good, text});
  }
  return findings;
}

// A clock that stands before a file was written is wrong, and certificates go by it.
Finding check_clock(const std::string& file, base::UtcTime now) {
  struct stat status {};
  const bool is_there = stat(file.c_str(), &status) == 0;
  const base::UtcTime written = std::chrono::system_clock::from_time_t(status.st_mtime);
  if (!is_there || written <= now + std::chrono::minutes(5)) return {"tls clock", Verdict::good, base::utc_text(now)};
  return {"tls clock", Verdict::wrong,
          "it says " + base::utc_text(now) + ", but " + file + " was written at " + base::utc_text(written)};
}

}  // namespace

std::vector<Finding> check_tls(const TlsSettings& settings, const std::string& folder) {
  const TlsFiles files = files_of(settings, folder);
  if (folder.empty() || (!settings.listen && access(files.certificate.c_str(), F_OK) != 0)) return {};
  const base::UtcTime now = base::system_clock().utc();
  std::vector<Finding> findings{check_clock(files.certificate, now)};
  try {
    const transport::TlsContext::Server parts = read_tls_files(files);
    const auto context = transport::TlsContext::for_server(parts);
    findings.push_back(check_certificate(context->own(), now));
    for (Finding& finding : check_authorities(context->authorities(), now)) findings.push_back(std::move(finding));
  } catch (const std::exception& fault) {
    findings.push_back({"tls", Verdict::wrong, fault.what()});
  }
  return findings;
}

}  // namespace duet::app
