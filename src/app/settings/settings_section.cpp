#include "app/settings/settings_section.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "app/words/bytes.h"
#include "app/words/duration.h"
#include "app/words/near_miss.h"
#include "app/words/number.h"
#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

constexpr std::size_t longest_shown = 60;

std::string number_text(double number) {
  char out[64];
  return {out, std::to_chars(std::begin(out), std::end(out), number).ptr};
}

}  // namespace

void SettingFaults::add(SettingPlace place, std::string text) {
  if (!first_ || place < first_->place) first_ = SettingFault{place, std::move(text)};
}

std::string shown(std::string_view text) {
  std::string out(rpc::first_bytes(text, longest_shown));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::ranges::replace_if(out, is_control, '?');
  return text.size() <= longest_shown ? out : out + "...";
}

std::string shown(const Setting& setting) {
  if (const auto* text = setting.as<std::string>()) return "'" + shown(std::string_view(*text)) + "'";
  if (const auto* number = setting.as<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = setting.as<double>()) return number_text(*number);
  if (const auto* flag = setting.as<bool>()) return *flag ? "true" : "false";
  if (setting.as<Setting::List>() != nullptr) return "a list";
  if (setting.as<Setting::Table>() != nullptr) return "a table";
  return "a date or time";
}

SettingsSection::SettingsSection(SettingFaults& faults, const Setting& setting, std::string prefix, Names names)
    : faults_(faults), setting_(setting), table_(setting.as<Setting::Table>()), prefix_(std::move(prefix)) {
  if (table_ == nullptr) {
    const std::string name = prefix_.substr(0, prefix_.size() - (prefix_.empty() ? 0 : 1));
    faults_.add(setting.place, name + " is " + shown(setting) + ": it must be a table with " + one_of(names));
    return;
  }
  for (const NamedSetting& entry : *table_) {
    if (std::ranges::find(names, entry.name) != names.end()) continue;
    const std::string_view meant = near_miss(entry.name, {names.begin(), names.end()});
    const std::string hint = meant.empty() ? "" : " (did you mean '" + std::string(meant) + "'?)";
    faults_.add(entry.place, "unknown name '" + prefix_ + shown(std::string_view(entry.name)) + "'" + hint +
                                 ": it must be " + one_of(names));
  }
}

const Setting* SettingsSection::find(std::string_view name) const {
  if (table_ == nullptr) return nullptr;
  const auto found = std::ranges::find(*table_, name, &NamedSetting::name);
  return found == table_->end() ? nullptr : &found->setting;
}

// One that is there and misspelt tells itself.
void SettingsSection::require(std::string_view name) const {
  if (table_ == nullptr || find(name) != nullptr) return;
  const bool is_misspelt = std::ranges::any_of(
      *table_, [name](const NamedSetting& entry) { return !near_miss(entry.name, {name}).empty(); });
  if (!is_misspelt) faults_.add(setting_.place, prefix_ + std::string(name) + " is missing");
}

void SettingsSection::refuse(const Setting& setting, std::string_view name, const std::string& must_be) const {
  faults_.add(setting.place, prefix_ + std::string(name) + " is " + shown(setting) + ": it must be " + must_be);
}

bool SettingsSection::is_good_text(const Setting& setting, std::string_view name) const {
  const auto* const text = setting.as<std::string>();
  if (text != nullptr && !text->empty() && text->find('\0') == std::string::npos) return true;
  refuse(setting, name, "a text that is not empty and has no NUL in it");
  return false;
}

std::optional<std::string> SettingsSection::text(std::string_view name) const {
  const Setting* const found = find(name);
  if (found == nullptr || !is_good_text(*found, name)) return std::nullopt;
  return *found->as<std::string>();
}

std::optional<std::string> SettingsSection::choice(std::string_view name, Names choices) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const auto* const text = found->as<std::string>();
  if (text != nullptr && std::ranges::find(choices, *text) != choices.end()) return *text;
  refuse(*found, name, one_of(choices));
  return std::nullopt;
}

std::optional<std::vector<std::string>> SettingsSection::texts(std::string_view name) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const auto* const list = found->as<Setting::List>();
  if (list == nullptr) {
    refuse(*found, name, "a list of texts, [\"like\", \"this\"]");
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (const Setting& entry : *list) {
    if (!is_good_text(entry, std::string(name) + "[" + std::to_string(out.size()) + "]")) return std::nullopt;
    out.push_back(*entry.as<std::string>());
  }
  return out;
}

std::optional<bool> SettingsSection::flag(std::string_view name) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  if (const auto* flag = found->as<bool>()) return *flag;
  refuse(*found, name, "true or false");
  return std::nullopt;
}

std::optional<std::int64_t> SettingsSection::number(std::string_view name, std::int64_t least,
                                                    std::int64_t most) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const auto* const number = found->as<std::int64_t>();
  if (number != nullptr && *number >= least && *number <= most) return *number;
  refuse(*found, name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<double> SettingsSection::decimal(std::string_view name, double least, double most) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  std::optional<double> number;
  if (const auto* whole = found->as<std::int64_t>()) number = static_cast<double>(*whole);
  if (const auto* fraction = found->as<double>()) number = *fraction;
  if (number && *number >= least && *number <= most) return number;
  refuse(*found, name, "a number from " + number_text(least) + " to " + number_text(most));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> SettingsSection::duration(std::string_view name) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  std::string text;
  if (const auto* written = found->as<std::string>()) text = *written;
  if (const auto* whole = found->as<std::int64_t>()) text = std::to_string(*whole);
  if (const auto* fraction = found->as<double>()) text = number_text(*fraction);
  const auto duration = parse_duration(text);
  if (!duration) refuse(*found, name, std::string(duration_forms) + ", up to a year");
  return duration;
}

std::optional<std::uint64_t> SettingsSection::bytes(std::string_view name, std::uint64_t least) const {
  const Setting* const found = find(name);
  if (found == nullptr) return std::nullopt;
  std::optional<std::uint64_t> bytes;
  if (const auto* text = found->as<std::string>()) bytes = parse_bytes(*text);
  if (const auto* number = found->as<std::int64_t>(); number != nullptr && *number >= 0) {
    bytes = static_cast<std::uint64_t>(*number);
  }
  if (bytes && *bytes >= least) return bytes;
  refuse(*found, name, "a number of bytes, or a text such as '512M' or '2G', at least " + std::to_string(least));
  return std::nullopt;
}

}  // namespace duet::app
