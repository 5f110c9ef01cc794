#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace duet::app {

/// The file `revoked`, as the TLS door and the commands read it: a fingerprint a line, `#` begins a comment.
struct Revocations {
  std::set<std::string> fingerprints = {};
  std::vector<std::size_t> faulty_lines = {};  ///< counted from 1
};
Revocations parse_revocations(std::string_view text);

/// `FILE:LINE: what is wrong` of its first faulty line; empty: it has none. The door does not use a list that has one,
/// since a line that nobody understands may be the one that matters.
std::string fault_of_revoked(const Revocations& revoked, const std::string& file);

/// The text with one more fingerprint, and what it is as a comment before it; all else stays as it was.
std::string with_revoked(std::string_view text, std::string_view fingerprint, std::string_view comment);

}  // namespace duet::app
