#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "duet/framing/http_driver_test.h"
#include "duet/framing/http_head.h"

namespace duet::framing {

/// A second reading of the rules for requests, from the whole stream instead of byte by byte: for each thing that can
/// end a head it asks how many bytes one must have seen to know it, and the first of them counts.
class SlowHttpReader {
 public:
  explicit SlowHttpReader(std::string stream) : rest_(std::move(stream)) {}

  std::vector<std::string> events() {
    while (read_request()) {
    }
    return events_;
  }

 private:
  static constexpr std::size_t never = std::string::npos;

  bool read_request() {
    const std::size_t end = end_of_head();
    const std::size_t long_target = too_long_target();
    const std::size_t bad_byte = first_bad_byte();
    const std::size_t many_fields = too_many_fields();
    const std::size_t limit = rest_.size() >= http_max_head ? http_max_head : never;
    const std::size_t first = std::min({end, long_target, bad_byte, many_fields, limit});
    if (first == never) return false;
    if (first == bad_byte) return refuse("! 400 malformed");
    if (first == long_target) return refuse("! 414 target-too-long");
    if (first != end) return refuse("! 431 head-too-large");
    return judge(rest_.substr(0, end));
  }

  bool refuse(const std::string& event) {
    events_.push_back(event);
    return false;
  }

  std::size_t end_of_head() const {
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] != '\n') continue;
      const std::size_t before = i > 0 && rest_[i - 1] == '\r' ? i - 1 : i;
      if (before == 0 || rest_[before - 1] == '\n') return i + 1;
    }
    return never;
  }

  std::size_t too_long_target() const {
    const std::string line = rest_.substr(0, rest_.find_first_of("\r\n"));
    const std::size_t begin = line.find(' ');
    if (begin == never) return never;
    const std::size_t end = std::min(line.find(' ', begin + 1), line.size());
    return end - begin - 1 > http_max_target ? begin + 1 + http_max_target + 1 : never;
  }

  std::size_t first_bad_byte() const {
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const auto c = static_cast<unsigned char>(rest_[i]);
      if (c == '\r' && i + 1 < rest_.size() && rest_[i + 1] != '\n') return i + 2;
      if ((c < 0x20 && c != '\r' && c != '\n') || c == 0x7F) return i + 1;
    }
    return never;
  }

  std::size_t too_many_fields() const {
    std::size_t lines = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\n' && ++lines == http_max_fields + 2) return i + 1;
    }
    return never;
  }

  static bool is_name(const std::string& text) {
    static const std::string others = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || others.find(c) != never;
    });
  }

  static std::string small(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return text;
  }

  static std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(' ');
    return first == never ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
  }

  static std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0;;) {
      const std::size_t end = text.find(separator, at);
      parts.push_back(text.substr(at, end - at));
      if (end == never) return parts;
      at = end + separator.size();
    }
  }

  // Of a head that is whole.
  bool judge(const std::string& head) {
    std::vector<std::string> lines = split(head, "\r\n");
    bool good = lines.size() > 2 &&
                std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.find('\n') == never; });
    const std::vector<std::string> words = split(lines[0], " ");
    good = good && (words.size() == 2 || words.size() == 3) && is_name(words[0]) && words[1].starts_with('/') &&
           std::all_of(words[1].begin(), words[1].end(), [](char c) { return c > ' '; });
    std::string shown;
    std::vector<std::string> lengths;
    std::size_t hosts = 0;
    bool closes = false;
    bool encoded = false;
    std::string expectation;
    for (std::size_t i = 1; good && i + 2 < lines.size(); ++i) {
      const std::size_t colon = lines[i].find(':');
      const std::string name = small(lines[i].substr(0, colon));
      good = colon != never && is_name(name) && name != "content_length" && name != "transfer_encoding";
      const std::string value = good ? trimmed(lines[i].substr(colon + 1)) : "";
      shown += (shown.empty() ? "" : "|") + lines[i].substr(0, colon) + '=' + value;
      if (name == "host") ++hosts;
      if (name == "content-length") lengths.push_back(value);
      encoded = encoded || name == "transfer-encoding";
      if (name == "expect")
        expectation = expectation.empty() && small(value) == "100-continue" ? " continue" : " expects";
      if (name != "connection" && name != "proxy-connection") continue;
      for (const std::string& part : split(value, ",")) {
        const std::string word = trimmed(part);
        good = good && (word.empty() || is_name(word));
        closes = closes || small(word) == "close";
      }
    }
    good = good && hosts == 1 && lengths.size() <= 1;
    const std::string digits = lengths.empty() ? "0" : lengths[0];
    good = good && !digits.empty() && digits.size() <= 19 && digits.find_first_not_of("0123456789") == never;
    const unsigned long long length = good ? std::stoull(digits) : 0;
    if (!good || (length > 0 && (words[0] == "GET" || words[0] == "HEAD"))) return refuse("! 400 malformed");
    if (words.size() == 2 || words[2] != "HTTP/1.1") return refuse("! 505 version");
    if (encoded) return refuse(lengths.empty() ? "! 411 length-required" : "! 400 malformed");
    const std::string target = words[1].ends_with('?') && words[1].find('?') + 1 == words[1].size()
                                   ? words[1].substr(0, words[1].size() - 1)
                                   : words[1];
    events_.push_back(words[0] + ' ' + target + " {" + shown + "} " + std::to_string(length) +
                      (closes ? " close" : " keep") + expectation);
    if (length > max_body) return refuse("! 413 too-large");
    if (rest_.size() - head.size() < length) return false;
    events_.push_back("body " + rest_.substr(head.size(), length));
    rest_.erase(0, head.size() + length);
    return true;
  }

  std::string rest_;
  std::vector<std::string> events_;
};

inline std::vector<std::string> slow_http_events(const std::string& stream) { return SlowHttpReader(stream).events(); }

}  // namespace duet::framing
