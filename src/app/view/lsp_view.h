#pragma once

#include <string>
#include <string_view>

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
std::string symbols_view(const boost::json::object& result, std::string_view file, const TextStyle& style);
/// The answer of lsp.diagnostics is about the present text, as far as the server lets one know.
bool are_known(const boost::json::object& result);
/// With a line that says so if they are not known yet.
std::string diagnostics_view(const boost::json::object& result, const TextStyle& style);
std::string servers_view(const boost::json::object& result, const TextStyle& style);

/// A failure of a language server in one line: its cause, what happened, and what the server said last.
std::string failure_line(std::string_view message, const boost::json::object& data);

}  // namespace duet::app
