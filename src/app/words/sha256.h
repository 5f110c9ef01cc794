#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// In 64 hexadecimal digits, as sha256sum(1) writes it.
std::string sha256(std::string_view bytes);

}  // namespace duet::app
