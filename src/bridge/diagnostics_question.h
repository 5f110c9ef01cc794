#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bridge/inquiry.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// Answers with the diagnostics of a file: `{server, file, fresh, reason?, diagnostics}`.
///
/// `fresh` is true only if they are for the text that the file has at the time of the answer. That is sure where the
/// server says which text it is about, and of the first text that it gets of a file. Else it is taken to be so only of
/// a server that is known to settle (definition.h), when it has published something since it was sent the text and has
/// been silent since then: for 2 s, or for twice as long as it has ever been silent before it published something that
/// was waited for, if that is longer. If they are not there yet, `wait` is how long to wait for them; after that what
/// is known is answered, and `reason` says why that is not sure: `pending`, `changed` (the file, meanwhile, or as
/// `asker` sees it: Documents::is_current()) or `unversioned` (the server does not say which text it is about). For the
/// step of an inquiry.
void ask_for_diagnostics(transport::Loop& loop, Inquiry& inquiry, const std::string& path, base::Duration wait,
                         std::optional<std::uint64_t> asker);

}  // namespace duet::bridge
