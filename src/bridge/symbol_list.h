#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "bridge/shapes.h"
#include "bridge/symbol_match.h"
#include "duet/rpc/error.h"

namespace duet::bridge {

/// A symbol that a server has told of.
struct FoundSymbol {
  SymbolName name = {};
  std::string file = {};  ///< its path; empty: it is in no file here
  std::size_t line = 0;   ///< as people count; 0: not known
  std::size_t column = 0;
  boost::json::object shown = {};  ///< `{path, name, kind, detail?, file, line, …, text, extent?}`
};

/// What a server answers to `textDocument/documentSymbol`, nested or flat, or to `workspace/symbol`, in its order.
/// `path`: the file that was asked about, if it was one. Nonsense is nothing.
std::vector<FoundSymbol> list_symbols(const boost::json::value& result, const std::string& path, PlaceFinder& places);

/// The one that is named so. Throws rpc::Error: none is (`data.reason` `not-found`, with up to 5 `near` paths), or
/// several are (`ambiguous`, with up to 20 `candidates`). What is declared and defined in the same words is one.
const FoundSymbol& pick_symbol(const std::vector<FoundSymbol>& symbols, std::string_view wanted);

/// Those that a search shows, the best first; `{symbols, more?}`.
boost::json::object shape_search(const std::vector<FoundSymbol>& symbols, std::string_view query, std::size_t most);

/// Some servers tell where all of a symbol is, and not where its name is: pylsp, from the `def` on. Then that becomes
/// the `extent`, and the place that of the name, if it stands in the first line.
void point_at_name(boost::json::object& shown, const SymbolName& name);

/// The text at its place still has its name in it: an index may be older than the file.
bool is_where_it_was(const FoundSymbol& symbol);
/// What of its own name stands in a text as a word: of `(*Server).Start` the last part.
std::string_view word_of(const SymbolName& name);

/// No symbol of this name; `names` may have been meant.
rpc::Error no_such_symbol(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace duet::bridge
