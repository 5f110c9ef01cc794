#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace duet::rpc {

/// The JSON corner cases and envelopes that stand as data in tests/json; the format is described at
/// the top of those files.
struct JsonCase {
  std::string name;
  bool valid = false;
  std::string text;
};

struct EnvelopeCase {
  int line = 0;
  std::string door;  // stdio, socket or both
  std::string text;
  std::string outcome;  // behind the arrow, as written
};

/// The bytes that the files' notation stands for.
std::string unescape_case(std::string_view written);

std::vector<JsonCase> json_cases();
std::vector<EnvelopeCase> envelope_cases();

}  // namespace duet::rpc
