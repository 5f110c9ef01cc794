#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/view/text_style.h"

namespace duet::app {

/// Puts the output of several tasks into lines that begin with the task's id, in a colour of its own.
///
/// A line is printed when it is whole, so that two tasks do not write into one; the last one also without its end, and
/// one that is too long in pieces. A handler of SIGINT may ask for what is left.
class LinePrefixer {
 public:
  using Print = std::function<void(std::string_view)>;

  static constexpr std::size_t longest_line = std::size_t{64} << 10;

  LinePrefixer(const std::vector<std::string>& ids, const TextStyle& style, Print print);

  void take(const std::string& id, std::string_view bytes);
  /// What has no line end yet will get none.
  void finish();
  /// Writes that to a descriptor, and keeps it. For a handler of SIGINT, at any time: signals of
  /// this thread are blocked while lines change.
  void write_unfinished(int file) const noexcept;

 private:
  struct Source {
    std::string id;
    std::string prefix;
    std::string line;
  };

  static std::string take_whole_lines(Source& source, std::string_view bytes);
  static void cut_line(Source& source, std::string& whole);

  std::vector<Source> sources_;
  Print print_;
};

}  // namespace duet::app
