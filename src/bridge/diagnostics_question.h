#pragma once

#include <string>

#include "bridge/inquiry.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// Answers with the diagnostics of a file: `{server, file, fresh, reason?, diagnostics}`.
///
/// `fresh` is true only if they are surely for the text that the file has at the time of the answer. If they are not
/// there yet, `wait` is how long to wait for them; after that what is known is answered, and `reason` says why that is
/// not sure: `pending`, `changed` (the file, meanwhile) or `unversioned` (the server does not say which text it is
/// about). For the step of an inquiry.
void ask_for_diagnostics(transport::Loop& loop, Inquiry& inquiry, const std::string& path, base::Duration wait);

}  // namespace duet::bridge
