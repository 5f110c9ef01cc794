#include "app/words/near_miss.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace duet::app {
namespace {

constexpr std::size_t longest_word = 64;  // nothing that long is a slip of ours, and the table below stays small

bool same(char a, char b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return lower(a) == lower(b);
}

// Letters left out, put in, exchanged, or swapped with their neighbour.
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string_view near_miss(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.empty() || word.size() > longest_word) return {};
  std::string_view best;
  std::size_t fewest = word.size() <= 4 ? 2 : 3;
  for (const std::string_view candidate : candidates) {
    const std::size_t count = slips(word, candidate);
    if (count >= fewest || count >= candidate.size()) continue;
    fewest = count;
    best = candidate;
  }
  return best;
}

}  // namespace duet::app
