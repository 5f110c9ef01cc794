#include "app/view/record_format.h"

#include <algorithm>
#include <utility>

#include "app/view/display_text.h"
#include "app/words/near_miss.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

bool is_field_path(std::string_view path, std::span<const std::string_view> fields) {
  return std::ranges::any_of(fields, [path](std::string_view field) {
    return path == field || (field.ends_with('.') && path.starts_with(field));
  });
}

std::string unknown_field(std::string_view name, std::span<const std::string_view> fields) {
  std::string known;
  for (const std::string_view field : fields) {
    if (!field.ends_with('.')) known.append(known.empty() ? "" : ", ").append(field);
  }
  const std::string_view meant = near_miss(name, {fields.begin(), fields.end()});
  return "--format: there is no field '" + std::string(name) + "'" +
         (meant.empty() ? "" : ", perhaps '" + std::string(meant) + "' is meant") + "; there are " + known;
}

// What stands for an escape at the front of `text`; nothing if there is none.
std::string_view unescaped(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> escapes[] = {
      {"{{", "{"}, {"}}", "}"}, {"\\n", "\n"}, {"\\t", "\t"}, {"\\\\", "\\"}};
  for (const auto& [written, meant] : escapes) {
    if (text.starts_with(written)) return meant;
  }
  return {};
}

// A name may have dots itself, such as that of a label.
std::string text_at(const object& record, std::string_view path) {
  const value* const found = record.if_contains(path);
  if (found != nullptr && found->is_string()) return std::string(found->get_string());
  if (found != nullptr) return found->is_null() ? std::string() : rpc::to_text(*found);
  const std::size_t dot = path.find('.');
  const value* const outer = dot == std::string_view::npos ? nullptr : record.if_contains(path.substr(0, dot));
  return outer != nullptr && outer->is_object() ? text_at(outer->get_object(), path.substr(dot + 1)) : std::string();
}

}  // namespace

tl::expected<RecordFormat, std::string> RecordFormat::parse(std::string_view text,
                                                            std::span<const std::string_view> fields) {
  RecordFormat format;
  std::string plain;
  while (!text.empty()) {
    if (const std::string_view meant = unescaped(text); !meant.empty()) {
      plain += meant;
      text.remove_prefix(2);
      continue;
    }
    if (text.front() != '{') {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos)
      return tl::unexpected(std::string("--format: a '{' is not closed; '{{' is a brace"));
    const std::string_view path = text.substr(1, end - 1);
    if (!is_field_path(path, fields)) return tl::unexpected(unknown_field(path, fields));
    format.parts_.push_back({std::exchange(plain, {}), {}});
    format.parts_.push_back({{}, std::string(path)});
    text.remove_prefix(end + 1);
  }
  format.parts_.push_back({std::move(plain), {}});
  return format;
}

std::string RecordFormat::line(const object& record, bool harmless) const {
  std::string out;
  for (const Part& part : parts_) {
    const std::string text = part.path.empty() ? part.text : text_at(record, part.path);
    out += harmless && !part.path.empty() ? one_line(text) : text;
  }
  return out + '\n';
}

}  // namespace duet::app
