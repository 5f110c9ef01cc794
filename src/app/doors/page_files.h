#pragma once

#include <span>
#include <string_view>

namespace duet::app {

/// A file of web/ as it was when the program was built.
struct EmbeddedFile {
  std::string_view name;  ///< from web/ on, with slashes
  std::string_view text;
};

/// All of them, in the order of their names. The build makes the source of this (cmake/embed_page.cmake).
std::span<const EmbeddedFile> embedded_page();

}  // namespace duet::app
