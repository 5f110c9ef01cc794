#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/connecting.h"
#include "task/postgres/resolve.h"

namespace duet::task::postgres {

/// Looks for a server that fits: the names are looked up on another thread, then one address after the other is tried,
/// once each. Addresses that did not answer at all the last time come last.
///
/// One search at a time; when this goes, it ends. A resolver that is slow or gives nothing is answered for by the
/// addresses of the last time.
class ServerSearch {
 public:
  struct Limits {
    base::Duration resolving = std::chrono::seconds(5);
    base::Duration longest_attempt = std::chrono::seconds(30);  ///< whatever `connect_timeout` says
  };
  struct Found {
    PgConnection connection;
    Candidate where;
  };
  using Done = std::function<void(tl::expected<Found, std::string>)>;

  ServerSearch(transport::Loop& loop, const StoreAddress& address, Limits limits);
  ServerSearch(transport::Loop& loop, const StoreAddress& address) : ServerSearch(loop, address, Limits()) {}

  /// Ends a search that is under way, without an answer from it. The answer never comes within the call.
  void begin(Done done);
  void stop();
  /// The server that was found last is not the one that is wanted: the others come before it the next time.
  void try_others_first();
  /// The last search that ended found servers, and was turned away by them: it will not pass by itself.
  bool was_turned_away() const { return was_turned_away_; }

 private:
  void look_up();
  void looked_up(Resolved resolved);
  void try_all();
  void try_next();
  void tried(tl::expected<PgConnection, std::string> outcome);
  void finish(tl::expected<Found, std::string> outcome);
  void pass_by(const Candidate& candidate);
  base::Duration attempt_limit() const;

  transport::Loop& loop_;
  const StoreAddress& address_;
  Limits limits_;
  Done done_;
  bool resolving_ = false;  // the resolver is still at it, perhaps for a search that is over
  std::string trouble_;     // of this search
  std::vector<Candidate> candidates_;
  std::size_t next_ = 0;
  std::size_t turned_away_ = 0;  // by so many, in this search
  bool was_turned_away_ = false;
  std::vector<Candidate> silent_;  // or refused: they are tried behind the others
  std::unique_ptr<Connecting> connecting_;
  transport::Loop::Timer resolve_deadline_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
