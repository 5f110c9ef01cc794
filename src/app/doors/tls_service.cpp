#include "app/doors/tls_service.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "app/certificates/certificate.h"
#include "app/doors/roles.h"
#include "app/project/failure.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/error.h"
#include "duet/rpc/message.h"
#include "duet/transport/tcp_acceptor.h"

namespace duet::app {
namespace {

using transport::TcpAddress;

constexpr std::string_view fingerprint_prefix_of_role = "sha256:";
constexpr std::uint16_t policy_violation_of_tls = 1008;
constexpr int too_many_at_door = -32003;
constexpr base::Duration most_between_looks = std::chrono::seconds(30);
constexpr base::Duration least_between_looks = std::chrono::seconds(1);
constexpr std::size_t day_size = 10;  // of 2026-11-15T09:30:00.123Z

std::string end_of(const transport::TlsCertificate& certificate, base::UtcTime now) {
  return (certificate.not_after < now ? "has expired on " : "expires on ") +
         base::utc_text(certificate.not_after).substr(0, day_size);
}

std::vector<std::string> changed_files(const transport::TlsContext::Server& before,
                                       const transport::TlsContext::Server& now) {
  std::vector<std::string> names;
  if (before.certificate.text != now.certificate.text) names.emplace_back("tls.certificate");
  if (before.clients_ca.text != now.clients_ca.text) names.emplace_back("tls.clients_ca");
  if (before.key.text != now.key.text) names.emplace_back("tls.key");
  if (before.revoked != now.revoked) names.emplace_back("tls.revoked");
  return names;
}

std::string name_of(const transport::TlsCertificate& certificate) {
  return certificate.name.empty() ? certificate.fingerprint : certificate.name;
}

std::vector<std::string> hosts_of(const transport::TlsCertificate& certificate, std::vector<std::string> hosts) {
  hosts.insert(hosts.end(), certificate.dns_names.begin(), certificate.dns_names.end());
  for (const std::string& address : certificate.addresses)
    hosts.push_back(address.find(':') == std::string::npos ? address : '[' + address + ']');
  return hosts;
}

rpc::Error no_role() {
  return {
      rpc::code::not_permitted, "Not permitted", {{"method", nullptr}, {"needs", role::observe}, {"role", nullptr}}};
}

void refuse_lines(transport::Channel& channel, const rpc::Error& error) {
  const std::string body = rpc::encode(error);
  std::string line;
  rpc::encode_error("null", body).append_to(line);
  channel.write(line + '\n');
  channel.close();
}

}  // namespace

TlsService::TlsService(Context context)
    : context_(std::move(context)),
      http_(context_.loop, context_.log, context_.server.methods(),
            calls_of_server(context_.server, context_.events, context_.end_caller, context_.metrics),
            {.connections = std::numeric_limits<std::size_t>::max() / 2},
            {.door = "tls", .scheme = "https", .loopback = false}),
      door_(context_.loop, context_.log, door_calls()),
      place_(context_.log, context_.folder, "tls", "TLS") {}

TlsDoorCalls TlsService::door_calls() {
  return {
      .on_known = [this](std::uint64_t number, const transport::TlsSession& session) { know(number, session); },
      .on_arrived = [this](std::uint64_t number, std::unique_ptr<transport::Channel> channel,
                           const transport::PeerIdentity& identity, std::string_view first_bytes,
                           bool speaks_http) { take(number, std::move(channel), identity, first_bytes, speaks_http); },
      .on_gone = [this](std::uint64_t number) { gone(number); }};
}

void TlsService::start(const TlsSettings& settings, std::vector<std::string> hosts,
                       const std::optional<TcpAddress>& given) {
  const std::optional<TcpAddress> wanted = place_.choose(given, settings.listen, false);
  if (!wanted) return apply(settings, std::move(hosts));
  load(settings, std::move(hosts));
  open_at(place_.listen(*wanted), *wanted, wanted != settings.listen);
}

void TlsService::start(base::Fd listener, const TlsSettings& settings, std::vector<std::string> hosts) {
  place_.take_passed();
  load(settings, std::move(hosts));
  const TcpAddress address = TcpAddress::of(listener.get());
  open_at(std::move(listener), address, false);
}

void TlsService::apply(const TlsSettings& settings, std::vector<std::string> hosts) {
  settings_ = settings;
  hosts_ = std::move(hosts);
  fault_.clear();
  revoked_fault_.clear();
  if (tls_) http_.set_hosts(hosts_of(tls_->own(), hosts_));
}

// The settings count only if their files are good: the names in them must not be used with the contents of others.
// Throws Failure: what is wrong with the files; or RevokedFault.
void TlsService::load(const TlsSettings& settings, std::vector<std::string> hosts) {
  try {
    use(read_tls_files(settings, context_.files, in_force(settings)));
  } catch (const RevokedFault& fault) {
    throw RevokedFault(std::string(no_tls_door) + fault.what());
  } catch (const std::exception& fault) {
    throw Failure(why_no_tls_door(fault, context_.files));
  }
  apply(settings, std::move(hosts));
}

std::string TlsService::why_not_again(const TlsSettings& settings) const {
  if (!settings.listen && !(place_.address() && place_.is_fixed())) return {};
  return why_no_tls_door(settings, context_.files, in_force(settings));
}

// Of the list that those settings name: another one begins anew.
std::set<std::string> TlsService::in_force(const TlsSettings& settings) const {
  const bool is_same = tls_ && settings.revoked == settings_.revoked;
  return is_same ? parts_.revoked : std::set<std::string>();
}

void TlsService::use(transport::TlsContext::Server parts) {
  tls_ = transport::TlsContext::for_server(parts);
  parts_ = std::move(parts);
  parts_.may_have_expired = true;
  door_.use(tls_);
  http_.set_hosts(hosts_of(tls_->own(), hosts_));
}

void TlsService::open_at(base::Fd listener, const TcpAddress& wanted, bool beyond_settings) {
  const int socket = listener.get();
  door_.open(transport::tcp_acceptor(context_.loop, std::move(listener)));
  place_.opened(socket, wanted, beyond_settings);
}

TlsService::Reloaded TlsService::reload(const TlsSettings& settings, std::vector<std::string> hosts) {
  if (ends_) return {};
  const bool was_open = tls_ != nullptr;
  const transport::TlsContext::Server before = parts_;
  apply_or_note(settings, std::move(hosts));
  return {was_open && tls_ ? changed_files(before, parts_) : std::vector<std::string>(), fault()};
}

void TlsService::apply_or_note(const TlsSettings& settings, std::vector<std::string> hosts) {
  wanted_.reset();
  if (!place_.is_fixed() && !settings.listen) {
    apply(settings, std::move(hosts));
    return close_door();
  }
  try {
    load(settings, hosts);
    if (!place_.is_fixed() && !place_.is_at(*settings.listen)) move_to(*settings.listen);
    if (!place_.is_fixed()) place_.confirm(*settings.listen);
  } catch (const RevokedFault& fault) {
    // Only the list that is in force is watched.
    const bool is_watched = settings.revoked == settings_.revoked;
    take_fault(is_watched ? revoked_fault_ : fault_, fault.what());
    if (is_watched) wanted_ = {settings, std::move(hosts)};
  } catch (const std::exception& fault) {
    take_fault(fault_, fault.what());
  }
  check_visitors();
}

// Our own listener may be in the way: 0.0.0.0 is also 127.0.0.1.
void TlsService::move_to(const TcpAddress& wanted) {
  const std::optional<TcpAddress> old = place_.address();
  if (!old || old->port() != wanted.port()) return open_at(place_.listen(wanted), wanted, false);
  door_.stop_listening();
  try {
    open_at(place_.listen(wanted), wanted, false);
  } catch (const Failure&) {
    open_at(place_.listen(*old), *old, place_.is_beyond_settings());
    throw;
  }
}

void TlsService::take_revoked() {
  if (!tls_ || stopping_) return;
  try {
    read_revoked_again();
  } catch (const std::exception& fault) {
    return take_fault(revoked_fault_, fault.what());
  }
  revoked_fault_.clear();
  if (const std::optional<Wanted> wanted = std::exchange(wanted_, {})) reload(wanted->settings, wanted->hosts);
}

void TlsService::read_revoked_again() {
  transport::TlsContext::Server parts = parts_;
  parts.revoked = read_revoked(revoked_file(), parts_.revoked);
  if (parts.revoked == parts_.revoked) return;
  use(std::move(parts));
  context_.log.info("revoked certificates were read again", {{"count", parts_.revoked.size()}});
  check_visitors();
}

void TlsService::take_fault(std::string& fault, std::string_view why) {
  fault = why;
  context_.log.error("the TLS door stays as it was", {{"reason", why}});
}

void TlsService::close_door() {
  if (!place_.address()) return;
  door_.close();
  std::vector<std::uint64_t> all;
  for (const auto& [number, visitor] : visitors_) all.push_back(number);
  for (const std::uint64_t number : all) turn_out(number, "the door is closed");
  tls_.reset();
  place_.closed();
}

std::string TlsService::fault() const {
  const bool are_both = !fault_.empty() && !revoked_fault_.empty();
  return fault_ + (are_both ? "; " : "") + revoked_fault_;
}

std::string TlsService::problem() const {
  if (std::string faults = fault(); !faults.empty()) return faults;
  return place_.address() ? problem_of_dates() : std::string();
}

std::string TlsService::problem_of_dates() const {
  const base::UtcTime now = context_.loop.clock().utc();
  std::string text;
  if (ends_soon(tls_->own(), now)) {
    text = "the certificate of the TLS door " + end_of(tls_->own(), now) +
           ": make another one with 'duet-rpc cert server NAME…', and say 'duet-rpc daemon reload'";
  }
  for (const transport::TlsCertificate& authority : ending_authorities(tls_->authorities(), now)) {
    text += (text.empty() ? "" : "; ") + ("the CA " + authority.subject) + " that clients are let in by " +
            end_of(authority, now) + ": " + std::string(cure_of_authority);
  }
  return text;
}

std::string TlsService::role_of(const transport::TlsCertificate& certificate) const {
  const auto& roles = settings_.roles;
  if (const auto by_print = roles.find(std::string(fingerprint_prefix_of_role) + certificate.fingerprint);
      by_print != roles.end())
    return by_print->second;
  // A name that looks like a fingerprint must not be taken for one.
  const auto by_name =
      certificate.name.starts_with(fingerprint_prefix_of_role) ? roles.end() : roles.find(certificate.name);
  return by_name != roles.end() ? by_name->second : role_in(certificate.uris);
}

void TlsService::know(std::uint64_t number, const transport::TlsSession& session) {
  const transport::TlsCertificate& certificate = session.peer_certificate();
  const auto admission = std::make_shared<const peer::Admission>(peer::Admission{
      .door = "tls", .name = name_of(certificate), .role = role_of(certificate), .expires = session.trusted_until()});
  visitors_.emplace(number,
                    Visitor{admission, certificate, session.peer_chain(), session.trusted_until(), session.context()});
  if (!dates_) watch_dates();
}

void TlsService::take(std::uint64_t number, std::unique_ptr<transport::Channel> channel,
                      const transport::PeerIdentity& identity, std::string_view first_bytes, bool speaks_http) {
  const Visitor& visitor = visitors_.at(number);
  // The files may have changed during the handshake.
  if (!tls_ || (visitor.judge != tls_ && tls_->refusal_of(visitor.chain))) return channel->close();
  const std::size_t most = std::min(settings_.max_connections, context_.most_connections);
  const bool is_full = visitors_.size() > most;
  if (speaks_http) return http_.take(std::move(channel), identity, visitor.admission, first_bytes, is_full);
  if (is_full) return refuse_lines(*channel, rpc::Error(too_many_at_door, "Too many clients", {{"limit", most}}));
  if (visitor.admission->role.empty()) return refuse_lines(*channel, no_role());
  context_.server.admit(std::move(channel), identity, peer::Protocol::json_lines(), first_bytes, visitor.admission);
}

void TlsService::gone(std::uint64_t number) {
  visitors_.erase(number);
  if (stopping_ && visitors_.empty()) context_.on_empty();
}

void TlsService::client_opened(peer::Connection& connection) {
  const peer::Peer& peer = connection.peer();
  if (peer.admission && peer.admission->door == "tls") connections_.emplace(peer.connection, &connection);
}

void TlsService::client_forgotten(std::uint64_t number) {
  if (connections_.erase(number) != 0) http_.connection_gone(number);
}

// Elsewhere: there may be hundreds, and each takes a part of a millisecond.
void TlsService::check_visitors() {
  std::vector<std::uint64_t> numbers;
  std::vector<std::vector<std::string>> chains;
  for (const auto& [number, visitor] : visitors_) {
    numbers.push_back(number);
    chains.push_back(visitor.chain);
  }
  for (const std::uint64_t number : numbers) {
    const Visitor& visitor = visitors_.at(number);
    if (role_of(visitor.certificate) != visitor.admission->role) turn_out(number, "its role is another one now");
  }
  if (!tls_ || numbers.empty()) return;
  const auto check = [tls = tls_, chains = std::move(chains)] {
    std::vector<std::optional<std::string>> refusals;
    for (const auto& chain : chains) refusals.push_back(tls->refusal_of(chain));
    return refusals;
  };
  context_.loop.run_elsewhere(check, lifetime_.bind([this, numbers](auto result) {
    const std::vector<std::optional<std::string>> refusals = result.get();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (refusals.at(i)) turn_out(numbers[i], *refusals[i]);
    }
  }));
}

void TlsService::turn_out(std::uint64_t number, std::string_view why) {
  const auto found = visitors_.find(number);
  if (found == visitors_.end()) return;
  const std::shared_ptr<const peer::Admission> admission = found->second.admission;
  context_.log.info("a connection is ended", {{"door", "tls"}, {"name", admission->name}, {"reason", why}});
  door_.turn_out(number);
  http_.end_session(*admission);
  for (const auto& [connection_number, connection] : connections_) {
    if (connection->peer().admission != admission) continue;
    const bool is_websocket = connection->conversation().protocol().framing == peer::Protocol::Framing::websocket;
    is_websocket ? connection->close_with(policy_violation_of_tls, "session-ended") : connection->close();
  }
}

// The clock may be set meanwhile, or the machine sleep.
void TlsService::watch_dates() {
  const base::UtcTime now = context_.loop.clock().utc();
  base::Duration next = most_between_looks;
  std::vector<std::uint64_t> expired;
  for (const auto& [number, visitor] : visitors_) {
    if (visitor.until < now)
      expired.push_back(number);
    else
      next = std::min<base::Duration>(next, visitor.until - now);
  }
  for (const std::uint64_t number : expired) turn_out(number, "its certificate has expired");
  if (visitors_.empty()) return dates_.cancel();
  dates_ = context_.loop.after(std::max<base::Duration>(next, least_between_looks), [this] { watch_dates(); });
}

void TlsService::take_nobody() {
  ends_ = true;
  door_.close();
}

void TlsService::stop(bool restarting) {
  stopping_ = true;
  place_.leave(restarting);
  take_nobody();
  http_.stop();
}

}  // namespace duet::app
