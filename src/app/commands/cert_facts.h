#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/certificates/authority.h"
#include "app/cli/command_line.h"
#include "app/view/table.h"

namespace duet::app {

/// What the commands of `cert` tell of a certificate, whoever made it: every text is harmless.
boost::json::object certificate_json(const Certificate& certificate, std::string_view state);

/// `laptop, mail.example.net`, or `-` if there are none.
std::string joined_names(const std::vector<std::string>& names);

/// `2026-11-16`, where the user is.
std::string day_text(base::UtcTime time);

/// All of the user's folder, the list of revoked certificates from where the settings say. Throws Failure.
Holdings present_holdings();
/// What of it was left out, on stderr.
void tell_notes(const CommandLine& line, const Holdings& holdings);

/// How a state is painted.
Table::Paint paint_of_state(std::string_view state);

}  // namespace duet::app
