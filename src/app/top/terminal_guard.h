#pragma once

#include <functional>
#include <string_view>

namespace duet::app::top {

/// How the one that draws on the terminal knows that the process that waits for it was killed.
struct Drawing {
  int parent = -1;  ///< readable when that process has ended
  /// For then: gives the terminal back, unless a shell has done so already, and ends this process.
  std::function<void()> abandon = {};
};

/// Calls `draw` in a child process and returns what it returns, or 128 and the number of the signal that ended it. The
/// terminal is given back as it was, whoever is killed, by whatever signal:
///
/// - the child: this process, which waits for it, restores the terminal and then ends itself, so that a shell finds it
///   in order;
/// - this process: the child notices, restores the terminal and ends;
/// - both at once (`kill -9` of a job, or of all processes of that name): a small third process, which is in another
///   process group and has another name, does nothing but wait for that.
///
/// When the child is suspended, so is this process, and both go on together. Signals that ask this process to end or to
/// stop are handed to the child. `leaving` is what makes the terminal show lines again. For a process with one thread.
int draw_under_guard(std::string_view leaving, const std::function<int(const Drawing&)>& draw);

/// The third process: this program, called with this argument alone.
inline constexpr std::string_view guard_argument = "--guard-terminal";
int run_terminal_guard();

}  // namespace duet::app::top
