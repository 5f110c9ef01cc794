#include "pattern/regex.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <re2/re2.h>

#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"

namespace duet::pattern {
namespace {

// The memory limit holds for what is compiled, and for what matching remembers. On the way there repetitions are
// written out, in thousands of times the memory of the text.
constexpr std::int64_t most_memory = 1 << 20;
constexpr std::size_t longest = 4'000;
constexpr std::size_t longest_quote = 40;
constexpr const char* too_large = "the pattern is too large";

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(most_memory);
  return options;
}

// RE2 says `missing ): (a`.
std::string fault_of(const RE2& compiled) {
  if (compiled.error_code() == RE2::ErrorPatternTooLarge) return too_large;
  const std::string& place = compiled.error_arg();
  if (place.empty()) return compiled.error();
  const std::string what = compiled.error().substr(0, compiled.error().size() - place.size() - 2);
  return what + " at '" + std::string(rpc::first_characters(place, longest_quote)) + "'";
}

bool matches(const RE2& compiled, std::string_view text, RE2::Anchor anchor) {
  if (!rpc::is_utf8(text)) return matches(compiled, rpc::valid_utf8(std::string(text)), anchor);
  return compiled.Match(text, 0, text.size(), anchor, nullptr, 0);
}

}  // namespace

bool Regex::found_in(std::string_view text) const { return matches(*compiled_, text, RE2::UNANCHORED); }
bool Regex::matches_all_of(std::string_view text) const { return matches(*compiled_, text, RE2::ANCHOR_BOTH); }

std::variant<Regex, std::string> parse_regex(std::string_view text) {
  if (text.size() > longest) return too_large;
  auto compiled = std::make_shared<const RE2>(text, options());
  if (!compiled->ok()) return fault_of(*compiled);
  return Regex(std::move(compiled));
}

}  // namespace duet::pattern
