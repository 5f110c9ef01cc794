#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace duet::app {

/// Whether it is an IPv4 or IPv6 address, without brackets, a zone or a port.
bool is_address(std::string_view word);

/// What a server's certificate is to be for: host names, addresses, and `*.example.net`, which stands for one label. In
/// lower case, each once. Else what is wrong, for people.
tl::expected<std::vector<std::string>, std::string> server_names(const std::vector<std::string>& words);

/// Whether it can be one of them.
bool is_server_name(std::string_view word);

}  // namespace duet::app
