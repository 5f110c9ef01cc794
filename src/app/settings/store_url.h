#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace duet::app {

/// A URL of PostgreSQL as `store` has it: `postgresql://USER:PASSWORD@HOST:PORT,…/DATABASE?NAME=VALUE&…`, all but the
/// scheme may be missing. It is judged by its form only; what the names mean is libpq's. Pure.
struct StoreUrl {
  bool has_password = false;
  std::string shown = {};  ///< for people, with `***` for a password and for values that could be one
};

/// Nullopt: it is none. A character that has a meaning in URLs, and stands in a name or a password without one, must be
/// written with `%`, so that no piece of a password is ever taken for a host.
std::optional<StoreUrl> read_store_url(std::string_view text);

/// `postgresql://` or `postgres://`.
bool is_postgresql(std::string_view text);

/// A store as people may see it, whatever it is: what is not well-formed is not shown at all.
std::string shown_store(std::string_view text);

inline constexpr std::string_view store_forms =
    "a PostgreSQL URL such as postgresql://duet@db1,db2/work, in which '/', '?', '#', '@' and ':' of a name or "
    "password are written as %2F, %3F, %23, %40 and %3A";

}  // namespace duet::app
