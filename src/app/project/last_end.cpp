#include "app/project/last_end.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace duet::app {
namespace {

std::string take_line(std::string_view& text) {
  std::string line(text.substr(0, text.find('\n')));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Perhaps of the project that this folder was copied from.
bool is_live_daemon(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  using namespace std::string_view_literals;
  return words.find("\0daemon\0start\0"sv) != std::string::npos;
}

}  // namespace

std::optional<LastEnd> read_last_end(const StateFolder& folder) {
  const std::optional<pid_t> pid = written_pid(folder);
  if (!pid) return std::nullopt;
  const std::string words = folder.read_small(last_words_name);
  const std::string mark = std::to_string(*pid) + ' ';
  std::string_view rest = words;
  if (!words.starts_with(mark)) {  // words of an earlier one, or none
    if (*pid != getpid() && is_live_daemon(*pid)) return std::nullopt;
    return LastEnd{.pid = *pid, .how = "was killed or the machine went down", .at = {}};
  }
  rest.remove_prefix(mark.size());
  std::string at = take_line(rest);
  return LastEnd{.pid = *pid, .how = take_line(rest), .at = std::move(at)};
}

std::string to_text(const LastEnd& end) {
  return "the last one, pid " + std::to_string(end.pid) + ", " + end.how + (end.at.empty() ? "" : " at " + end.at);
}

}  // namespace duet::app
