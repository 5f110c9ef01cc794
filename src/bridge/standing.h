#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "bridge/language_server.h"

namespace duet::bridge {

/// Adds what tells how far an answer can be relied on: `server`; `complete`, false with `indexing`, what the server
/// says that it works on, while it does; and `note`, if clangd does not know how `path` is compiled.
void add_standing(boost::json::object& out, const LanguageServer& server, const std::string& path);

/// Adds `fresh`, and if it is not, the `reason`.
void add_freshness(boost::json::object& out, bool fresh, std::string_view reason = "changed");

}  // namespace duet::bridge
