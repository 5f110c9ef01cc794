#pragma once

#include <string>
#include <string_view>

#include "duet/base/clock.h"

namespace duet::app {

/// `2026-11-16 14:02:11` where the user is.
std::string date_and_time(base::UtcTime time);

/// `14:02:11` where the user is; with the date before it if that is not today's.
std::string clock_time(base::UtcTime time, base::UtcTime now);

/// A sentence of the daemon with its times, which are ISO 8601 in UTC, as clock_time() writes them.
std::string with_local_times(std::string_view text, base::UtcTime now);

}  // namespace duet::app
