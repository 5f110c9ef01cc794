#include "duet/version.h"

#include <string>

#include "app/commands/commands.h"

namespace duet::app {

int run_version() { return print_text(std::string(kVersion) + "\n"); }

}  // namespace duet::app
