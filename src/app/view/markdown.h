#pragma once

#include <string>
#include <string_view>

#include "app/view/text_style.h"

namespace duet::app {

/// Markdown, as language servers write it, for a terminal: words without their marks, code as it is and indented, lists
/// and quotes as far as plain text has them, an address of the web behind the words that lead to it.
///
/// Underscores stay where they are, since in these texts `__init__` is a name more often than it is meant loudly; so do
/// tags that HTML does not have, such as that of `vector<int>`. Whatever the text says, it is harmless on a terminal.
/// What is beyond 256 KiB is left out.
std::string plain_markdown(std::string_view markdown, const TextStyle& style);

}  // namespace duet::app
