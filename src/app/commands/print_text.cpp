#include <unistd.h>

#include "app/commands/commands.h"

namespace duet::app {

int print_text(std::string_view text) {
  return base::check_call(base::write_all(STDOUT_FILENO, text) ? 0 : -1, "writing to stdout");
}

}  // namespace duet::app
