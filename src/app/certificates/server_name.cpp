#include "app/certificates/server_name.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace duet::app {
namespace {

constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;
constexpr std::size_t most_names = 100;  // a certificate has to be sent with every handshake

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_label(std::string_view label) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  return !label.empty() && label.size() <= longest_label && std::ranges::all_of(label, fits) &&
         !label.starts_with('-') && !label.ends_with('-');
}

std::vector<std::string_view> labels_of(std::string_view name) {
  std::vector<std::string_view> out;
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    out.push_back(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  out.push_back(name);
  return out;
}

// What is wrong with a name that is no address; empty: nothing.
std::string fault_of_name(std::string_view name) {
  if (name.size() > longest_name) return "it is longer than 253 characters";
  if (std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) > 0x7e; })) {
    return "a name that is not ASCII is written as xn--…";
  }
  std::vector<std::string_view> labels = labels_of(name);
  const bool wild = labels.front() == "*";
  if (wild) labels.erase(labels.begin());
  if (wild && labels.size() < 2) return "a wildcard needs two more labels, as in *.example.net";
  if (!std::ranges::all_of(labels, is_label)) {
    return "it is a host name, an IP address without brackets and port, or a wildcard such as *.example.net";
  }
  return std::ranges::all_of(labels.back(), is_digit) ? "it is no address, and no host name ends with a number" : "";
}

std::string refusal_of(const std::string& word, const std::string& fault) {
  return "'" + word + "' cannot be in a server's certificate: " + fault;
}

// `::1` is also `0:0::1`.
std::optional<std::string> plain_address(std::string_view word) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const std::string text(word);
  for (const int family : {AF_INET, AF_INET6}) {
    std::array<char, INET6_ADDRSTRLEN> out{};
    if (inet_pton(family, text.c_str(), bytes.data()) != 1) continue;
    return std::string(inet_ntop(family, bytes.data(), out.data(), out.size()));
  }
  return std::nullopt;
}

std::string lower(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

bool is_address(std::string_view word) { return plain_address(word).has_value(); }

bool is_server_name(std::string_view word) { return is_address(word) || fault_of_name(word).empty(); }

tl::expected<std::vector<std::string>, std::string> server_names(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    const std::optional<std::string> address = plain_address(word);
    const std::string fault = address ? "" : fault_of_name(word);
    if (!fault.empty()) return tl::unexpected(refusal_of(word, fault));
    std::string name = address ? *address : lower(word);
    if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
  }
  if (out.size() > most_names) return tl::unexpected(std::string("a certificate is for 100 names at most"));
  return out;
}

}  // namespace duet::app
