#include "app/view/text_style.h"

#include <unistd.h>

#include <cstdlib>

namespace duet::app {

bool colour_wanted(int fd, bool no_color) {
  if (no_color) return false;
  const char* const never = std::getenv("NO_COLOR");
  if (never != nullptr && *never != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return isatty(fd) == 1;
}

}  // namespace duet::app
