#include "app/cli/manual_page.h"
#include "app/commands/commands.h"
#include "app/mcp/tool_table.h"
#include "app/methods/method_page.h"

namespace duet::app {

int run_print(const CommandLine& line) {
  const std::string& page = line.arguments.front();
  if (page == "tools") return print_text(mcp::tools_page());
  return print_text(page == "manual" ? manual_page() : method_page());
}

}  // namespace duet::app
