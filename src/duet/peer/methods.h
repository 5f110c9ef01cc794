#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/json/value.hpp>

#include "duet/api.h"
#include "duet/peer/answer.h"
#include "duet/peer/reply.h"
#include "duet/rpc/params.h"

namespace duet::peer {

class Conversation;

/// One call as a handler sees it. Everything points into the message: copy what is needed later.
struct Request {
  std::string_view method;
  std::string_view id;  ///< raw JSON; empty for a notification
  const rpc::Params& params;
  Conversation& conversation;  ///< with whoever asks
};

/// Answers at once; throws rpc::Error to refuse.
using Handler = std::function<Answer(const Request&)>;
/// Answers now or later, through the Reply. Later requests of the same connection wait meanwhile, unless the method
/// says that they need not.
using LateHandler = std::function<void(const Request&, Reply)>;

/// Everything that is known about a method, in one place.
struct Method {
  std::string name;
  std::string summary = {};
  std::vector<rpc::Param> params = {};
  std::string returns = "object";  ///< a type of JSON, or `any`
  Handler handler = {};
  LateHandler late_handler = {};
  bool listed = true;         ///< in the descriptions
  bool checks_params = true;  ///< false: any params, as they come
  bool holds_later = true;    ///< false: only the answer is late, such as one that waits for the disk: later requests
                              ///< are handled meanwhile, and answered after it
};

/// The method table: what is dispatched and what is described are the same entries.
class DUET_API Methods {
 public:
  /// Throws std::invalid_argument when the name is taken, there is no handler, a parameter is there twice or a required
  /// one behind an optional one.
  void add(Method method);
  /// A method without a description of its params.
  void add(std::string name, Handler handler);

  const Method* find(std::string_view name) const;

  /// `[{"name", "description"}]`
  boost::json::value list() const;
  /// `[{"name", "params": ["level: string"], "returns"}]`; an optional one is `limit?: integer`.
  boost::json::value describe() const;
  /// An OpenRPC 1.x document.
  boost::json::value open_rpc(std::string_view title, std::string_view version) const;

 private:
  // Both ends of a name tell the methods of one program apart well enough, and cost little to read.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const;
  };

  std::unordered_map<std::string, Method, NameHash, std::equal_to<>> methods_;
  std::vector<std::string> order_;          // as they were added
  mutable const Method* recent_ = nullptr;  // clients tend to ask for the same thing again
};

}  // namespace duet::peer
