#pragma once

#include <string_view>

namespace duet::task::postgres {

/// Whether `postgresql://…` has its parts where they seem to be. Pure.
///
/// A password with an `@`, `/` or `?` that is not written as %XX would be cut there, and its rest be taken for a host,
/// a port or a database, which people get to see. So what is not clear is not taken.
bool is_clear_url(std::string_view store);

/// Whether host names, addresses, folders of sockets, and ports have letters that such have. Lists with commas, too.
bool is_host_list(std::string_view text);
bool is_port_list(std::string_view text);

}  // namespace duet::task::postgres
