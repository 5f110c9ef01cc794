#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/page.h"

namespace duet::app::mcp {

/// How far what language servers have answered can be relied on. Several answers become one: the worst counts.
struct Standing {
  std::string server = {};
  bool fresh = true;
  bool complete = true;
  std::string reason = {};
  bool is_indexing = false;  ///< that is why it is not complete
  std::string note = {};     ///< what else may be wrong with it

  /// The members `server, fresh, reason?, complete, note?, more?` of an answer of the daemon.
  void add(const boost::json::object& answer);
  /// `NOT FRESH (changed)` and the like, each on a line; empty if all is well.
  std::string warning() const;
  /// `clangd, fresh, complete, root /srv/hello`
  std::string summary(std::string_view root) const;
  void add_to(boost::json::object& structured, std::string_view root) const;
};

/// A file as it is shown: from the root if it is below that. Takes what the daemon gives.
std::string shown_file(std::string_view file, std::string_view root);

/// What `lsp.symbols` answered about a file, as deep as `depth`.
Page outline_page(const boost::json::object& answer, std::string_view file, std::size_t depth, std::string_view root);
/// What `lsp.find` answered.
Page search_page(const boost::json::object& answer, std::string_view root);

/// Source of a definition, and where it stands.
struct SourcePart {
  std::string file;
  std::size_t line = 1;    ///< where the definition begins
  std::size_t column = 1;  ///< of its name, if that is in the same line
  std::size_t end_line = 1;
  std::size_t first_line = 1;  ///< of `text`, which may begin before it
  std::size_t weight = 0;      ///< how much of it there is; 0: only its name is known
  std::string text = {};
};

/// Where a definition begins and ends, of the place of its name and what `lsp.symbols` says of its file, if it does.
SourcePart extent_of(const boost::json::object& place, const boost::json::value* symbols);

Page definition_page(const boost::json::object& at, std::string_view hover, const std::vector<SourcePart>& definitions,
                     const Standing& standing, std::string_view root);
Page references_page(const boost::json::object& answer, std::string_view root);

/// What `lsp.diagnostics` answered about several files, of this severity and worse.
Page diagnostics_page(const std::vector<boost::json::object>& answers, std::string_view severity,
                      std::string_view root);

}  // namespace duet::app::mcp
