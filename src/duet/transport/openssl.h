#pragma once

#include <string>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace duet::transport {

/// OpenSSL 3, opened when the first door or command needs it: a program that is linked to it pays for it at each start.
///
/// A call is `openssl().SSL_new(context)`. Types and constants are those of OpenSSL's headers; a function that is
/// missing here is added to openssl_functions.h. It stays open until the process ends.
struct OpenSsl {
#define DUET_OPENSSL(name) decltype(&::name) name = nullptr;
#include "duet/transport/openssl_functions.h"
#undef DUET_OPENSSL
};

/// Throws std::runtime_error if OpenSSL is not there, or lacks something. For any thread.
const OpenSsl& openssl();

/// What the last call of this thread that failed says of it; its errors are forgotten then.
std::string openssl_error();

/// Destroys what OpenSSL has made: `std::unique_ptr<SSL, OpenSslDelete<&OpenSsl::SSL_free>>`.
template <auto Free>
struct OpenSslDelete {
  template <typename Thing>
  void operator()(Thing* thing) const {
    (openssl().*Free)(thing);
  }
};

}  // namespace duet::transport
