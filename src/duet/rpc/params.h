#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "duet/api.h"

namespace duet::rpc {

enum class Type : std::uint8_t { text, integer, number, boolean, object, array, any };

/// `"string"`, `"integer"`, …: as it stands in descriptions and in errors.
DUET_API std::string_view name_of(Type type);

/// One parameter of a method.
struct Param {
  std::string name;
  Type type = Type::any;
  bool required = true;
  std::string summary = {};
  std::vector<std::string> accepted = {};  ///< of a string: the only values, matched in any case
};

/// The params of one request, checked against a method's list: by name or by position, unknown ones
/// ignored, `null` the same as absent where a parameter is optional, the last of a doubled name counts.
/// Points into the request's text: whoever needs a value later copies it.
class DUET_API Params {
 public:
  Params() = default;
  /// Params that nobody checks; only raw() and value() tell something.
  explicit Params(std::string_view raw) : raw_(raw) {}
  /// Throws invalid_params().
  Params(std::span<const Param> list, std::string_view raw);

  std::string_view raw() const { return raw_; }
  bool has(std::string_view name) const { return !slice(name).empty(); }
  /// The raw JSON of one parameter; empty when absent.
  std::string_view slice(std::string_view name) const;

  /// One of `accepted` comes as it is spelt there, however the request spells it.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name) const;
  /// The value as a tree: of one parameter, or of all of them.
  boost::json::value value(std::string_view name) const;
  boost::json::value value() const;

 private:
  std::span<const Param> list_;
  std::string_view raw_;
  std::vector<std::string_view> slices_;  // beside list_
};

}  // namespace duet::rpc
