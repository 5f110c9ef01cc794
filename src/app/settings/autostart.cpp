#include "app/settings/autostart.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "app/settings/settings_file.h"
#include "app/settings/settings_tree.h"

namespace duet::app {
namespace {

const Setting* member_of(const Setting* table, std::string_view name) {
  const auto* const entries = table == nullptr ? nullptr : table->as<Setting::Table>();
  if (entries == nullptr) return nullptr;
  const auto found = std::ranges::find(*entries, name, &NamedSetting::name);
  return found == entries->end() ? nullptr : &found->setting;
}

}  // namespace

bool autostart_wanted(const SettingsPlaces& places) {
  const std::string& file = places.only.empty() ? places.user : places.only;
  if (file.empty()) return false;
  const auto read = read_settings_file(AT_FDCWD, file);
  const auto* const text = std::get_if<std::optional<std::string>>(&read);
  if (text == nullptr || !*text) return false;
  const auto parsed = parse_toml(**text);
  const Setting* const autostart = member_of(member_of(std::get_if<Setting>(&parsed), "daemon"), "autostart");
  const bool* const wanted = autostart == nullptr ? nullptr : autostart->as<bool>();
  return wanted != nullptr && *wanted;
}

}  // namespace duet::app
