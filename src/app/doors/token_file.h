#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"

namespace duet::app {

/// A token as it is kept: what it says itself is known to its holder only.
struct SavedToken {
  std::string name;
  std::string role;
  std::string sha256;    ///< of the token
  bool browser = false;  ///< it ends when it was not used for a while
  base::UtcTime created = {};
  std::optional<base::UtcTime> used = {};     ///< last, as far as that was written down
  std::optional<base::UtcTime> expires = {};  ///< none: never; browsers have none
};

struct SavedTokens {
  std::uint64_t browsers = 0;  ///< how many have been given a number, so that none has that of another
  std::vector<SavedToken> tokens = {};
};

/// The file `tokens`: a line of its kind, one for the count, one for each token, and a checksum of these. Pure.
std::string token_file_text(const SavedTokens& saved);
/// What token_file_text() was given, times in milliseconds; of any other text, what is wrong with it.
tl::expected<SavedTokens, std::string> parse_token_file(std::string_view text);

}  // namespace duet::app
