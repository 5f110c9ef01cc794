#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace duet::base {

/// Bytes as text, as RFC 4648 section 4 has it, with padding.
std::string to_base64(std::string_view bytes);
/// The bytes again; none if it is not what to_base64() makes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace duet::base
