#pragma once

#include <array>
#include <string_view>

namespace duet::app {

/// The roles that settings, tokens and certificates give, from the least on. What they may do is in app/doors.
inline constexpr std::array<std::string_view, 3> role_names{"observe", "operate", "own"};

}  // namespace duet::app
