#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include <boost/json/value.hpp>

#include "bridge/source_file.h"
#include "bridge/text.h"

namespace duet::app::mcp {

/// Texts of files and what they declare, as long as the files stay as they are. A few; the oldest goes first.
class SourceCache {
 public:
  static constexpr std::size_t most_files = 16;
  static constexpr std::size_t most_bytes = 4U << 20U;  ///< of one file; larger ones are not kept

  struct Source {
    std::string path;
    bridge::FileStamp stamp;
    bridge::Text text;
    boost::json::value symbols = nullptr;  ///< as `lsp.symbols` has them, of this very text; null: not known
  };

  /// Null: it cannot be read. What it declares may not be known yet.
  std::shared_ptr<Source> find(const std::string& path);
  /// The file still has the text that was read; also if there is no `source`.
  bool is_unchanged(const std::shared_ptr<Source>& source);

 private:
  std::list<std::shared_ptr<Source>> sources_;  // the last used first
};

/// Lines of a text, from 1, joined by line ends; as far as they exist.
std::string lines_of(const bridge::Text& text, std::size_t first, std::size_t last);

}  // namespace duet::app::mcp
