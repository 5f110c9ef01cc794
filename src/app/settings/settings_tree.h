#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace duet::app {

/// Line and column in a settings file, both from 1.
struct SettingPlace {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  bool operator<(const SettingPlace& other) const {
    return line != other.line ? line < other.line : column < other.column;
  }
};

struct NamedSetting;

/// A value of a settings file, and where it stands. TOML's dates and times are `Other`: nothing here wants them.
struct Setting {
  struct Other {};
  using List = std::vector<Setting>;
  using Table = std::vector<NamedSetting>;  // in the order of the file

  std::variant<Other, std::string, std::int64_t, double, bool, List, Table> value;
  SettingPlace place;

  template <typename Type>
  const Type* as() const {
    return std::get_if<Type>(&value);
  }
};

struct NamedSetting {
  std::string name;
  SettingPlace place;
  Setting setting;
};

/// What is wrong in a settings file, and where.
struct SettingFault {
  SettingPlace place;
  std::string text;
};

/// Reads TOML 1.0. This is the only place that knows the library. Names have a bound, each alone and all together, with
/// those of the tables they stand in: what is made of a text is not much larger than the text.
std::variant<Setting, SettingFault> parse_toml(std::string_view text);

}  // namespace duet::app
