#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A word as a shell has to be given it: in quotes, unless it is plain.
std::string shell_word(std::string_view word);

}  // namespace duet::app
