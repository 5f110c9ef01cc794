#pragma once

#include <chrono>
#include <string>

#include "bridge/inquiry.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// How long a question about a document that was just opened waits for the server's first word about it.
inline constexpr std::chrono::seconds time_to_examine{2};

/// Many servers look at a new document only after a while, and answer questions about it with nothing, or with less,
/// until then. That they have is seen by the diagnostics they publish. A server that publishes none is waited for once.
bool is_examined(LanguageServer& server, const Document& document);

/// Runs the step when the server has had time to look at the document, which is open.
void when_examined(transport::Loop& loop, Inquiry& inquiry, const std::string& path, Inquiry::Step step);

}  // namespace duet::bridge
