#include "bridge/symbol_match.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace duet::bridge {
namespace {

// Bytes of characters beyond ASCII are those of letters.
bool is_word_byte(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code >= 0x80 || std::isalnum(code) != 0 || byte == '_' || byte == '$';
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return out;
}

bool ends_with(const std::vector<std::string_view>& path, const std::vector<std::string_view>& end) {
  return end.size() <= path.size() && std::equal(end.rbegin(), end.rend(), path.rbegin());
}

// A run of `wanted` in `path` that ends inside or behind the first of the last `own` components.
bool has_run(const std::vector<std::string_view>& path, const std::vector<std::string_view>& wanted, std::size_t own) {
  for (std::size_t at = 0; at + wanted.size() <= path.size(); ++at) {
    const bool touches = at + wanted.size() > path.size() - own;
    const auto begin = path.begin() + static_cast<std::ptrdiff_t>(at);
    if (touches && std::equal(wanted.begin(), wanted.end(), begin)) return true;
  }
  return false;
}

// How many characters have to be changed, added or left out to make one of the other; more than `most` is not counted.
std::size_t distance(std::string_view one, std::string_view other, std::size_t most) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t changed = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
    if (*std::ranges::min_element(row) > most) return most + 1;
  }
  return row.back();
}

}  // namespace

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> found;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = at;
    while (end < path.size() && is_word_byte(path[end])) ++end;
    if (end > at) found.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

std::optional<int> match_step(const SymbolName& symbol, std::string_view wanted) {
  if (symbol.path == wanted) return 0;
  if (symbol.own == wanted) return 1;
  const std::vector<std::string_view> asked = components(wanted);
  const std::vector<std::string_view> path = components(symbol.path);
  if (asked.empty()) return std::nullopt;
  if (ends_with(path, asked)) return 2;
  const std::size_t own = std::min(components(symbol.own).size(), path.size());
  return has_run(path, asked, own) ? std::optional(3) : std::nullopt;
}

std::vector<std::size_t> best_matches(const std::vector<SymbolName>& symbols, std::string_view wanted) {
  std::vector<std::size_t> best;
  std::optional<int> best_step;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::optional<int> step = match_step(symbols[i], wanted);
    if (!step || (best_step && *step > *best_step)) continue;
    if (step != best_step) best.clear();
    best_step = step;
    best.push_back(i);
  }
  return best;
}

bool is_found(const SymbolName& symbol, std::string_view wanted) {
  return match_step(symbol, wanted) || lower(symbol.own).find(lower(wanted)) != std::string::npos;
}

std::vector<std::string> near_names(const std::vector<SymbolName>& symbols, std::string_view wanted, std::size_t most) {
  constexpr std::size_t longest = 64;            // names that are longer are not compared
  constexpr std::size_t most_compared = 10'000;  // letter by letter, while others wait
  const std::vector<std::string_view> asked = components(wanted);
  const std::string last = lower(asked.empty() ? wanted : asked.back());
  if (last.empty() || last.size() > longest) return {};
  const std::size_t farthest = std::max<std::size_t>(2, last.size() / 3);
  std::size_t compared = 0;
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const SymbolName& symbol : symbols) {
    const std::string own = lower(symbol.own);
    if (own.empty() || own.size() > longest) continue;
    const bool has_it = own.find(last) != own.npos || last.find(own) != last.npos;
    const bool has_length = own.size() <= last.size() + farthest && last.size() <= own.size() + farthest;
    if (!has_it && (!has_length || ++compared > most_compared)) continue;
    const std::size_t far = has_it ? 1 : distance(own, last, farthest);
    if (far <= farthest) near.emplace_back(far, symbol.path);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> names;
  for (auto& [far, path] : near) {
    if (names.size() < most && std::ranges::find(names, path) == names.end()) names.push_back(std::move(path));
  }
  return names;
}

std::optional<std::size_t> find_word(std::string_view line, std::string_view word) {
  if (word.empty()) return std::nullopt;
  for (std::size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool is_cut_before = at > 0 && is_word_byte(line[at - 1]) && is_word_byte(word.front());
    const bool is_cut_behind = end < line.size() && is_word_byte(line[end]) && is_word_byte(word.back());
    if (!is_cut_before && !is_cut_behind) return at;
  }
  return std::nullopt;
}

}  // namespace duet::bridge
