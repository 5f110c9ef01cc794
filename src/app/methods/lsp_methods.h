#pragma once

#include "bridge/bridge.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// `lsp.*`: what language servers are asked, by file or in their own words. A caller that cancels or goes away takes
/// back what it asked. Both must outlive the table.
void add_lsp_methods(peer::Methods& methods, bridge::Bridge& bridge);

}  // namespace duet::app
