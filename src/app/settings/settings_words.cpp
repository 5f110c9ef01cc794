#include "app/settings/settings_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "app/settings/store_url.h"
#include "app/words/unseen.h"

namespace duet::app {
namespace {

using Text = std::string_view;

std::uint32_t character_at(Text text, std::size_t& size) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
  const std::uint32_t first = byte(0);
  size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  size = std::min(size, text.size());
  std::uint32_t out = size == 1 ? first : first & (0xffU >> (size + 1));
  for (std::size_t at = 1; at < size; ++at) out = out << 6U | (byte(at) & 0x3fU);
  return out;
}

std::string escape_of(std::uint32_t character) {
  switch (character) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  std::array<char, 16> room{};
  std::snprintf(room.data(), room.size(), character > 0xffff ? "\\U%08x" : "\\u%04x", character);
  return room.data();
}

std::string in_quotes(Text text) {
  std::string out = "\"";
  while (!text.empty()) {
    std::size_t size = 1;
    const std::uint32_t character = character_at(text, size);
    if (character == '"' || character == '\\' || is_unseen(character)) {
      out += escape_of(character);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

std::string key_of(Text name) {
  const bool is_bare = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return is_bare ? std::string(name) : in_quotes(name);
}

std::string fraction_text(double number) {
  std::array<char, 64> room{};
  return {room.data(), std::to_chars(room.data(), room.data() + room.size(), number).ptr};
}

std::string written(const Setting& setting);

template <typename Entries, typename Show>
std::string joined(const Entries& entries, Text begin, Text end, Show show) {
  std::string out(begin);
  for (const auto& entry : entries) out += (out.size() == begin.size() ? "" : ", ") + show(entry);
  return out += end;
}

std::string written(const Setting& setting) {
  if (const auto* text = setting.as<std::string>()) return in_quotes(*text);
  if (const auto* number = setting.as<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = setting.as<double>()) return fraction_text(*number);
  if (const auto* flag = setting.as<bool>()) return *flag ? "true" : "false";
  if (const auto* list = setting.as<Setting::List>()) return joined(*list, "[", "]", written);
  if (const auto* table = setting.as<Setting::Table>()) {
    return joined(*table, "{ ", " }",
                  [](const NamedSetting& entry) { return key_of(entry.name) + " = " + written(entry.setting); });
  }
  return "a date or time";
}

// The id of a table in a list, or its place there.
std::string entry_key(const Setting::Table& table, std::size_t place) {
  const auto id = std::ranges::find(table, "id", &NamedSetting::name);
  const auto* const text = id == table.end() ? nullptr : id->setting.as<std::string>();
  return text == nullptr ? std::to_string(place) : key_of(*text);
}

// A store may have a password, wherever it stands: a name that nobody knows is shown, too.
bool is_store(Text name) { return name == "store" || name.ends_with(".store"); }

void add_words(SettingsWords& words, const std::string& name, const Setting& setting) {
  const std::string prefix = name.empty() ? "" : name + '.';
  if (const auto* table = setting.as<Setting::Table>(); table != nullptr && !table->empty()) {
    for (const NamedSetting& entry : *table) add_words(words, prefix + key_of(entry.name), entry.setting);
    return;
  }
  const auto* const list = setting.as<Setting::List>();
  const bool is_of_tables =
      name == "rules" && list != nullptr && !list->empty() &&
      std::ranges::all_of(*list, [](const Setting& entry) { return entry.as<Setting::Table>() != nullptr; });
  if (!is_of_tables) {
    const auto* const text = setting.as<std::string>();
    const bool is_hidden = is_store(name) && text != nullptr;
    if (!name.empty()) words[name] = is_hidden ? in_quotes(shown_store(*text)) : written(setting);
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    add_words(words, prefix + entry_key(*(*list)[i].as<Setting::Table>(), i), (*list)[i]);
  }
}

// The first two names: what stands there is changed as a whole.
std::string unit_of(Text name) {
  bool quotes = false;
  int dots = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (quotes && name[at] == '\\') {
      ++at;
    } else if (name[at] == '"') {
      quotes = !quotes;
    } else if (!quotes && name[at] == '.' && ++dots == 2) {
      return std::string(name.substr(0, at));
    }
  }
  return std::string(name);
}

std::map<std::string, std::string> units_of(const SettingsWords& words) {
  std::map<std::string, std::string> units;
  for (const auto& [name, value] : words) units[unit_of(name)].append(name).append(" = ").append(value).append("\n");
  return units;
}

}  // namespace

SettingsWords words_of(const Setting& top) {
  SettingsWords words;
  add_words(words, "", top);
  return words;
}

void put_over(SettingsWords& words, const SettingsWords& file) {
  const auto replaced = units_of(file);
  std::erase_if(words, [&](const auto& word) { return replaced.contains(unit_of(word.first)); });
  words.insert(file.begin(), file.end());
}

SettingsChange change_between(const SettingsWords& before, const SettingsWords& after) {
  const auto old_units = units_of(before);
  const auto new_units = units_of(after);
  SettingsChange change;
  for (const auto& [name, text] : new_units) {
    const auto old = old_units.find(name);
    if (old == old_units.end()) {
      change.added.push_back(name);
    } else if (old->second != text) {
      change.changed.push_back(name);
    }
  }
  for (const auto& [name, text] : old_units) {
    if (!new_units.contains(name)) change.removed.push_back(name);
  }
  return change;
}

}  // namespace duet::app
