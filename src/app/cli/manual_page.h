#pragma once

#include <string>

namespace duet::app {

/// duet-rpc(1) as roff source, made from the command table.
std::string manual_page();

}  // namespace duet::app
