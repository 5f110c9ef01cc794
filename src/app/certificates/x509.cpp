#include "app/certificates/x509.h"

#include <utility>

namespace duet::app {
namespace {

using transport::openssl;

// Without it OpenSSL asks at the terminal.
int no_password(char* /*to*/, int /*size*/, int /*writing*/, void* /*ours*/) { return -1; }

}  // namespace

void check_openssl(int result, const char* what) {
  if (result <= 0) throw std::runtime_error(std::string(what) + ": " + transport::openssl_error());
}

BioOwner reading_bio(std::string_view text) {
  return BioOwner(made_by_openssl(openssl().BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), "memory"));
}

BioOwner writing_bio() { return BioOwner(made_by_openssl(openssl().BIO_new(openssl().BIO_s_mem()), "memory")); }

std::string text_of(BIO& bio) {
  char* text = nullptr;
  const long size = openssl().BIO_ctrl(&bio, BIO_CTRL_INFO, 0, static_cast<void*>(&text));
  return {text, static_cast<std::size_t>(size > 0 ? size : 0)};
}

PemCertificates certificates_in(std::string_view text) {
  PemCertificates out;
  const BioOwner bio = reading_bio(text);
  openssl().ERR_clear_error();
  while (X509* const next = openssl().PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)) {
    out.certificates.emplace_back(next);
  }
  out.damaged = ERR_GET_REASON(openssl().ERR_peek_last_error()) != PEM_R_NO_START_LINE;
  openssl().ERR_clear_error();
  return out;
}

KeyOwner key_in(std::string_view text) {
  const BioOwner bio = reading_bio(text);
  KeyOwner key(openssl().PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  openssl().ERR_clear_error();
  return key;
}

bool is_encrypted_key(std::string_view text) {
  return text.find("BEGIN ENCRYPTED PRIVATE KEY") != text.npos || text.find("Proc-Type: 4,ENCRYPTED") != text.npos;
}

std::string pem_of(X509& certificate) {
  const BioOwner bio = writing_bio();
  check_openssl(openssl().PEM_write_bio_X509(bio.get(), &certificate), "writing a certificate");
  return text_of(*bio);
}

std::string pem_of(EVP_PKEY& key) {
  const BioOwner bio = writing_bio();
  check_openssl(openssl().PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr),
                "writing a key");
  return text_of(*bio);
}

std::string pem_of(const std::vector<X509Owner>& certificates) {
  std::string out;
  for (const X509Owner& certificate : certificates) out += pem_of(*certificate);
  return out;
}

}  // namespace duet::app
