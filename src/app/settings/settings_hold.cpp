#include "app/settings/settings_hold.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pattern/regex.h"

namespace duet::app {
namespace {

constexpr std::string_view hold_names[] = {"exit_codes", "output", "for"};

bool is_exit_code(const Setting& setting) {
  const auto* const number = setting.as<std::int64_t>();
  return number != nullptr && *number >= 0 && *number <= 255;
}

std::vector<int> read_exit_codes(const SettingsSection& section, const Setting& setting) {
  std::vector<int> codes;
  const auto* const list = setting.as<Setting::List>();
  if (list == nullptr || list->empty() || !std::ranges::all_of(*list, is_exit_code)) {
    section.refuse(setting, "exit_codes", "a list of exit codes, [75]");
    return codes;
  }
  for (const Setting& entry : *list) codes.push_back(static_cast<int>(*entry.as<std::int64_t>()));
  return codes;
}

std::string read_pattern(const SettingsSection& section) {
  auto text = section.text("output");
  if (!text) return "";
  const auto parsed = pattern::parse_regex(*text);
  if (const auto* wrong = std::get_if<std::string>(&parsed)) {
    section.refuse(*section.find("output"), "output", "a regular expression of RE2 (" + *wrong + ")");
  }
  return std::move(*text);
}

}  // namespace

task::UsageHold read_usage_hold(SettingFaults& faults, const Setting& setting, const std::string& prefix) {
  const SettingsSection section(faults, setting, prefix, hold_names);
  task::UsageHold hold;
  if (const Setting* codes = section.find("exit_codes")) hold.exit_codes = read_exit_codes(section, *codes);
  hold.output = read_pattern(section);
  if (section.find("exit_codes") == nullptr && section.find("output") == nullptr) section.require("exit_codes");
  if (const auto length = section.duration("for")) hold.length = *length;
  if (hold.length.count() == 0) section.refuse(*section.find("for"), "for", "longer than nothing");
  return hold;
}

}  // namespace duet::app
