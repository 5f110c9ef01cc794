#include "app/methods/describing_methods.h"

#include <string>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>

#include "app/doors/roles.h"
#include "app/words/program_name.h"
#include "duet/rpc/json.h"
#include "duet/version.h"

namespace duet::app {
namespace {

struct Version {
  std::string version;
};
BOOST_DESCRIBE_STRUCT(Version, (), (version))

// Answers with the same text every time. It lives in the table, so it need not be copied. It is made when it is asked
// for first: the table is complete only then.
template <typename Shape, typename Make>
auto made_once(Make make) {
  return [make = std::move(make), text = std::string()]() mutable {
    if (text.empty()) text = rpc::Json(make()).text();
    return rpc::JsonOf<Shape>::view(text);
  };
}

}  // namespace

void add_describing_methods(peer::Methods& methods, bool list_discovery) {
  methods
      .add("listMethods", "Lists the methods, with a description of each",
           made_once<std::vector<peer::MethodSummary>>([&methods] { return methods.list(); }))
      .needs(role::observe);
  methods
      .add("describeMethods", "Lists the methods, with what each takes and returns",
           made_once<std::vector<peer::MethodSignature>>([&methods] { return methods.describe(); }))
      .needs(role::observe);
  methods.add("version", "Tells the server's version", made_once<Version>([] { return Version{kVersion}; }))
      .needs(role::observe);
  peer::AddedMethod discover =
      methods
          .add("rpc.discover", "Describes the methods as an OpenRPC document",
               made_once<boost::json::object>([&methods] { return methods.open_rpc(program_name, kVersion); }))
          .needs(role::observe);
  if (!list_discovery) discover.unlisted();
}

}  // namespace duet::app
