#include "app/settings/settings_tree.h"

#include <algorithm>
#include <functional>
#include <string>

#include "app/settings/toml_text.h"

// The library asserts that some things do not happen which a text can make happen, though the code behind the
// assertions copes; with NDEBUG it even promises them to the compiler.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
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
  std::ranges::stable_sort(out, std::less<>(), &NamedSetting::place);
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
  const auto cautious = cautious_toml(text);
  if (const auto* fault = std::get_if<SettingFault>(&cautious)) return *fault;
  try {
    return converted(toml::parse(std::get<std::string>(cautious)));
  } catch (const toml::parse_error& error) {
    std::string description(error.description());
    std::ranges::replace_if(
        description, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    return SettingFault{place_of(error.source()), "this is not TOML: " + description};
  }
}

}  // namespace duet::app
