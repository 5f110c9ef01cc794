#include "app/cli/manual_page.h"
#include "app/commands/commands.h"
#include "app/methods/method_page.h"

namespace duet::app {

int run_print(const CommandLine& line) {
  return print_text(line.arguments.front() == "manual" ? manual_page() : method_page());
}

}  // namespace duet::app
