#pragma once

#include <string>

namespace duet::app {

/// docs/methods.md: the listed methods of `duet-rpc rpc`, from the table that dispatches, each with a call that was
/// really made and the answer that really came.
std::string method_page();

}  // namespace duet::app
