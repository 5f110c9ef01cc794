#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/mp11/algorithm.hpp>

#include "app/cli/command_line.h"
#include "app/view/record_format.h"
#include "duet/rpc/types.h"

namespace duet::app {

/// The names of a described struct's members.
template <typename T>
std::vector<std::string_view> member_names() {
  std::vector<std::string_view> names;
  boost::mp11::mp_for_each<rpc::MembersOf<T>>([&](auto member) { names.emplace_back(member.name); });
  return names;
}

/// Those of a task's record.
std::vector<std::string_view> record_fields();

/// Prints results as --json or --format wants them. For people, if neither is given, a command prints them itself.
class RecordPrinter {
 public:
  /// Throws Failure if both are given, or a field that there is not.
  explicit RecordPrinter(const CommandLine& line, const std::vector<std::string_view>& fields = record_fields());

  bool is_for_people() const { return !json_ && !format_; }
  bool has_format() const { return format_.has_value(); }
  /// `result` is the JSON text of one object. Not for people.
  void print(const std::string& result) const;
  void print_formatted(const boost::json::object& record) const;

 private:
  bool json_;
  bool harmless_;
  std::optional<RecordFormat> format_;
};

}  // namespace duet::app
