#include "task/postgres/argument.h"

namespace duet::task::postgres {
namespace {

void append_quoted(std::string& array, std::string_view element) {
  array += '"';
  for (const char letter : element) {
    if (letter == '"' || letter == '\\') array += '\\';
    array += letter;
  }
  array += '"';
}

template <typename Elements, typename Append>
std::string array_with(const Elements& elements, Append append) {
  std::string array = "{";
  for (const auto& element : elements) {
    if (array.size() > 1) array += ',';
    append(array, element);
  }
  return array += '}';
}

}  // namespace

std::string bytes_of(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(2 + 2 * bytes.size(), '\\');
  text[1] = 'x';
  char* place = text.data() + 2;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    *place++ = digits[byte >> 4U];
    *place++ = digits[byte & 15U];
  }
  return text;
}

std::string array_of(std::span<const Argument> elements) {
  return array_with(elements, [](std::string& array, const Argument& element) {
    if (element) return append_quoted(array, *element);
    array += "NULL";
  });
}

std::string array_of(const std::vector<Argument>& elements) { return array_of(std::span(elements)); }

std::string array_of(const std::vector<std::string>& elements) { return array_with(elements, append_quoted); }

std::string array_of(const std::vector<std::int64_t>& elements) {
  return array_with(elements, [](std::string& array, std::int64_t element) { array += std::to_string(element); });
}

std::string array_of(const std::vector<bool>& elements) {
  return array_with(elements, [](std::string& array, bool element) { array += element ? 't' : 'f'; });
}

}  // namespace duet::task::postgres
