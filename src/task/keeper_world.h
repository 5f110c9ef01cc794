#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "task/contact.h"
#include "task/order.h"
#include "task/run.h"
#include "task/run_record.h"

// What the daemon's side of runs (Keepers, KeptRun) reaches the world through. SystemKeeperWorld does it with system
// calls; a simulator may do it in memory, with keepers that run KeeperCore. Calls return at once and throw nothing, but
// for those that list what is there: who took a folder that cannot be read for an empty one would start things twice.

namespace duet::task {

/// What prevented something: an errno, and a sentence for people, without paths.
struct Hindrance {
  int error = 0;
  std::string problem = {};
};

/// A record of a run, opened. It holds a share of the record's lock as RunRecord does: made or locked, until it is
/// dropped; an order that was given away holds a share of its own.
class KeptRecord {
 public:
  virtual ~KeptRecord() = default;

  /// False if somebody else has it.
  virtual bool lock() = 0;
  /// What is written; the outcome is without its result. The error is an errno.
  virtual tl::expected<RunRecord::State, int> read() = 0;
  /// What belongs to the outcome; empty if there is none. The error is an errno: ENODATA if it is not all there.
  virtual tl::expected<std::string, int> read_result() = 0;
  /// 0, or errno.
  virtual int write_gone() = 0;
};

/// The daemon's end of a line to one keeper. Dropped, it is closed, which the keeper hears of.
class KeeperLine {
 public:
  /// Called from the loop, never inside a call of the line. In each the line may be dropped.
  class Listener {
   public:
    virtual void on_message(const Message& message) = 0;
    /// Nobody is there any more. Messages that were sent before have been told.
    virtual void on_closed() = 0;

   protected:
    Listener() = default;
    Listener(const Listener&) = default;
    Listener& operator=(const Listener&) = default;
    ~Listener() = default;
  };

  virtual ~KeeperLine() = default;

  /// Where others can meet the same keeper.
  virtual const std::string& contact() const = 0;
  /// From now on; none: what comes waits. False if that is refused: then the line is of no use.
  virtual bool listen(Listener* listener) = 0;
  /// Gives the keeper an order with its record, whose lock goes along: whether the keeper takes it up or dies first
  /// shows in the record. EPIPE: nobody is there any more.
  virtual tl::expected<void, Hindrance> give(const Order& order, const KeptRecord& record) = 0;
  /// What cannot be sent is lost; that the line is broken is told to the listener.
  virtual void tell(const Message& message) = 0;
};

/// Ends processes until it is dropped.
class Pursuit {
 public:
  virtual ~Pursuit() = default;
};

/// Everything outside: keepers, the folder of the records, processes.
class KeeperWorld {
 public:
  KeeperWorld() = default;
  KeeperWorld(const KeeperWorld&) = delete;
  KeeperWorld& operator=(const KeeperWorld&) = delete;
  virtual ~KeeperWorld() = default;

  template <typename Thing>
  using Got = tl::expected<std::unique_ptr<Thing>, Hindrance>;

  /// A keeper without a run, old or new. It may turn out to be dead: then its line closes. If it cannot be forked, its
  /// order is answered with a report of an outcome `not_started`, with the errno as code.
  virtual Got<KeeperLine> take_keeper() = 0;
  /// Its run is over. It may be taken again, or is let go soon. `acknowledged`: a run of which it has still to hear
  /// that the store has the outcome.
  virtual void put_back(std::unique_ptr<KeeperLine> line, std::optional<RunId> acknowledged) = 0;
  /// The keeper that can be met there; none if nobody is there now.
  virtual std::unique_ptr<KeeperLine> meet(const std::string& contact) = 0;
  /// Nobody is there any more: its socket is removed.
  virtual void remove_contact(const std::string& contact) = 0;
  /// The same for all but these. Throws std::system_error.
  virtual void remove_contacts_except(const std::set<std::string>& contacts) = 0;

  /// A new record, locked; EEXIST if there is one.
  virtual Got<KeptRecord> make_record(RunId run, const std::string& contact) = 0;
  /// The one that is there, not locked; ENOENT if there is none.
  virtual Got<KeptRecord> open_record(RunId run) = 0;
  /// Unless the output needs it.
  virtual void remove_record(RunId run) = 0;
  /// With the record.
  virtual void remove_output(RunId run) = 0;
  /// Both throw std::system_error.
  virtual std::vector<RunId> recorded_runs() = 0;
  virtual std::vector<RunId> recorded_outputs() = 0;

  /// Ends what is left of a run whose keeper is dead: TERM, KILL after `grace`. Calls `done`, from the loop, when
  /// nothing is left.
  virtual std::unique_ptr<Pursuit> end_leftovers(const Fingerprint& fingerprint, std::chrono::milliseconds grace,
                                                 std::function<void()> done) = 0;
  /// Continues the keeper of that run if somebody has suspended it, or whoever has still to fork it.
  virtual void wake_keeper(const Fingerprint& fingerprint) = 0;
  /// 32 hexadecimal digits that nobody else has.
  virtual std::string random_mark() = 0;
};

}  // namespace duet::task
