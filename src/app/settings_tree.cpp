#include "app/settings_tree.h"

#include <algorithm>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace duet::app {
namespace {

SettingPlace place_of(const toml::source_region& region) {
  // A value that the file only implies, such as [a] by [a.b], has no place of its own.
  if (!region.begin) return {};
  return {static_cast<std::uint32_t>(region.begin.line), static_cast<std::uint32_t>(region.begin.column)};
}

Setting converted(const toml::node& node);

Setting::List converted_list(const toml::array& array) {
  Setting::List out;
  out.reserve(array.size());
  for (const toml::node& node : array) out.push_back(converted(node));
  return out;
}

Setting::Table converted_table(const toml::table& table) {
  Setting::Table out;
  out.reserve(table.size());
  for (const auto& [key, node] : table)
    out.push_back({std::string(key.str()), place_of(key.source()), converted(node)});
  std::ranges::stable_sort(out, {}, &NamedSetting::place);
  return out;
}

Setting converted(const toml::node& node) {
  Setting out{Setting::Other(), place_of(node.source())};
  if (const auto* text = node.as_string()) out.value = text->get();
  if (const auto* number = node.as_integer()) out.value = number->get();
  if (const auto* number = node.as_floating_point()) out.value = number->get();
  if (const auto* flag = node.as_boolean()) out.value = flag->get();
  if (const auto* array = node.as_array()) out.value = converted_list(*array);
  if (const auto* table = node.as_table()) out.value = converted_table(*table);
  return out;
}

}  // namespace

std::variant<Setting, SettingFault> parse_toml(std::string_view text) {
  const toml::parse_result result = toml::parse(text);
  if (result) return converted(result.table());
  const std::string_view description = result.error().description();
  return SettingFault{place_of(result.error().source()), "this is not TOML: " + std::string(description)};
}

}  // namespace duet::app
