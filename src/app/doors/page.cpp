#include "app/doors/page.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "app/doors/page_files.h"
#include "app/words/sha256.h"

namespace duet::app {
namespace {

constexpr std::size_t enough_digits = 32;

constexpr std::pair<std::string_view, std::string_view> types_by_ending[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

std::string_view type_of(std::string_view name) {
  for (const auto& [ending, type] : types_by_ending) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

PageFile served(const EmbeddedFile& file) {
  return {.path = file.name == "index.html" ? "/" : "/assets/" + std::string(file.name),
          .type = type_of(file.name),
          .text = file.text,
          .etag = '"' + sha256(file.text).substr(0, enough_digits) + '"'};
}

// Made when somebody asks for the first of them: most daemons never serve any.
const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> files = [] {
    std::vector<PageFile> made;
    std::ranges::transform(embedded_page(), std::back_inserter(made), served);
    return made;
  }();
  return files;
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  if (path != "/" && !path.starts_with("/assets/")) return nullptr;
  const auto found = std::ranges::find(page_files(), path, &PageFile::path);
  return found == page_files().end() ? nullptr : &*found;
}

const std::string& page_version() {
  static const std::string version = [] {
    std::string all;
    for (const PageFile& file : page_files()) all += file.path + ' ' + file.etag + '\n';
    return sha256(all).substr(0, enough_digits);
  }();
  return version;
}

}  // namespace duet::app
