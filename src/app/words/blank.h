#pragma once

#include <string_view>

namespace duet::app {

/// Says nothing: is empty, or has blanks, tabs and line ends only.
inline bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == text.npos; }

}  // namespace duet::app
