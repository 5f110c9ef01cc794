#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "app/doors/mcp_source.h"
#include "duet/rpc/json.h"

namespace duet::app::mcp {

/// Whoever asks a door: a process at the other end of stdio for as long as it runs, or one message that came by HTTP.
struct Client {
  /// None: it can be told nothing but answers.
  std::function<void(std::string_view method, const rpc::Json& params)> notify = {};
  /// Of the legacy era: what `initialize` has agreed on, or what the head of the message says.
  std::optional<std::string_view> revision = {};
  std::optional<McpFields> fields = {};  ///< of a message by HTTP, which stands alone: nothing is remembered of it

  bool has_session() const { return !fields; }
  void tell(std::string_view method, const rpc::Json& params) const {
    if (notify) notify(method, params);
  }
};

}  // namespace duet::app::mcp
