#pragma once

#include "task/sqlite.h"

namespace duet::task {

/// Where the database of a store is: a folder on disk (StoreFolder), or the memory of a simulation.
class StorePlace {
 public:
  StorePlace() = default;
  StorePlace(const StorePlace&) = delete;
  StorePlace& operator=(const StorePlace&) = delete;
  virtual ~StorePlace() = default;

  /// The connection that writes: with today's tables, a write-ahead log that is empty, and a sync for each commit.
  /// Throws StoreError.
  virtual Database open_writer() = 0;
  /// One that only reads; after open_writer(). Throws SqliteError.
  virtual Database open_reader() = 0;
  /// False: the files were removed or replaced, and what is written is lost. Any thread may ask.
  virtual bool holds() const = 0;
};

}  // namespace duet::task
