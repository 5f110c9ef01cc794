#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "task/store.h"

namespace duet::task {

/// What has happened, in order: the latest events of the store, bounded in bytes, and the one who tells of new ones.
///
/// An event is in the transaction of the change that it tells of. Here it arrives after the commit, and is passed on to
/// the readers, one after the other. When there are too many, the oldest go, from the store too. The numbers belong to
/// an epoch, which is as old as the store. For the loop's thread only.
class Journal {
 public:
  struct Limits {
    std::size_t bytes = 8U * 1024 * 1024;   ///< of memory; some 20,000 events
    std::uint64_t removed_at_once = 1'000;  ///< events, from the store
  };
  using Reader = std::function<void(const Event&)>;

  /// Takes what the store publishes from now on. Throws rpc::Error if the store cannot be read.
  explicit Journal(Store& store) : Journal(store, Limits()) {}
  Journal(Store& store, Limits limits);
  /// One whose events are kept elsewhere: publish(), put_before() and begin_anew() are called by who reads them there.
  explicit Journal(Limits limits) : limits_(limits) {}
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  const std::string& epoch() const { return epoch_; }
  std::uint64_t oldest() const { return events_.empty() ? next_ : events_.front().seq; }
  std::uint64_t next() const { return next_; }
  /// From oldest() to before next().
  const Event& at(std::uint64_t seq) const { return events_.at(static_cast<std::size_t>(seq - oldest())); }

  /// What is kept elsewhere can be fetched; `reach_back` calls `done` when the events from `first` on are here, as far
  /// as they are kept, and all that have happened by now.
  using ReachBack = std::function<void(std::uint64_t first, std::function<void()> done)>;
  void fetch_with(ReachBack reach_back) { reach_back_ = std::move(reach_back); }
  /// Calls, now or later, when what is asked for is here as far as it is kept. Without a number: what happens by now.
  void prepare(std::optional<std::uint64_t> first, std::function<void()> done);
  /// Nothing is missing between the newest event here and what happens now.
  bool is_current() const { return is_current_; }

  /// Is told of every event from now on, after the readers that were there before.
  void add_reader(Reader reader) { readers_.push_back(std::move(reader)); }
  /// Events that were committed, which the next number begins with. The store passes them on by itself.
  void publish(std::vector<Event> events);
  /// More would be let go again by the next that is published.
  bool is_full() const { return bytes_ >= limits_.bytes; }
  /// Older events, which end where those that are here begin.
  void put_before(std::vector<Event> events);
  /// Numbers go on from `next`; what is here is forgotten. Another epoch: those of before mean nothing any more.
  void begin_anew(std::string epoch, std::uint64_t next);
  void set_current(bool is_current) { is_current_ = is_current; }

 private:
  void load();
  void make_room();

  Store* store_ = nullptr;  // none: they are kept elsewhere
  Limits limits_;
  ReachBack reach_back_;
  bool is_current_ = true;
  std::string epoch_;
  std::uint64_t next_ = 1;
  std::uint64_t trimmed_ = 0;  // events before this one are gone from the store, or about to go
  std::deque<Event> events_;
  std::size_t bytes_ = 0;
  std::vector<Reader> readers_;
};

}  // namespace duet::task
