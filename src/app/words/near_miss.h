#pragma once

#include <string_view>
#include <vector>

namespace duet::app {

/// The candidate somebody probably meant when they wrote `word`: one or two slips away, case aside. Empty: none.
std::string_view near_miss(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace duet::app
