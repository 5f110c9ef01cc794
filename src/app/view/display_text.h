#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace duet::app {

/// Text for terminals. Whatever the locale, text is UTF-8; columns are counted as terminals do: two for the wide
/// characters of East Asia and emoji, none for marks that combine with the one before.

/// On one line and harmless: line ends and tabs become blanks, other control characters, marks that change the
/// direction of text and bytes that are not UTF-8 the replacement character.
std::string one_line(std::string_view text);
/// The same for each line of a text that may have several.
std::string harmless_lines(std::string_view text);

/// How many columns a text of one_line() takes.
std::size_t display_width(std::string_view text);

/// A text of one_line() in at most `width` columns; what is cut off is shown by `…`.
std::string cut_to_width(std::string_view text, std::size_t width);

}  // namespace duet::app
