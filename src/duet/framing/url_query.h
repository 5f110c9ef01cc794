#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::framing {

/// One `name=value` of a query, decoded: any bytes may stand in it.
struct QueryPart {
  std::string name;
  std::string value;

  bool operator==(const QueryPart&) const = default;
};

/// The parts of a query in their order, `%XX` and `+` (a blank) decoded. Strict: nullopt for a `%` without two
/// hexadecimal digits behind it, a part without `=` or without a name, an empty part, and a byte that a URL
/// cannot have. An empty query has no parts.
std::optional<std::vector<QueryPart>> read_query(std::string_view query);

}  // namespace duet::framing
