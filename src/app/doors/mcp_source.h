#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "duet/peer/conversation.h"
#include "duet/peer/methods.h"
#include "duet/peer/protocol.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"

namespace duet::app {

/// What the head of a `POST /mcp` repeats of its body, for those on the way who do not read bodies.
struct McpFields {
  std::optional<std::string> version = {};  ///< MCP-Protocol-Version
  std::optional<std::string> method = {};   ///< Mcp-Method
  std::optional<std::string> name = {};     ///< Mcp-Name, as it came
  bool has_repeated = false;                ///< one of them is there twice
};

/// Who sends one message by `POST /mcp`, and how it is told of what happens before the answer.
struct McpCaller {
  std::uint64_t number = 0;  ///< as connections have them
  std::shared_ptr<const peer::Admission> admission = {};
  McpFields fields = {};
  /// It has begun to speak before the end: it is answered, and nothing is begun for it that lasts.
  bool is_late = false;
  /// None: it takes no stream, so that it can be told nothing but the answer.
  std::function<void(std::string_view method, const rpc::Json& params)> notify = {};
};

/// Where messages to `POST /mcp` are answered. For the loop's thread only.
class McpSource {
 public:
  struct Place {
    const peer::Methods& methods;
    peer::Protocol protocol;
  };
  /// Why the head does not go with this message, if that is a notification: of requests the methods tell.
  virtual std::optional<rpc::Error> fault_of_notification(const McpFields& fields, std::string_view message) const = 0;
  /// The methods are there until that number has ended.
  virtual Place begin(McpCaller caller) = 0;
  virtual void end(std::uint64_t number) = 0;
  /// Nobody comes with that admission any more.
  virtual void end_session(const peer::Admission& ended) = 0;
  /// Who listens gets his result, who waits for a task no answer. `for_good`: the daemon ends.
  virtual void end_all(bool for_good) = 0;

 protected:
  ~McpSource() = default;
};

}  // namespace duet::app
