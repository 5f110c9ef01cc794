#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/settings/settings_tree.h"

namespace duet::app {

/// Collects faults of one file and keeps the one that stands first.
class SettingFaults {
 public:
  void add(SettingPlace place, std::string text);
  const std::optional<SettingFault>& first() const { return first_; }

 private:
  std::optional<SettingFault> first_;
};

/// Gives the values of one table of a settings file as the types they must have.
///
/// Whatever is not as it must be is added to the faults, once, and then looks as if it were not there: a caller reads
/// on and asks the faults at the end. Names that are not in `names` are faults as well. Texts are never empty and hold
/// no NUL. Settings and faults must outlive it.
class SettingsSection {
 public:
  using Names = std::span<const std::string_view>;

  /// `prefix` is what stands before the names in messages: `agents.claude.`
  SettingsSection(SettingFaults& faults, const Setting& setting, std::string prefix, Names names);

  const Setting* find(std::string_view name) const;
  /// A fault if it is not there.
  void require(std::string_view name) const;
  void refuse(const Setting& setting, std::string_view name, const std::string& must_be) const;

  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::string> choice(std::string_view name, Names choices) const;
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name, std::int64_t least, std::int64_t most) const;
  /// A number, whole or not.
  std::optional<double> decimal(std::string_view name, double least, double most) const;
  /// A duration: a text as people write it, or a number of seconds.
  std::optional<std::chrono::milliseconds> duration(std::string_view name) const;
  /// Bytes: a whole number, or a text such as `512M` or `2G`, in powers of 1024.
  std::optional<std::uint64_t> bytes(std::string_view name, std::uint64_t least) const;

 private:
  bool is_good_text(const Setting& setting, std::string_view name) const;

  SettingFaults& faults_;
  const Setting& setting_;
  const Setting::Table* table_;
  std::string prefix_;
};

/// A value as a message shows it, in quotes where it is a text, short and on one line.
std::string shown(const Setting& setting);
/// A text the same way, without quotes.
std::string shown(std::string_view text);

}  // namespace duet::app
