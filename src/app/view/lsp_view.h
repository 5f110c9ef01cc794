#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/view/text_style.h"
#include "bridge/failure.h"
#include "duet/peer/calls.h"

namespace duet::app {

/// What the lsp commands print for people, made from what the daemon answers (docs/lsp.md has the shapes). All of it is
/// harmless on a terminal, whatever a server or a file says.

std::string hover_view(const boost::json::object& result, const TextStyle& style);
/// FILE:LINE:COL, then the line with a mark under what is meant.
std::string places_view(const boost::json::object& result, const TextStyle& style);
std::string completion_view(const boost::json::object& result, const TextStyle& style);
/// FILE:LINE:COL, what it is, and its path, which is accepted as a name.
std::string found_view(const boost::json::object& result, const TextStyle& style);
std::string symbols_view(const boost::json::object& result, std::string_view file, const TextStyle& style);
/// The answer of lsp.diagnostics is about the present text, as far as the server lets one know.
bool are_known(const boost::json::object& result);
/// With a line that says so if they are not known yet.
std::string diagnostics_view(const boost::json::object& result, const TextStyle& style);
std::string servers_view(const boost::json::object& result, const TextStyle& style);

/// What an answer may lack, a line each, but for what diagnostics_view() says itself.
std::vector<std::string> lacks_of(const boost::json::object& result);
/// Why a symbol is not known, or not which one is meant: the names that there are.
std::string symbol_failure_line(const boost::json::object& data);

/// A failure of a language server in one line: its cause, what happened, and what the server said last.
std::string failure_line(std::string_view message, const boost::json::object& data);

}  // namespace duet::app
