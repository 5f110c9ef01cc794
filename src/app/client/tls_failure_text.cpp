#include "app/client/tls_failure_text.h"

#include <string>
#include <vector>

#include "app/view/display_text.h"
#include "duet/base/clock.h"
#include "duet/base/utc_text.h"

namespace duet::app {
namespace {

using transport::TlsCertificate;
using transport::TlsFailure;

std::string names_of(const TlsCertificate& certificate) {
  std::string text;
  for (const std::vector<std::string>& names : {certificate.dns_names, certificate.addresses}) {
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "it has no names at all" : "it is for " + text;
}

std::string new_authority(const std::string& program) {
  return "'" + program + " cert init --force NAME...' there makes a new CA, and every client needs a new identity then";
}

// Of a server's certificate that we do not take.
std::string bad_certificate(const TlsFailure& failure, const FarPlace& place, const std::string& program) {
  const TlsCertificate theirs = failure.peer_certificate.value_or(TlsCertificate());
  const std::string which = "the certificate of " + place.url.place();
  switch (failure.fault) {
    case TlsFailure::Certificate::names:
      return which + " is not for " + place.server_name + ": " + names_of(theirs) +
             "; --server-name says which of them is meant";
    case TlsFailure::Certificate::authority:
      return which + " is of no CA that " + place.identity + " trusts: it is that of " + theirs.subject +
             ", signed by " + theirs.issuer;
    case TlsFailure::Certificate::expired:
      if (theirs.not_after > base::system_clock().utc())
        return which + " is of a CA that has expired: " + theirs.issuer + "; " + new_authority(program);
      return which + " has expired, on " + base::utc_text(theirs.not_after) + "; '" + program +
             " cert server NAME...' there makes it anew";
    case TlsFailure::Certificate::not_yet_valid:
      return which + " is not valid before " + base::utc_text(theirs.not_before) + ": is the clock here right?";
    default:
      return which + " cannot be trusted: " + failure.text;
  }
}

bool is_about_certificate(int alert) {
  constexpr int handshake_failure = 40;
  constexpr int bad_certificate = 42;
  constexpr int access_denied = 49;
  constexpr int certificate_required = 116;
  return alert == handshake_failure || (alert >= bad_certificate && alert <= access_denied) ||
         alert == certificate_required;
}

// The date may be that of a CA above ours, and then another certificate of that CA would be refused as well.
std::string cure_of(int alert, const ShownIdentity& identity, const std::string& program) {
  constexpr int certificate_expired = 45;
  const base::UtcTime now = base::system_clock().utc();
  const TlsCertificate& own = identity.own;
  const bool is_good_here = own.not_before <= now && own.not_after > now;
  if (alert != certificate_expired || !is_good_here)
    return "'" + program + " cert client NAME --role R' on that machine makes another";
  for (const TlsCertificate& authority : identity.authorities) {
    if (authority.subject != own.issuer || authority.not_after > now) continue;
    return "it is the CA that has expired, " + authority.subject + ", on " + base::utc_text(authority.not_after) +
           "; " + new_authority(program);
  }
  return "but it is good until " + base::utc_text(own.not_after) + " by the clock here: '" + program +
         " doctor' on that machine says whether the CA there has expired, or the clock is wrong";
}

std::string refused(const TlsFailure& failure, const FarPlace& place, const std::string& program,
                    const ShownIdentity& identity) {
  const std::string reason = transport::alert_name(failure.alert);
  if (!is_about_certificate(failure.alert)) return place.url.place() + " refuses the connection: " + reason;
  return place.url.place() + " refuses the certificate in " + place.identity + ": " + reason + "; " +
         cure_of(failure.alert, identity, program);
}

}  // namespace

Failure failure_of_tls(const TlsFailure& failure, const FarPlace& place, std::string_view program,
                       const ShownIdentity& identity) {
  const std::string there = place.url.place();
  switch (failure.kind) {
    case TlsFailure::Kind::refused:
      return Failure(one_line(refused(failure, place, std::string(program), identity)));
    case TlsFailure::Kind::certificate:
      return Failure(one_line(bad_certificate(failure, place, std::string(program))));
    case TlsFailure::Kind::no_tls:
      return Failure(there + " speaks no TLS: is it the port of the daemon's TLS door?");
    case TlsFailure::Kind::timeout:
      return Failure(there + " did not answer in time, in the middle of the handshake; --timeout gives it more",
                     exit_code::no_answer);
    case TlsFailure::Kind::cut:
      return Failure(there + " ended the connection before it said who it is: no daemon is there, or behind it",
                     exit_code::no_daemon);
    case TlsFailure::Kind::protocol:
      break;
  }
  return Failure(one_line("there is no TLS with " + there + ": " + failure.text));
}

}  // namespace duet::app
