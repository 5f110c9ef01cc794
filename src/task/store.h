#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/committer.h"
#include "task/sqlite.h"
#include "task/store_folder.h"
#include "task/store_place.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::task {

/// Tasks, events and what else has to outlive the daemon, in an SQLite database that is synced with every commit.
///
/// What is read is what is committed. All that is written in one turn of the loop is one transaction: it is kept
/// together or not at all, and the events that tell of it are published after it. For the loop's thread only.
class Store {
 public:
  using Health = Committer::Health;
  using Tell = std::function<void(const Health&)>;

  static constexpr std::size_t most_waiting_bytes = std::size_t{64} << 20;

  /// `tell` hears when its health changes. Throws StoreError, or std::system_error.
  Store(transport::Loop& loop, std::unique_ptr<StorePlace> place, Tell tell = {}, Committer::Options options = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// Waits until what was changed is on disk, if it can be written.
  ~Store();

  /// Calls `use` with the reader and returns what that does, or why the store cannot be read.
  template <typename Use>
  auto read(Use use) -> tl::expected<std::invoke_result_t<Use, StoreReader&>, rpc::Error> {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Use, StoreReader&>>) {
        use(*reader_);
        return {};
      } else {
        return use(*reader_);
      }
    } catch (const std::exception& error) {  // what is read may be damaged
      return tl::unexpected(unreadable(error));
    }
  }

  void write(Change change) { committer_->add(std::move(change)); }
  /// Who is told of the events of each commit, in order.
  void publish_to(std::function<void(std::vector<Event>)> publisher) { publisher_ = std::move(publisher); }

  /// Calls when all that was changed before is on disk, or refused.
  void after_changes(std::function<void()> call);

  /// False: so much waits to be written that no new task should be taken.
  bool has_room() const { return committer_->waiting_bytes() < most_waiting_bytes; }
  /// Calls once when nothing waits to be written any more, or cannot be.
  void when_idle(std::function<void()> call) { committer_->when_idle(std::move(call)); }
  const Health& health() const { return committer_->health(); }
  bool is_healthy() const { return health().problem.empty(); }
  /// What a refused change is answered with.
  rpc::Error refusal() const;
  /// Whether its files are where they were. A commit looks by itself; this is for whoever hears of it before.
  bool is_in_place() const { return place_->holds(); }

 private:
  static rpc::Error unreadable(const std::exception& error);

  std::unique_ptr<StorePlace> place_;
  std::function<void(std::vector<Event>)> publisher_;
  std::optional<Database> reading_;
  std::optional<StoreReader> reader_;
  std::unique_ptr<Committer> committer_;
};

}  // namespace duet::task
