#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::app {

/// Sizes as people write them, in flags and settings alike: `4096`, `512M`, `2G`, `2GiB`, in powers of 1024.
inline constexpr std::string_view bytes_forms = "a number of bytes, or one such as '512M' or '2G'";

/// Nullopt: not a size, or one above what 64 bits hold.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// `17 B`, `3.4 KiB`, `210 MiB`: for people; not for parse_bytes.
std::string readable_bytes(std::uint64_t bytes);

}  // namespace duet::app
