#include "app/cli/shell_completion.h"
#include "app/commands/commands.h"

namespace duet::app {

int run_completion(const CommandLine& line) {
  return print_text(completion_script(line.arguments.front(), line.program));
}

}  // namespace duet::app
