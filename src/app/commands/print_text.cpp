#include <unistd.h>

#include <cerrno>

#include "app/commands/commands.h"

namespace duet::app {

int print_text(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    text.remove_prefix(static_cast<std::size_t>(base::check_call(static_cast<int>(count), "writing to stdout")));
  }
  return 0;
}

}  // namespace duet::app
