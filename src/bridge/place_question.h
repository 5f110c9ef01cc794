#pragma once

#include "bridge/bridge.h"
#include "bridge/inquiry.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// Asks about a place in a file, or about the file, and answers in people's places, with `at`, the place that was asked
/// about, if it was one, and what add_standing() adds.
///
/// A symbol that stands for the place is looked for in the line, or among what the server says that the file declares.
/// `fresh` is true if the file still has the text that the server was asked about: if it has changed meanwhile, the
/// server is asked again, a few times. For the step of an inquiry.
void ask_about_place(transport::Loop& loop, Inquiry& inquiry, Question question, const FilePlace& where,
                     base::Duration patience);

/// Answers with the symbols of a file that a query finds. `where.symbol` is the query.
void ask_for_symbols(transport::Loop& loop, Inquiry& inquiry, const FilePlace& where, base::Duration patience);

}  // namespace duet::bridge
