#include "app/view/file_place.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>

#include "bridge/file_uri.h"
#include "bridge/shapes.h"

namespace duet::app {
namespace {

// Takes `:N` from the end of the text, if it is there.
std::optional<std::int64_t> take_number(std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return std::nullopt;
  if (text.find_first_not_of("0123456789", colon + 1) != std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, number).ec != std::errc{}) return std::nullopt;
  text.resize(colon);
  return number;
}

template <typename IsThere>
FilePlace place_by_numbers(const std::string& text, IsThere is_there) {
  FilePlace place{.file = text};
  if (place.file.size() > 1 && place.file.ends_with(':')) place.file.pop_back();
  place.line = take_number(place.file);
  if (!place.line || is_there(place.file)) return place;
  if (const std::optional<std::int64_t> before = take_number(place.file)) {
    place.column = place.line;
    place.line = before;
  }
  return place;
}

}  // namespace

FilePlace parse_file_place(const std::string& text, bool is_here) {
  const auto is_there = [is_here](const std::string& file) { return is_here && access(file.c_str(), F_OK) == 0; };
  if (is_there(text)) return {.file = text};
  FilePlace place = place_by_numbers(text, is_there);
  const std::size_t hash = text.rfind('#');
  if (is_there(place.file) || hash == text.npos || hash + 1 == text.size()) return place;
  place = hash == 0 ? FilePlace() : parse_file_place(text.substr(0, hash), is_here);
  place.symbol = text.substr(hash + 1);
  return place;
}

tl::expected<std::string, std::string> file_for_daemon(const std::string& file) {
  if (file.empty()) return tl::unexpected(std::string("'' names no file"));
  std::error_code gone;
  const std::filesystem::path path = std::filesystem::absolute(file, gone);
  if (gone) return tl::unexpected(file + ": the working directory is gone; name the file by its whole path");
  return bridge::path_text(path.lexically_normal());
}

std::string file_for_people(std::string_view file) {
  const std::string path = bridge::path_of(file).value_or(std::string(file));
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);
  const bool below = !error && path.size() > here.size() + 1 && path.starts_with(here) && path[here.size()] == '/';
  return below ? path.substr(here.size() + 1) : path;
}

}  // namespace duet::app
