#pragma once

#include "task/sqlite.h"

namespace duet::task {

/// Version 0.1 kept its events in a file of their own, `events.log`. Takes them into the store's table, with their
/// numbers; inside a transaction. The epoch stays the same if the file is known to be complete: it was closed, or is of
/// this boot. What is behind a line that cannot be understood is left out. Throws SqliteError, and std::system_error if
/// the file cannot be read.
void take_over_events(const Database& database, int folder);

/// They are in the store, or there never were any.
void remove_old_events(int folder);

}  // namespace duet::task
