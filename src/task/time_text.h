#pragma once

#include <optional>
#include <string_view>

#include "duet/base/clock.h"

namespace duet::task {

/// A time as ISO 8601 has it: `2026-11-16T15:30:00Z`, with a fraction or without seconds, with a blank for the `T`, and
/// with a zone: `Z`, `+01:00`, `+0100` or `+01`. None for anything else, and for years before 1970 or after 2199.
std::optional<base::UtcTime> parse_time(std::string_view text);

}  // namespace duet::task
