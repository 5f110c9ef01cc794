#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace duet::app {

/// So many random bytes of the kernel (getrandom(2)), as text of A-Z a-z 0-9 - _ (RFC 4648, section 5) without padding.
/// Throws std::system_error.
std::string random_text(std::size_t bytes);

/// Whether two texts of the same length are the same. How long that takes does not tell where they differ.
bool is_same_secret(std::string_view one, std::string_view other);

}  // namespace duet::app
