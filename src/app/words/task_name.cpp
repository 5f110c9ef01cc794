#include "app/words/task_name.h"

#include <algorithm>

namespace duet::app {

std::string task_name(std::string_view word) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_number = !word.empty() && word.front() != '0' && std::ranges::all_of(word, is_digit);
  return (is_number ? "task-" : "") + std::string(word);
}

}  // namespace duet::app
