#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace duet::app {

/// True when text on this descriptor may be coloured: a terminal that can, and nobody said no.
bool colour_wanted(int fd, bool no_color);

/// Puts colours around words, or leaves them as they are.
class TextStyle {
 public:
  explicit TextStyle(bool coloured) : coloured_(coloured) {}

  std::string heading(std::string_view text) const { return painted("1", text); }
  std::string name(std::string_view text) const { return painted("36", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string faint(std::string_view text) const { return painted("2", text); }
  std::string fault(std::string_view text) const { return painted("1;31", text); }
  std::string warning(std::string_view text) const { return painted("33", text); }
  /// One of six colours, for things that are to be told apart.
  std::string nth(std::size_t index, std::string_view text) const {
    constexpr std::string_view codes[] = {"36", "33", "32", "35", "34", "31"};
    return painted(codes[index % std::size(codes)], text);
  }

 private:
  std::string painted(std::string_view code, std::string_view text) const {
    if (!coloured_) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }

  bool coloured_;
};

}  // namespace duet::app
