#pragma once

#include "duet/peer/methods.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Handlers that block, sleep and fail, for the tests of the daemon's end, and those that the examples of JSON-RPC 2.0
/// call. Only in builds with DUET_TEST_METHODS, which is never set for a release; unlisted.
///
///     test.block          never returns: the loop stands still
///     test.block_late     never answers
///     test.sleep {ms}     returns after so long: the loop stands still meanwhile
///     test.sleep_late {ms} answers after so long
///     test.await {file}   returns when there is such a file: the loop stands still meanwhile
///     test.await_late {file} answers then
///     test.throw          throws what no handler should
///     subtract, sum, get_data, update, notify_hello, notify_sum    as section 7 of the specification has them
void add_test_methods(peer::Methods& methods, transport::Loop& loop);

}  // namespace duet::app
