#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/certificates/certificate.h"

namespace duet::app {

/// A SHA-256 fingerprint as people write it: 64 hexadecimal digits, with or without colons, maybe with `sha256:`
/// before. In lower case and without them; empty: it is none.
std::string plain_fingerprint(std::string_view word);

/// The file `revoked`: a fingerprint a line, `#` begins a comment.
struct Revocations {
  std::set<std::string, std::less<>> fingerprints = {};
  std::vector<std::size_t> faulty_lines = {};  ///< counted from 1
};
Revocations parse_revocations(std::string_view text);

/// The text with one more fingerprint, and what it is as a comment before it; all else stays as it was.
std::string with_revoked(std::string_view text, std::string_view fingerprint, std::string_view comment);

}  // namespace duet::app
