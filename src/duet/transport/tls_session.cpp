#include "duet/transport/tls_session.h"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "duet/base/utc_text.h"

namespace duet::transport {
namespace {

constexpr int app_data_of_session = 0;  // the index that OpenSSL leaves to programs
constexpr std::size_t most_written_at_once = 64 * 1024;
constexpr int most_idle_records = 64;     // in a row
constexpr std::size_t kept_input = 1024;  // bytes of memory that an idle session keeps for it
constexpr char handshake_record = 0x16;
constexpr char alert_record = 0x15;
// protocol_version, as a server says it that has not understood a word.
constexpr std::string_view plain_alert("\x15\x03\x01\x00\x02\x02\x46", 7);

std::string listed(const TlsCertificate& certificate) {
  std::string names;
  for (const auto* const list : {&certificate.dns_names, &certificate.addresses}) {
    for (const std::string& name : *list) names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "no name at all" : names;
}

TlsFailure::Certificate fault_of(long verify_result) {
  using Fault = TlsFailure::Certificate;
  switch (verify_result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Fault::names;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Fault::expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Fault::not_yet_valid;
    case X509_V_ERR_CERT_REVOKED:
      return Fault::revoked;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
    case X509_V_ERR_CERT_CHAIN_TOO_LONG:
      return Fault::authority;
    default:
      return Fault::other;
  }
}

std::string text_of_date(const TlsCertificate& shown, const TlsCertificate& at_fault) {
  const bool is_own = at_fault.fingerprint == shown.fingerprint;
  const std::string whose = (is_own ? "its certificate, that of " : "its certificate is by ") + at_fault.subject +
                            (is_own ? ", " : ", whose own ");
  if (at_fault.not_before > base::system_clock().utc())
    return whose + "is not valid before " + base::utc_text(at_fault.not_before);
  return whose + "has expired: it was valid until " + base::utc_text(at_fault.not_after);
}

bool is_address(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

// What OpenSSL reads and writes: input_ and output_ of the session.
struct TlsSession::Bio {
  static BIO* make(TlsSession& session) {
    static BIO_METHOD* const method = make_method();
    BIO* const bio = openssl().BIO_new(method);
    if (bio == nullptr) throw std::bad_alloc();
    openssl().BIO_set_data(bio, &session);
    openssl().BIO_set_init(bio, 1);
    return bio;
  }

 private:
  static BIO_METHOD* make_method() {
    BIO_METHOD* const method = openssl().BIO_meth_new(openssl().BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "duet");
    if (method == nullptr) throw std::bad_alloc();
    openssl().BIO_meth_set_read(method, &read);
    openssl().BIO_meth_set_write(method, &write);
    openssl().BIO_meth_set_ctrl(method, &control);
    return method;
  }
  static TlsSession& session(BIO* bio) { return *static_cast<TlsSession*>(openssl().BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int size) {
    TlsSession& self = session(bio);
    openssl().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    const std::size_t count = self.input_.copy(into, static_cast<std::size_t>(size), self.consumed_);
    self.consumed_ += count;
    if (count > 0) return static_cast<int>(count);
    openssl().BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    return -1;
  }
  static int write(BIO* bio, const char* bytes, int size) {
    session(bio).output_.append(bytes, static_cast<std::size_t>(size));
    return size;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
};

std::unique_ptr<TlsSession> TlsSession::server(std::shared_ptr<const TlsContext> context) {
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(context)));
}

std::unique_ptr<TlsSession> TlsSession::client(std::shared_ptr<const TlsContext> context, std::string host,
                                               std::string protocol) {
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context)));
  session->host_ = std::move(host);
  session->offered_ = std::move(protocol);
  return session;
}

TlsSession::~TlsSession() = default;

void TlsSession::begin() {
  ssl_.reset(openssl().SSL_new(context_->get()));
  if (!ssl_) throw std::runtime_error("TLS: " + openssl_error());
  BIO* const bio = Bio::make(*this);
  openssl().SSL_set_bio(ssl_.get(), bio, bio);
  openssl().SSL_set_ex_data(ssl_.get(), app_data_of_session, &refused_);
  if (is_server()) return openssl().SSL_set_accept_state(ssl_.get());
  openssl().SSL_set_connect_state(ssl_.get());
  name_server();
  if (offered_.empty()) return;
  std::string wire(1, static_cast<char>(offered_.size()));
  wire += offered_;
  openssl().SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                                static_cast<unsigned>(wire.size()));
}

// The common name does not count.
void TlsSession::name_server() {
  X509_VERIFY_PARAM* const checks = openssl().SSL_get0_param(ssl_.get());
  openssl().X509_VERIFY_PARAM_set_hostflags(checks,
                                            X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool is_number = is_address(host_);
  const int named = is_number ? openssl().X509_VERIFY_PARAM_set1_ip_asc(checks, host_.c_str())
                              : openssl().X509_VERIFY_PARAM_set1_host(checks, host_.c_str(), host_.size());
  // To OpenSSL a name with a dot in front would mean every name below it.
  if (host_.empty() || host_.front() == '.' || named != 1)
    throw std::runtime_error("TLS: '" + host_ + "' is no name of a server");
  if (!is_number) openssl().SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host_.data());
}

bool TlsSession::looks_like_tls() {
  const char first = input_.front();
  return first == handshake_record || (!is_server() && first == alert_record);
}

void TlsSession::shake_hands() {
  if (open_ || failure_) return;
  const bool is_first = !peer_spoke_ && !input_.empty();
  peer_spoke_ = peer_spoke_ || is_first;
  if (is_first && !looks_like_tls()) {
    if (is_server()) output_ += plain_alert;
    return fail({.kind = TlsFailure::Kind::no_tls, .text = "the other end speaks no TLS"});
  }
  if (!ssl_) begin();
  openssl().ERR_clear_error();
  const int result = openssl().SSL_do_handshake(ssl_.get());
  if (result == 1) {
    open_ = true;
    take_peer();
  } else if (openssl().SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    const bool is_mute = is_server() && output_.empty() && !has_answered_;
    take_fault();
    if (is_mute && failure_->kind != TlsFailure::Kind::refused) output_ += plain_alert;
  }
  has_answered_ = has_answered_ || !output_.empty();
  forget_consumed();
}

void TlsSession::take_peer() {
  const X509* const own = openssl().SSL_get0_peer_certificate(ssl_.get());
  if (own == nullptr) return fail({.text = "no certificate was shown"});
  peer_ = describe(*own);
  trusted_until_ = peer_.not_after;
  const auto each = [](const STACK_OF(X509) * stack, const auto& call) {
    const auto* const list = reinterpret_cast<const OPENSSL_STACK*>(stack);
    for (int i = 0; i < openssl().OPENSSL_sk_num(list); ++i)
      call(*static_cast<X509*>(openssl().OPENSSL_sk_value(list, i)));
  };
  each(openssl().SSL_get0_verified_chain(ssl_.get()),
       [this](const X509& one) { trusted_until_ = std::min(trusted_until_, describe(one).not_after); });
  if (is_server()) {
    peer_chain_.push_back(der_of(*own));
    each(openssl().SSL_get_peer_cert_chain(ssl_.get()),
         [this](const X509& one) { peer_chain_.push_back(der_of(one)); });
  }
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  openssl().SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
  protocol_.assign(reinterpret_cast<const char*>(chosen), size);
}

// Before anything else is asked of OpenSSL: its errors are those of this thread's last call.
void TlsSession::take_fault() {
  const unsigned long error = openssl().ERR_peek_last_error();
  const int reason = ERR_GET_REASON(error);
  const std::string text = openssl_error();
  const long verified = openssl().SSL_get_verify_result(ssl_.get());
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET) {
    const int alert = reason - SSL_AD_REASON_OFFSET;
    return fail({.kind = TlsFailure::Kind::refused,
                 .text = "the other end refuses the connection: " + alert_name(alert),
                 .alert = alert});
  }
  if (verified != X509_V_OK) return fail(certificate_failure(verified));
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return fail({.kind = TlsFailure::Kind::certificate, .text = "no certificate was shown"});
  fail({.kind = TlsFailure::Kind::protocol, .text = text});
}

TlsFailure TlsSession::certificate_failure(long verify_result) {
  TlsFailure failure{.kind = TlsFailure::Kind::certificate,
                     .text = openssl().X509_verify_cert_error_string(verify_result),
                     .fault = fault_of(verify_result)};
  if (!refused_) return failure;
  const TlsCertificate shown = refused_->shown;
  const TlsCertificate at_fault = refused_->at_fault;
  refused_.reset();
  failure.peer_certificate = shown;
  using Fault = TlsFailure::Certificate;
  const auto is_about = [&](Fault fault) { return failure.fault == fault; };
  if (is_about(Fault::names)) failure.text = "its certificate is for " + listed(shown) + ", and not for " + host_;
  if (is_about(Fault::authority))
    failure.text = "its certificate is issued by " + shown.issuer + ", which is not trusted";
  if (is_about(Fault::expired) || is_about(Fault::not_yet_valid)) failure.text = text_of_date(shown, at_fault);
  return failure;
}

void TlsSession::fail(TlsFailure failure) {
  if (!failure_) failure_ = std::move(failure);
}

void TlsSession::end_of_input() {
  if (!peer_ended_)
    fail({.kind = TlsFailure::Kind::cut,
          .text = open_ ? "the connection was cut" : "the other end closed the connection during the handshake"});
}

bool TlsSession::has_more() const {
  return open_ && !failure_ && !peer_ended_ && (consumed_ < input_.size() || openssl().SSL_pending(ssl_.get()) > 0);
}

// All records that are there: each call of OpenSSL takes one at most. A record without data may ask for new keys, which
// costs us more than it costs the peer.
std::size_t TlsSession::read(std::span<char> into) {
  std::size_t count = 0;
  while (count < into.size() && has_more()) {
    openssl().ERR_clear_error();
    const std::size_t room = std::min<std::size_t>(into.size() - count, std::numeric_limits<int>::max());
    const std::size_t consumed_before = consumed_;
    const int moved = openssl().SSL_read(ssl_.get(), into.data() + count, static_cast<int>(room));
    if (moved > 0) {
      count += static_cast<std::size_t>(moved);
      idle_records_ = 0;
      continue;
    }
    const int why = openssl().SSL_get_error(ssl_.get(), moved);
    if (why == SSL_ERROR_ZERO_RETURN) peer_ended_ = true;
    if (why != SSL_ERROR_ZERO_RETURN && why != SSL_ERROR_WANT_READ) take_fault();
    if (consumed_ == consumed_before) continue;  // OpenSSL needs several calls for some records
    if (has_more() && ++idle_records_ > most_idle_records) fail({.text = "too many records without data"});
  }
  forget_consumed();
  return count;
}

void TlsSession::forget_consumed() {
  if (consumed_ < input_.size()) return;
  consumed_ = 0;
  input_.clear();
  if (input_.capacity() > kept_input) input_.shrink_to_fit();
}

std::size_t TlsSession::write(std::string_view bytes) {
  if (!open_ || failure_ || ended_ || bytes.empty()) return 0;
  openssl().ERR_clear_error();
  const int moved =
      openssl().SSL_write(ssl_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), most_written_at_once)));
  if (moved > 0) return static_cast<std::size_t>(moved);
  take_fault();
  return 0;
}

void TlsSession::end() {
  if (!open_ || failure_ || std::exchange(ended_, true)) return;
  openssl().ERR_clear_error();
  openssl().SSL_shutdown(ssl_.get());
}

}  // namespace duet::transport
