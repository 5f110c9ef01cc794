#pragma once

#include <string>

namespace duet::app {

/// A password for something new. On a terminal it is asked for on stderr, twice, and not shown; a signal restores the
/// terminal. Otherwise it is the first line of stdin, and the rest is not read. Throws Failure if there is none, or the
/// two differ.
std::string new_password(const std::string& what);

}  // namespace duet::app
