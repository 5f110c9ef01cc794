#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "process/tree_usage.h"
#include "task/output_marks.h"
#include "task/run.h"

namespace duet::simulate {

/// What a simulated task does, which its prompt and its attempt decide: so the model knows the truth by itself.
struct Play {
  struct Part {
    std::chrono::milliseconds life{0};
    bool ignores_term = false;
  };
  struct Line {
    std::chrono::milliseconds at{0};
    std::string text = {};
    task::Stream stream = task::Stream::out;
  };

  bool can_start = true;
  Part main = {};
  int code = 0;                   ///< with which the main process ends if nobody ends it
  std::vector<Part> others = {};  ///< that it starts, and does not wait for
  std::vector<Line> output = {};  ///< of the main process, in order
  process::Usage used = {};       ///< until the main process ends, whenever that is

  std::string whole_output() const;
};

/// `play N`. Any other text is a play, too.
std::string prompt_of(std::uint64_t number);
/// The same, but its main process never ends by itself.
std::string endless_prompt_of(std::uint64_t number);
/// The same, but it takes minutes.
std::string long_prompt_of(std::uint64_t number);
Play play_of(std::string_view prompt, std::uint32_t attempt);

}  // namespace duet::simulate
