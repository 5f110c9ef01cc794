#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::bridge {

/// A symbol by its names: `app::Server::start` and, at its end, `start`.
struct SymbolName {
  std::string path;
  std::string own;
};

/// How well a symbol is what somebody has named, from 0, the whole path, to 3; none: it is not.
///
/// 0: its whole path; 1: its own name; 2: the last components of its path; 3: a run of components that touches its own
/// name. Components are runs of letters, digits, `_` and `$`, so that languages need no rules of their own. Pure.
std::optional<int> match_step(const SymbolName& symbol, std::string_view wanted);

/// Those of the best step that has any, in their order: indices into `symbols`.
std::vector<std::size_t> best_matches(const std::vector<SymbolName>& symbols, std::string_view wanted);

/// Whether a search would show it: it matches, or its own name has the text in it, whatever the case.
bool is_found(const SymbolName& symbol, std::string_view wanted);

/// Names that may have been meant, the nearest first, each once.
std::vector<std::string> near_names(const std::vector<SymbolName>& symbols, std::string_view wanted,
                                    std::size_t most = 5);

/// `app`, `Server`, `start`: what a path consists of.
std::vector<std::string_view> components(std::string_view path);

/// Where a whole word begins in a line, in bytes; none: it is not there. A word that has other characters than those of
/// components (`operator==`) is whole where no component is cut.
std::optional<std::size_t> find_word(std::string_view line, std::string_view word);

}  // namespace duet::bridge
