#pragma once

#include <string>
#include <vector>

#include "process/launch.h"

namespace duet::app {

/// What opens a URL in the user's browser, as the environment says: the first program of BROWSER, a list with colons
/// whose entries may have arguments and `%s` for the URL, else xdg-open. Empty: there is no display, or no such
/// program.
std::vector<std::string> browser_command(const process::Environment& environment, const std::string& url);

/// Starts it on its own, and does not wait. False: there is nothing to start.
bool open_browser(const std::string& url);

}  // namespace duet::app
