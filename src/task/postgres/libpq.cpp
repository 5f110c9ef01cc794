#include "task/postgres/libpq.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string_view>

namespace duet::task::postgres {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("libpq is too old: it has no ") + name);
}

}  // namespace

Libpq open_libpq(const char* library_name) {
  // RTLD_LOCAL: nobody else's symbols are found in it. It is never closed, since the OpenSSL that it brings cleans up
  // at exit.
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("a postgresql store needs libpq, install libpq5: ") + ::dlerror());
  }
  Libpq functions;
#define DUET_LIBPQ(name, result, parameters) find(library, #name, functions.name);
#include "task/postgres/libpq_functions.h"
#undef DUET_LIBPQ
  functions.SSL_pending = reinterpret_cast<decltype(functions.SSL_pending)>(::dlsym(library, "SSL_pending"));
  return functions;
}

const Libpq& libpq() {
  static const Libpq functions = open_libpq("libpq.so.5");
  return functions;
}

std::string first_line(const char* text) {
  std::string_view line = text == nullptr ? "" : text;
  line = line.substr(0, line.find('\n'));
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
}

}  // namespace duet::task::postgres
