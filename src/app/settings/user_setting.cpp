#include "app/settings/user_setting.h"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <variant>

#include "app/settings/settings_file.h"

namespace duet::app {
namespace {

const Setting* member_of(const Setting* table, std::string_view name) {
  const auto* const entries = table == nullptr ? nullptr : table->as<Setting::Table>();
  if (entries == nullptr) return nullptr;
  const auto found = std::ranges::find(*entries, name, &NamedSetting::name);
  return found == entries->end() ? nullptr : &found->setting;
}

}  // namespace

std::optional<Setting> user_setting(const SettingsPlaces& places, std::string_view table, std::string_view name) {
  const std::string& file = places.only.empty() ? places.user : places.only;
  if (file.empty()) return std::nullopt;
  const auto read = read_settings_file(AT_FDCWD, file);
  const auto* const text = std::get_if<std::optional<std::string>>(&read);
  if (text == nullptr || !*text) return std::nullopt;
  const auto parsed = parse_toml(**text);
  const Setting* const found = member_of(member_of(std::get_if<Setting>(&parsed), table), name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace duet::app
