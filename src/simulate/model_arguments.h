#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "task/postgres/argument.h"

namespace duet::simulate {

using task::postgres::Argument;

/// By what a submit is known: its key, or else its own id.
std::string ident_of(const std::string& id, const std::string& key);

/// The elements of an array literal as array_of() makes it; none of NULL.
std::vector<Argument> elements_of(const Argument& array);

/// What a function was called with, read as the server does. Pure; throws std::exception for what is no such value.
class Arguments {
 public:
  explicit Arguments(const std::vector<Argument>& values) : values_(values) {}

  const Argument& at(std::size_t i) const { return values_.at(i); }
  std::string text(std::size_t i) const { return at(i).value_or(""); }
  std::int64_t number(std::size_t i) const { return std::stoll(text(i)); }
  bool flag(std::size_t i) const { return text(i) == "t"; }
  std::vector<Argument> list(std::size_t i) const { return elements_of(at(i)); }
  std::vector<std::string> texts(std::size_t i) const;
  std::vector<std::int64_t> numbers(std::size_t i) const;
  /// An element of an array; NULL where it ends.
  Argument element(std::size_t i, std::size_t place) const;
  std::optional<std::int64_t> number(std::size_t i, std::size_t place) const;

 private:
  const std::vector<Argument>& values_;
  mutable std::vector<std::optional<std::vector<Argument>>> lists_ = {};  // that were read already
};

}  // namespace duet::simulate
