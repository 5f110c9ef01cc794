#include "pattern/regex.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

bool begins_group_name(std::string_view rest) {
  constexpr std::string_view mark = "(?<";
  if (!rest.starts_with(mark) || rest.size() == mark.size()) return false;
  const char first = rest[mark.size()];
  return first == '_' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
}

// RE2 of Debian 12 knows the older spelling only.
std::string with_older_group_names(std::string_view text) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      out.append(text.substr(at++, 2));
    } else if (!in_class && begins_group_name(text.substr(at))) {
      out += "(?P<";
      at += 2;
    } else {
      if (c == '[' || c == ']') in_class = c == '[';
      out += c;
    }
  }
  return out;
}

}  // namespace

bool Regex::found_in(std::string_view text) const { return matches(*compiled_, text, RE2::UNANCHORED); }
bool Regex::matches_all_of(std::string_view text) const { return matches(*compiled_, text, RE2::ANCHOR_BOTH); }

std::optional<Regex::Match> Regex::last_match(std::string_view text, const std::string& group) const {
  constexpr int most_matches = 1000;
  const auto& names = compiled_->NamedCapturingGroups();
  const auto named = names.find(group);
  const int index = named == names.end() ? 0 : named->second;
  std::vector<re2::StringPiece> taken(static_cast<std::size_t>(index) + 1);
  std::optional<Match> last;
  std::size_t from = 0;
  for (int i = 0; i < most_matches && from <= text.size(); ++i) {
    if (!compiled_->Match(text, from, text.size(), RE2::UNANCHORED, taken.data(), index + 1)) break;
    const re2::StringPiece& all = taken.front();
    last = Match{.all = {all.data(), all.size()}};
    const re2::StringPiece& part = taken.back();
    if (index > 0 && part.data() != nullptr) last->group = std::string_view(part.data(), part.size());
    from = static_cast<std::size_t>(all.data() - text.data()) + std::max<std::size_t>(all.size(), 1);
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) ++from;
  }
  return last;
}

std::variant<Regex, std::string> parse_regex(std::string_view text) {
  if (text.size() > longest) return too_large;
  auto compiled = std::make_shared<const RE2>(with_older_group_names(text), options());
  if (!compiled->ok()) return fault_of(*compiled);
  return Regex(std::move(compiled));
}

}  // namespace duet::pattern
