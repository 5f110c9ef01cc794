#include "app/methods/cluster_methods.h"

#include <boost/json/object.hpp>

#include "app/doors/roles.h"
#include "app/methods/ordered_methods.h"

namespace duet::app {

void add_cluster_methods(peer::Methods& methods, task::postgres::PostgresQueue& queue) {
  methods
      .add("cluster.status",
           "Tells of a queue that machines share: its workers, what waits and for whom, and how its database is",
           [&queue](const Nothing& /*params*/, const peer::Request& /*request*/,
                    peer::Reply<boost::json::object> reply) {
             queue.cluster_status(
                 [kept = shared(std::move(reply))](const tl::expected<boost::json::object, rpc::Error>& status) {
                   status ? kept->ok(*status) : kept->fail(status.error());
                 });
           })
      .needs(role::observe)
      .read_only();
}

}  // namespace duet::app
