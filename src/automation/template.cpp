#include "automation/template.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>

namespace duet::automation {
namespace {

struct Placeholder {
  std::size_t begin;
  std::size_t end;
  std::string_view field;
};

bool is_field_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
  });
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<Placeholder> next_placeholder(std::string_view text, std::size_t from) {
  for (std::size_t open = text.find("{{", from); open != text.npos; open = text.find("{{", open + 1)) {
    const std::size_t close = text.find("}}", open);
    if (close == text.npos) return std::nullopt;
    const std::string_view field = trimmed(text.substr(open + 2, close - open - 2));
    if (is_field_name(field)) return Placeholder{open, close + 2, field};
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::string, MissingField> fill_template(std::string_view text, const Event& event) {
  std::string filled;
  std::size_t at = 0;
  while (const std::optional<Placeholder> placeholder = next_placeholder(text, at)) {
    const std::optional<boost::json::value> value = field_of(event, placeholder->field);
    if (!value) return MissingField{std::string(placeholder->field)};
    filled.append(text.substr(at, placeholder->begin - at)).append(plain_text(*value));
    at = placeholder->end;
  }
  return filled.append(text.substr(at));
}

std::vector<std::string> fields_in(std::string_view text) {
  std::vector<std::string> fields;
  for (auto found = next_placeholder(text, 0); found; found = next_placeholder(text, found->end)) {
    fields.emplace_back(found->field);
  }
  return fields;
}

}  // namespace duet::automation
