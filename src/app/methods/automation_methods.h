#pragma once

#include "automation/engine.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// `automation.status`, `.approve`, `.enable` and `.disable`. Switches are answered once they are kept, an approval
/// once its task is accepted. Tasks may ask for the status only.
void add_automation_methods(peer::Methods& methods, automation::Engine& engine);

}  // namespace duet::app
