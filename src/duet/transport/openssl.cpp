#include "duet/transport/openssl.h"

#include <dlfcn.h>

#include <stdexcept>

namespace duet::transport {
namespace {

constexpr const char* library_name = "libssl.so.3";  // it brings libcrypto.so.3 with it

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("OpenSSL has no ") + name);
}

OpenSsl open_library() {
  // RTLD_LOCAL: nobody else's symbols are found in it. It is never closed, since OpenSSL cleans up at exit.
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("TLS needs OpenSSL 3 (Debian: libssl3), which cannot be opened: ") +
                             ::dlerror());
  }
  OpenSsl functions;
#define DUET_OPENSSL(name) find(library, #name, functions.name);
#include "duet/transport/openssl_functions.h"
#undef DUET_OPENSSL
  return functions;
}

}  // namespace

const OpenSsl& openssl() {
  static const OpenSsl functions = open_library();
  return functions;
}

std::string openssl_error() {
  const auto code = openssl().ERR_peek_last_error();
  const auto* reason = code == 0 ? nullptr : openssl().ERR_reason_error_string(code);
  openssl().ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

}  // namespace duet::transport
