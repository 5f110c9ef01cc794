#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "duet/framing/http_head.h"

namespace duet::framing {

// What a door looks for in a head that is well-formed, each check for itself; the door calls them in the
// order of HttpFault and answers the first that has something to say.

/// The names under which a door may be asked for.
struct HttpNames {
  bool loopback = true;                      ///< `localhost`, 127.0.0.0/8 in dotted form, `[::1]`
  std::span<const std::string> others = {};  ///< without a port; IPv6 addresses in brackets; `*.x` is any name below x
};

/// The name in a Host, without its port; nullopt if what follows the name is no port.
std::optional<std::string_view> name_of_host(std::string_view host);

std::optional<HttpFault> host_fault(const HttpHead& head, const HttpNames& names);
/// `scheme` is `http` or `https`. A request without Origin and Sec-Fetch-Site is no browser's and passes.
std::optional<HttpFault> origin_fault(const HttpHead& head, std::string_view scheme);
/// Of a body: its type must be JSON in UTF-8, and it must not be encoded. Without a body there is nothing to say.
std::optional<HttpFault> content_fault(const HttpHead& head);
std::optional<HttpFault> length_fault(const HttpHead& head, std::uint64_t most);
/// After all others: who expects 100-continue gets it then.
std::optional<HttpFault> expectation_fault(const HttpHead& head);

/// Whether the connection can go on after a refusal of the head that does not close it: its body,
/// which has to be skipped, is small, and its sender does not wait to be asked for it.
bool survives_refusal(const HttpHead& head);
inline constexpr std::uint64_t http_most_skipped = 64U * 1024;

/// Whether a media type, in lower case, is among those of Accept, itself or by `*`. Without the field everything is.
bool accepts(const HttpHead& head, std::string_view type);

/// Whether If-None-Match has the tag, which stands in quotes.
bool has_etag(const HttpHead& head, std::string_view etag);

}  // namespace duet::framing
