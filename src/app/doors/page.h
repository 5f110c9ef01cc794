#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A file that the HTTP door serves to everybody: there is no data in it.
struct PageFile {
  std::string_view path;
  std::string_view type;
  std::string_view text;
  std::string etag;  ///< in quotes; another one when the text is another
};

/// Null: there is nothing at the path.
const PageFile* find_page_file(std::string_view path);

}  // namespace duet::app
