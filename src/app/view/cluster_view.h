#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "app/view/text_style.h"

namespace duet::app {

/// The result of `cluster.status` for people: workers, what waits and for whom, the database. What is not there is left
/// out or shown as `-`. Facts about the database are in `database`, or beside it. `width` is as for Table.
std::string cluster_page(const boost::json::object& status, const TextStyle& style, std::optional<std::size_t> width);

}  // namespace duet::app
