#include "app/methods/describing_methods.h"

#include <functional>
#include <string>
#include <utility>

#include "app/words/program_name.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using peer::Answer;
using peer::Request;

// Answers with the same text every time. It lives in the table, so it need not be copied.
peer::Handler constant(std::string text) {
  return [text = std::move(text)](const Request&) { return Answer::view(text); };
}

// The same for a description of the table, which is complete only when it is asked for.
peer::Handler described(std::function<boost::json::value()> describe) {
  return [describe = std::move(describe), text = std::string()](const Request&) mutable {
    if (text.empty()) text = rpc::to_text(describe());
    return Answer::view(text);
  };
}

peer::Method plain(std::string name, std::string summary, std::string returns, peer::Handler handler) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .params = {},
          .returns = std::move(returns),
          .handler = std::move(handler),
          .late_handler = {}};
}

}  // namespace

void add_describing_methods(peer::Methods& methods, bool list_discovery) {
  methods.add(plain("listMethods", "Lists the methods, with a description of each", "array",
                    described([&methods] { return methods.list(); })));
  methods.add(plain("describeMethods", "Lists the methods, with what each takes and returns", "array",
                    described([&methods] { return methods.describe(); })));
  methods.add(plain("version", "Tells the server's version", "object",
                    constant(R"({"version":)" + rpc::quoted(kVersion) + "}")));
  peer::Method discover = plain("rpc.discover", "Describes the methods as an OpenRPC document", "object",
                                described([&methods] { return methods.open_rpc(program_name, kVersion); }));
  discover.listed = list_discovery;
  methods.add(std::move(discover));
}

}  // namespace duet::app
