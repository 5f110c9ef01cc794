#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "duet/peer/reply.h"
#include "duet/rpc/json.h"
#include "duet/rpc/params.h"

namespace duet::peer {

class Conversation;

/// One call as a handler sees it. Everything points into the message: copy what is needed later.
struct Request {
  std::string_view method;
  std::string_view id;         ///< raw JSON; empty for a notification
  const rpc::Json& params;     ///< as they came; empty if there are none
  Conversation& conversation;  ///< with whoever asks
};

/// Everything that is known about a method, in one place. Methods::add() makes it.
struct Method {
  std::string name;
  std::string summary = {};
  std::vector<rpc::Param> params = {};
  rpc::Type returns = rpc::Type::any;
  boost::json::object (*result_schema)() = nullptr;
  bool listed = true;         ///< in the descriptions
  bool pipelined = false;     ///< later requests are handled while the answer to this one is awaited
  std::string needs = "own";  ///< the least role that may call it, for a guard to compare
  bool read_only = false;     ///< it changes nothing

  /// One of the two: answers at once, or now or later through the reply. Both throw rpc::Error to refuse.
  std::function<rpc::Json(const Method&, const Request&)> handler = {};
  std::function<void(const Method&, const Request&, AnyReply)> late_handler = {};
};

}  // namespace duet::peer
