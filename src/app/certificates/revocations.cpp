#include "app/certificates/revocations.h"

#include <algorithm>

#include "app/settings/door_settings.h"

namespace duet::app {
namespace {

constexpr std::string_view blanks_around = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks_around);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks_around) - begin + 1);
}

}  // namespace

Revocations parse_revocations(std::string_view text) {
  Revocations out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view word = without_blanks(line.substr(0, line.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string fingerprint = fingerprint_in(word);
    if (fingerprint.empty()) {
      out.faulty_lines.push_back(number);
    } else {
      out.fingerprints.insert(std::move(fingerprint));
    }
  }
  return out;
}

std::string fault_of_revoked(const Revocations& revoked, const std::string& file) {
  if (revoked.faulty_lines.empty()) return "";
  return file + ':' + std::to_string(revoked.faulty_lines.front()) +
         ": not the SHA-256 fingerprint of a certificate, which has 64 hexadecimal digits";
}

std::string with_revoked(std::string_view text, std::string_view fingerprint, std::string_view comment) {
  std::string out(text);
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  return out.append("# ").append(comment).append("\n").append(fingerprint).append("\n");
}

}  // namespace duet::app
