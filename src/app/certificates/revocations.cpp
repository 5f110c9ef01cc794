#include "app/certificates/revocations.h"

#include <algorithm>
#include <cctype>

namespace duet::app {
namespace {

constexpr std::size_t digits_of_fingerprint = 64;
constexpr std::string_view blanks_around = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks_around);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks_around) - begin + 1);
}

}  // namespace

std::string plain_fingerprint(std::string_view word) {
  constexpr std::string_view algorithm = "sha256:";
  std::string out;
  for (const char c : word) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (out.starts_with(algorithm)) out.erase(0, algorithm.size());
  std::erase(out, ':');
  const bool is = out.size() == digits_of_fingerprint && out.find_first_not_of("0123456789abcdef") == out.npos;
  return is ? out : "";
}

Revocations parse_revocations(std::string_view text) {
  Revocations out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view word = without_blanks(line.substr(0, line.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string fingerprint = plain_fingerprint(word);
    if (fingerprint.empty()) {
      out.faulty_lines.push_back(number);
    } else {
      out.fingerprints.insert(std::move(fingerprint));
    }
  }
  return out;
}

std::string with_revoked(std::string_view text, std::string_view fingerprint, std::string_view comment) {
  std::string out(text);
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  return out.append("# ").append(comment).append("\n").append(fingerprint).append("\n");
}

}  // namespace duet::app
