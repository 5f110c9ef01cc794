#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace duet::app::top {

/// What others wrote, for the screen: on one line, without escape sequences, control characters, marks that change the
/// direction of writing, and more than two combining marks on a letter. Every byte that is not UTF-8 is the replacement
/// character. The result is a text of one_line().
std::string screen_text(std::string_view text);

/// The last line of output that says something, as a terminal would have it: what stands before a carriage return was
/// written over.
std::string last_line(std::string_view output);

/// The end of a task's output in lines for the screen, bounded in lines and in bytes.
class OutputLines {
 public:
  static constexpr std::size_t most_lines = 5'000;
  static constexpr std::size_t most_bytes = 1U << 20U;
  static constexpr std::size_t longest_line = 1'024;  ///< bytes; a longer one is cut in two

  void append(std::string_view bytes);
  /// A line of its own, from us.
  void note(const std::string& text);

  /// Lines keep their numbers when the first ones go. The last one may still grow.
  std::uint64_t first() const { return first_; }
  std::uint64_t end() const { return first_ + lines_.size() + (unfinished_.empty() ? 0 : 1); }
  /// From first() to before end().
  std::string at(std::uint64_t number) const;

 private:
  void add(std::string line);
  void end_line();

  std::deque<std::string> lines_;
  std::uint64_t first_ = 0;
  std::size_t bytes_ = 0;
  std::string unfinished_;  // as it came
};

}  // namespace duet::app::top
