#pragma once

#include "duet/peer/methods.h"
#include "task/postgres/postgres_queue.h"

namespace duet::app {

/// `cluster.status`, of a daemon whose queue is shared.
void add_cluster_methods(peer::Methods& methods, task::postgres::PostgresQueue& queue);

}  // namespace duet::app
