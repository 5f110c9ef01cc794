#include "task/postgres/url_shape.h"

#include <algorithm>

namespace duet::task::postgres {
namespace {

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// `%` is for the zone of an IPv6 address.
bool is_host_letter(char letter) {
  return is_letter_or_digit(letter) || std::string_view(".-_:%,").find(letter) != std::string_view::npos;
}

bool is_folder_letter(char letter) { return is_host_letter(letter) || letter == '/' || letter == '+' || letter == '~'; }

std::string_view without_scheme(std::string_view store) {
  for (const std::string_view scheme : {"postgresql://", "postgres://"}) {
    if (store.starts_with(scheme)) return store.substr(scheme.size());
  }
  return {};
}

// `host`, `host:port` or `[address]:port`, and several of them.
bool is_clear_authority(std::string_view hosts) {
  const bool has_brackets = hosts.find_first_of("[]") != std::string_view::npos;
  return has_brackets || std::all_of(hosts.begin(), hosts.end(), is_host_letter);
}

}  // namespace

bool is_clear_url(std::string_view store) {
  const std::string_view rest = without_scheme(store);
  if (rest.empty()) return store.ends_with("://") && (store.starts_with("postgres"));
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const std::string_view others = rest.substr(authority.size());
  if (others.find('@') != std::string_view::npos) return false;
  if (std::count(authority.begin(), authority.end(), '@') > 1) return false;
  const std::string_view path = others.substr(0, others.find('?'));
  if (path.find_first_of("/:", 1) != std::string_view::npos) return false;
  const std::size_t at = authority.find('@');
  return is_clear_authority(at == std::string_view::npos ? authority : authority.substr(at + 1));
}

bool is_host_list(std::string_view text) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    const bool is_socket = one.starts_with('/') || one.starts_with('@');
    const std::string_view name = is_socket ? one.substr(1) : one;
    if (!std::all_of(name.begin(), name.end(), is_socket ? is_folder_letter : is_host_letter)) return false;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return true;
}

bool is_port_list(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) { return is_digit(letter) || letter == ','; });
}

}  // namespace duet::task::postgres
