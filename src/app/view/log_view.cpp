#include "app/view/log_view.h"

#include <algorithm>

#include "app/view/table.h"
#include "duet/base/log_line.h"
#include "duet/rpc/json_text.h"

namespace duet::app {
namespace {

// Takes the first word and the blanks behind it from the line.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return word;
}

}  // namespace

std::string log_line_as_json(std::string_view line) {
  std::string_view rest = line;
  const std::string_view time = take_word(rest);
  const std::string_view level = take_word(rest);
  const bool is_level = base::parse_level(level) || level == base::level_name(base::Level::trace);
  if (!parse_time(time) || !is_level) return R"({"message":)" + rpc::quoted(line) + '}';
  return R"({"time":)" + rpc::quoted(time) + R"(,"level":)" + rpc::quoted(level) + R"(,"message":)" +
         rpc::quoted(rest) + '}';
}

}  // namespace duet::app
