#pragma once

#include <cstdint>
#include <string_view>

namespace duet::framing {

/// Why a request is refused, in the order in which a door looks for it.
enum class HttpFault : std::uint8_t {
  other_user,
  busy,
  too_slow,
  target_too_long,
  head_too_large,
  malformed,
  version,
  length_required,
  host,
  origin,
  path,
  method,
  token,
  role,
  content_type,
  too_large,
  expectation,
  accept,
  query,
  code,
  used_code,
  too_many_codes,
  upgrade,
  bad_upgrade,
  failed,
};

/// What a refused request is told: fixed texts, so that nothing of it is repeated.
struct HttpRefusal {
  unsigned status = 0;
  std::string_view word;
  std::string_view message;      ///< can stand in a JSON text as it is
  bool closes = false;           ///< the connection ends after the answer, whoever asked
  std::string_view fields = {};  ///< further lines of the head, each with its end
};

const HttpRefusal& refusal_of(HttpFault fault);

}  // namespace duet::framing
