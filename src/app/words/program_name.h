#pragma once

#include <string_view>

namespace duet::app {

inline constexpr std::string_view program_name = "duet-rpc";

}  // namespace duet::app
