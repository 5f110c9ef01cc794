#include "app/settings/settings_tree.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

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

/// Looks for names that are too long, each with those of the tables it stands in: a long one of a table, once in the
/// file, is part of every name below it. The id of a table in a list is a part of names, too (settings_words.h).
class NameBounds {
 public:
  std::optional<SettingFault> fault_in(const Setting& top) {
    look(top, top.place, 0);
    return std::move(fault_);
  }

 private:
  static constexpr std::size_t longest = 1024;
  static constexpr std::size_t most_together = std::size_t{4} << 20U;

  void look(const Setting& setting, SettingPlace place, std::size_t name) {
    together_ += name;
    if (name > longest) fail(place, "a name has more than 1024 bytes, with those of the tables it stands in");
    if (together_ > most_together)
      fail(place, "all names up to here have more than 4 MiB, each with those of its tables");
    if (fault_) return;
    if (const auto* table = setting.as<Setting::Table>()) {
      for (const NamedSetting& entry : *table) look(entry.setting, entry.place, name + 1 + entry.name.size());
    } else if (const auto* list = setting.as<Setting::List>()) {
      for (const Setting& entry : *list) {
        if (const auto* of_list = entry.as<Setting::Table>()) look(entry, entry.place, name + 1 + size_of_id(*of_list));
      }
    }
  }

  void fail(SettingPlace place, std::string text) {
    if (!fault_) fault_ = SettingFault{place, std::move(text)};
  }

  static std::size_t size_of_id(const Setting::Table& table) {
    const auto id = std::ranges::find(table, "id", &NamedSetting::name);
    const auto* const text = id == table.end() ? nullptr : id->setting.as<std::string>();
    return text == nullptr ? 0 : text->size();
  }

  std::size_t together_ = 0;
  std::optional<SettingFault> fault_;
};

// The library quotes what it did not expect. A URL on that line is taken for one with a password.
bool may_hold_password(std::string_view text, std::uint32_t line) {
  for (; line > 1 && !text.empty(); --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n')).find("://") != std::string_view::npos;
}

}  // namespace

std::variant<Setting, SettingFault> parse_toml(std::string_view text) {
  const auto cautious = cautious_toml(text);
  if (const auto* fault = std::get_if<SettingFault>(&cautious)) return *fault;
  try {
    Setting top = converted(toml::parse(std::get<std::string>(cautious)));
    if (auto fault = NameBounds().fault_in(top)) return *std::move(fault);
    return top;
  } catch (const toml::parse_error& error) {
    if (may_hold_password(std::get<std::string>(cautious), place_of(error.source()).line))
      return SettingFault{place_of(error.source()),
                          "this is not TOML; what stands there may be a password, and is not shown"};
    std::string description(error.description());
    std::ranges::replace_if(
        description, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    return SettingFault{place_of(error.source()), "this is not TOML: " + description};
  }
}

}  // namespace duet::app
