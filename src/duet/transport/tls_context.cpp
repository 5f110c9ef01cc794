#include "duet/transport/tls_context.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "duet/base/utc_text.h"

namespace duet::transport {
namespace {

using StoreContextHandle = std::unique_ptr<X509_STORE_CTX, OpenSslDelete<&OpenSsl::X509_STORE_CTX_free>>;

constexpr int most_between = 1;
constexpr int least_rsa_bits = 2048;
constexpr int least_ec_bits = 256;
constexpr int app_data = 0;  // the index that OpenSSL leaves to programs

[[noreturn]] void fail_with(const std::string& what) { throw std::runtime_error(what + ": " + openssl_error()); }

void check_ssl(long result, const char* what) {
  if (result != 1) fail_with(what);
}

bool has_strong_key(const X509& certificate) {
  const EVP_PKEY* const key = openssl().X509_get0_pubkey(&certificate);
  if (key == nullptr) return false;
  const int bits = openssl().EVP_PKEY_get_bits(key);
  switch (openssl().EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
      return bits >= least_rsa_bits;
    case EVP_PKEY_EC:
      return bits >= least_ec_bits;
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448:
      return true;
    default:
      return false;
  }
}

bool belongs_to(const X509Handle& certificate, const KeyHandle& key) {
  const bool belongs = openssl().X509_check_private_key(certificate.get(), key.get()) == 1;
  openssl().ERR_clear_error();
  return belongs;
}

const X509Handle& certificate_of(const std::vector<X509Handle>& certificates, const KeyHandle& key,
                                 const std::string& complaint) {
  const auto found = std::ranges::find_if(certificates, [&](const auto& each) { return belongs_to(each, key); });
  if (found == certificates.end()) throw std::runtime_error(complaint);
  return *found;
}

KeyHandle only_key(const PemText& pem) {
  std::vector<KeyHandle> keys = keys_in(pem);
  if (keys.empty()) throw std::runtime_error(pem.name + ": there is no key in it");
  if (keys.size() > 1) throw std::runtime_error(pem.name + ": there is more than one key in it");
  return std::move(keys.front());
}

void check_dates(const TlsCertificate& certificate, const std::string& name) {
  const base::UtcTime now = base::system_clock().utc();
  if (certificate.not_after < now)
    throw std::runtime_error(name + ": this certificate has expired: it was valid until " +
                             base::utc_text(certificate.not_after));
  if (certificate.not_before > now)
    throw std::runtime_error(name + ": this certificate is not valid yet, only from " +
                             base::utc_text(certificate.not_before) + " on: is the clock right?");
}

// What a client is told is the alert that OpenSSL has for a fault. Some of these mislead: decrypt_error for a wrong
// signature, bad_certificate for a date that is still to come. A certificate whose signature is not that of our
// authority is damaged if it names our authority's key, and else of another authority with the same name.
int told_fault(int fault, const X509* certificate) {
  if (fault == X509_V_ERR_CERT_NOT_YET_VALID) return X509_V_ERR_CERT_HAS_EXPIRED;
  if (fault != X509_V_ERR_CERT_SIGNATURE_FAILURE) return fault;
  const bool names_key =
      certificate != nullptr && openssl().X509_get0_authority_key_id(const_cast<X509*>(certificate)) != nullptr;
  return names_key ? X509_V_ERR_CERT_REJECTED : X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
}

bool issued(const X509& authority, const X509& certificate) {
  const bool did =
      openssl().X509_check_issued(const_cast<X509*>(&authority), const_cast<X509*>(&certificate)) == X509_V_OK;
  openssl().ERR_clear_error();
  return did;
}

}  // namespace

TlsContext::TlsContext(bool is_server)
    : is_server_(is_server),
      context_(openssl().SSL_CTX_new(is_server ? openssl().TLS_server_method() : openssl().TLS_client_method())) {
  if (!context_) fail_with("OpenSSL");
  SSL_CTX* const context = context_.get();
  std::array groups{'X', '2', '5', '5', '1', '9', ':', 'P', '-', '2', '5', '6', '\0'};
  check_ssl(openssl().SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr), "TLS 1.3");
  check_ssl(openssl().SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, nullptr), "TLS 1.3");
  check_ssl(openssl().SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, groups.data()), "groups");
  openssl().SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  openssl().SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                         SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN,
                         nullptr);
  openssl().SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, nullptr);  // TlsSession counts the records
  openssl().SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  openssl().SSL_CTX_set_num_tickets(context, 0);
  openssl().SSL_CTX_set_security_level(context, 2);
  openssl().SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &TlsContext::judge);
  openssl().SSL_CTX_set_verify_depth(context, most_between);
  X509_STORE* const store = openssl().SSL_CTX_get_cert_store(context);
  openssl().X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);  // the authority to trust may be below a root
  openssl().X509_STORE_set_ex_data(store, app_data, this);
}

TlsContext::~TlsContext() = default;

std::shared_ptr<const TlsContext> TlsContext::for_server(const Server& parts) {
  const std::shared_ptr<TlsContext> made(new TlsContext(true));
  const std::vector<X509Handle> certificates = certificates_in(parts.certificate);
  if (certificates.empty()) throw std::runtime_error(parts.certificate.name + ": there is no certificate in it");
  made->show(certificates, parts.certificate.name, only_key(parts.key), parts.key.name);
  if (!parts.may_have_expired) check_dates(made->own_, parts.certificate.name);
  const std::vector<X509Handle> authorities = certificates_in(parts.clients_ca);
  if (authorities.empty()) throw std::runtime_error(parts.clients_ca.name + ": there is no certificate in it");
  for (const X509Handle& authority : authorities) {
    made->trust(*authority, parts.clients_ca.name);
    openssl().SSL_CTX_add_client_CA(made->get(), authority.get());
  }
  made->revoked_ = parts.revoked;
  made->protocols_ = parts.protocols;
  openssl().SSL_CTX_ctrl(made->get(), SSL_CTRL_SET_MAX_CERT_LIST, static_cast<long>(parts.most_certificates), nullptr);
  openssl().SSL_CTX_set_alpn_select_cb(made->get(), &TlsContext::choose_protocol, made.get());
  return made;
}

std::shared_ptr<const TlsContext> TlsContext::for_client(const PemText& identity) {
  const std::shared_ptr<TlsContext> made(new TlsContext(false));
  const std::vector<X509Handle> certificates = certificates_in(identity);
  if (certificates.empty()) throw std::runtime_error(identity.name + ": there is no certificate in it");
  const KeyHandle key = only_key(identity);
  made->show(certificates, identity.name, key, identity.name);
  bool trusts_any = false;
  for (const X509Handle& each : certificates) {
    if (belongs_to(each, key)) continue;
    made->trust(*each, identity.name);
    trusts_any = true;
  }
  if (!trusts_any) throw std::runtime_error(identity.name + ": the certificate of the authority to trust is not in it");
  return made;
}

// The one that the key belongs to, and behind it those that lead to its authority, whatever order they came in.
void TlsContext::show(const std::vector<X509Handle>& certificates, const std::string& name, const KeyHandle& key,
                      const std::string& key_name) {
  const X509Handle& own =
      certificate_of(certificates, key,
                     name == key_name ? name + ": the key and the certificate in it do not belong together"
                                      : key_name + ": this key does not belong to the certificate in " + name);
  own_ = describe(*own);
  const int purpose = is_server_ ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (openssl().X509_check_purpose(own.get(), purpose, 0) != 1)
    throw std::runtime_error(name + ": this certificate is not for " + (is_server_ ? "servers" : "clients"));
  if (openssl().SSL_CTX_use_certificate(get(), own.get()) != 1) fail_with(name);
  if (openssl().SSL_CTX_use_PrivateKey(get(), key.get()) != 1) fail_with(key_name);
  const X509* last = own.get();
  for (std::size_t left = certificates.size(); left > 0 && !issued(*last, *last); --left) {
    const auto next = std::ranges::find_if(certificates, [&](const auto& each) { return issued(*each, *last); });
    if (next == certificates.end()) return;
    last = next->get();
    if (!issued(*last, *last)) check_ssl(openssl().SSL_CTX_ctrl(get(), SSL_CTRL_CHAIN_CERT, 1, next->get()), "chain");
  }
}

void TlsContext::trust(X509& authority, const std::string& name) {
  authorities_.push_back(describe(authority));
  if (openssl().X509_check_ca(&authority) == 0)
    throw std::runtime_error(name + ": the certificate of " + authorities_.back().subject +
                             " in it is none of an authority");
  if (openssl().X509_STORE_add_cert(openssl().SSL_CTX_get_cert_store(get()), &authority) != 1) fail_with(name);
}

// Called for each certificate of a chain, from the authority down, and for each fault.
int TlsContext::judge(int good, X509_STORE_CTX* context) {
  const auto& self = *static_cast<const TlsContext*>(
      openssl().X509_STORE_get_ex_data(openssl().X509_STORE_CTX_get0_store(context), app_data));
  const X509* const current = openssl().X509_STORE_CTX_get_current_cert(context);
  int fault = good == 1 ? X509_V_OK : openssl().X509_STORE_CTX_get_error(context);
  if (fault == X509_V_OK && current != nullptr) {
    const bool is_last = openssl().X509_STORE_CTX_get_error_depth(context) == 0;
    if (self.revoked_.contains(fingerprint_of(*current)))
      fault = X509_V_ERR_CERT_REVOKED;
    else if (!has_strong_key(*current))
      fault = is_last ? X509_V_ERR_EE_KEY_TOO_SMALL : X509_V_ERR_CA_KEY_TOO_SMALL;
  }
  if (fault == X509_V_OK) return 1;
  if (self.is_server_) fault = told_fault(fault, current);
  openssl().X509_STORE_CTX_set_error(context, fault);
  auto* const session =
      static_cast<SSL*>(openssl().X509_STORE_CTX_get_ex_data(context, openssl().SSL_get_ex_data_X509_STORE_CTX_idx()));
  const X509* const shown = openssl().X509_STORE_CTX_get0_cert(context);
  if (session != nullptr && shown != nullptr) {
    auto* const seen = static_cast<std::optional<Refused>*>(openssl().SSL_get_ex_data(session, app_data));
    if (seen != nullptr) *seen = {describe(*shown), describe(current == nullptr ? *shown : *current)};
  }
  return 0;
}

int TlsContext::choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                                const unsigned char* offered, unsigned size, void* self) {
  const std::vector<std::string>& known = static_cast<const TlsContext*>(self)->protocols_;
  for (unsigned at = 0; at < size && at + 1U + offered[at] <= size; at += 1U + offered[at]) {
    const std::string_view name(reinterpret_cast<const char*>(offered + at + 1), offered[at]);
    if (std::ranges::find(known, name) == known.end()) continue;
    *chosen = offered + at + 1;
    *chosen_size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::optional<std::string> TlsContext::refusal_of(const std::vector<std::string>& chain) const {
  std::vector<X509Handle> certificates;
  certificates.reserve(chain.size());
  for (const std::string& der : chain) certificates.push_back(x509_of(der));
  const bool all_there = std::ranges::all_of(certificates, [](const auto& each) { return each != nullptr; });
  if (certificates.empty() || !all_there) return "no certificate";
  const std::unique_ptr<OPENSSL_STACK, OpenSslDelete<&OpenSsl::OPENSSL_sk_free>> between(
      openssl().OPENSSL_sk_new_null());
  for (const X509Handle& each : certificates) openssl().OPENSSL_sk_push(between.get(), each.get());
  const StoreContextHandle check(openssl().X509_STORE_CTX_new());
  X509_STORE* const store = openssl().SSL_CTX_get_cert_store(get());
  auto* const untrusted = reinterpret_cast<STACK_OF(X509)*>(between.get());
  if (!check || openssl().X509_STORE_CTX_init(check.get(), store, certificates.front().get(), untrusted) != 1)
    return "no memory";
  openssl().X509_STORE_CTX_set_default(check.get(), "ssl_client");
  openssl().X509_STORE_CTX_set_depth(check.get(), most_between);
  openssl().X509_STORE_CTX_set_verify_cb(check.get(), &TlsContext::judge);
  const bool good = openssl().X509_verify_cert(check.get()) == 1;
  openssl().ERR_clear_error();
  if (good) return std::nullopt;
  return openssl().X509_verify_cert_error_string(openssl().X509_STORE_CTX_get_error(check.get()));
}

}  // namespace duet::transport
