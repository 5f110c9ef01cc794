#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A file that the HTTP door serves to everybody: there is no data in it. `web/index.html` is at `/`, the others are
/// below `/assets/`.
struct PageFile {
  std::string path;
  std::string_view type;
  std::string_view text;
  std::string etag;  ///< in quotes; another one when the text is another
};

/// Null: there is nothing at the path.
const PageFile* find_page_file(std::string_view path);

/// Another one when any file of the page is another, or has another name.
const std::string& page_version();

}  // namespace duet::app
