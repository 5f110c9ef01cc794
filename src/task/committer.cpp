#include "task/committer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace duet::task {
namespace {

constexpr std::chrono::seconds retry_after{1};
constexpr std::chrono::milliseconds patience{4};  // of facts that nobody waits for
constexpr std::chrono::milliseconds quiet{50};    // without changes: time to tidy up
constexpr int much_log = 1000;                    // pages: worth moving when nobody waits
constexpr int too_much_log = 2000;                // pages: moved even so
constexpr int file_was_lost = SQLITE_READONLY_DBMOVED;

bool is_sync_failure(int code) { return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC; }

std::string problem_of(int code, const std::string& text) {
  if (code == file_was_lost) return "the store's files were removed or replaced";
  if (is_sync_failure(code)) return "a sync failed, so that what is on disk is uncertain; nothing is accepted";
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_BUSY:
      return "another program has locked the store";
    default:
      return text;
  }
}

// Signals are the loop's; a thread starts with what its maker blocks.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Committer::Committer(transport::Loop& loop, Database database, const StoreIdentity& identity,
                     std::function<void(const Health&)> tell)
    : loop_(loop), tell_(std::move(tell)), database_(std::move(database)), writer_(database_), identity_(identity) {
  sqlite3_wal_hook(
      database_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

Committer::~Committer() {
  *alive_ = false;
  hand_over();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Committer::add(Change change) {
  ++waiting_;
  waiting_bytes_ += change.bytes;
  if (arrived_.empty()) {
    loop_.defer([this, alive = alive_] {
      if (*alive) hand_over();
    });
  }
  arrived_.push_back(std::move(change));
}

void Committer::hand_over() {
  const bool in_haste =
      std::ranges::any_of(arrived_, [](const Change& change) { return change.kind != Change::Kind::patient_fact; });
  bool is_awaited = in_haste;
  {
    const std::lock_guard lock(mutex_);
    is_awaited |= queue_.empty();
    in_haste_ |= in_haste;
    std::move(arrived_.begin(), arrived_.end(), std::back_inserter(queue_));
  }
  arrived_.clear();
  if (is_awaited) changed_.notify_one();
}

void Committer::finish(const Changes& changes, bool kept, const Health& health) {
  if (health != health_) {
    health_ = health;
    if (tell_) tell_(health_);
  }
  for (const Change& change : changes) {
    --waiting_;
    waiting_bytes_ -= change.bytes;
    if (change.done) change.done(kept);
  }
  tell_if_settled();
}

void Committer::when_settled(std::function<void()> call) {
  when_settled_.push_back(std::move(call));
  loop_.defer([this, alive = alive_] {
    if (*alive) tell_if_settled();
  });
}

void Committer::tell_if_settled() {
  if (waiting_ > 0 && health_.problem.empty()) return;
  for (const std::function<void()>& call : std::exchange(when_settled_, {})) call();
}

void Committer::work() {
  while (true) {
    switch (wait_for_work()) {
      case Work::changes:
        commit();
        break;
      case Work::nothing:
        tidy();
        break;
      case Work::end:
        if (!facts_.empty()) commit();
        return;
    }
  }
}

Committer::Work Committer::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !queue_.empty() || stopping_; };
  const bool in_trouble = !trouble_.problem.empty() && !trouble_.lost;
  if (in_trouble) {
    if (!changed_.wait_for(lock, retry_after, ready)) return Work::changes;
  } else if (log_pages_ >= much_log) {
    if (!changed_.wait_for(lock, quiet, ready)) return Work::nothing;
  } else {
    changed_.wait(lock, ready);
  }
  if (queue_.empty()) return Work::end;
  changed_.wait_until(lock, last_commit_ + patience, [this] { return in_haste_ || stopping_; });
  return Work::changes;
}

void Committer::commit() {
  Changes changes = std::exchange(facts_, {});
  {
    const std::lock_guard lock(mutex_);
    std::move(queue_.begin(), queue_.end(), std::back_inserter(changes));
    queue_.clear();
    in_haste_ = false;
  }
  try {
    write(changes);
    trouble_ = {};
    report(std::move(changes), true);
  } catch (const SqliteError& error) {
    take_failure(error.code(), error.what());
    Changes requests;
    for (Change& change : changes) {
      (change.kind == Change::Kind::request ? requests : facts_).push_back(std::move(change));
    }
    report(std::move(requests), false);
  }
  last_commit_ = std::chrono::steady_clock::now();
  if (log_pages_ >= too_much_log) tidy();
}

void Committer::write(const Changes& changes) {
  if (trouble_.lost) throw SqliteError(file_was_lost, {});
  if (uncertain_) verify();
  if (changes.empty()) {
    write_marker();  // only to see whether it works again
  } else {
    database_.run("BEGIN IMMEDIATE");
    for (const Change& change : changes) change.apply(writer_);
    database_.run("COMMIT");
  }
  // A commit into files that nobody will find again is none.
  if (!identity_.holds()) throw SqliteError(file_was_lost, {});
}

void Committer::take_failure(int code, const std::string& text) {
  if (database_.in_transaction()) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  trouble_ = {problem_of(code, text), code == file_was_lost};
  if (!is_sync_failure(code)) return;
  uncertain_ = true;
  try {
    // The refused changes stand in the log, whole, behind its last valid frame, and whoever opens it next would take
    // them for committed. This goes over them.
    write_marker();
  } catch (const SqliteError&) {  // NOLINT(bugprone-empty-catch): verify() will try again
  }
}

// The failed sync may have dropped pages of the log that the kernel now calls clean. SQLite does not count what was
// behind that sync; the marker takes its place, and then everything is written once more, to the main file.
void Committer::verify() {
  write_marker();
  move_log_to_main(SQLITE_CHECKPOINT_TRUNCATE);
  uncertain_ = false;
}

void Committer::write_marker() {
  database_.run("BEGIN IMMEDIATE");
  writer_.remember("marker", std::to_string(++markers_));
  database_.run("COMMIT");
}

void Committer::report(Changes changes, bool kept) {
  // Functions that can be posted can be copied; changes need not be.
  auto shared = std::make_shared<Changes>(std::move(changes));
  loop_.post([this, alive = alive_, shared, kept, health = trouble_] {
    if (*alive) finish(*shared, kept, health);
  });
}

void Committer::move_log_to_main(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw SqliteError(sqlite3_extended_errcode(database_.handle()), sqlite3_errmsg(database_.handle()));
  }
}

void Committer::tidy() {
  log_pages_ = 0;  // whatever comes of it: the next commit tells how much there is
  try {
    move_log_to_main(SQLITE_CHECKPOINT_PASSIVE);
  } catch (const SqliteError& error) {
    // What is committed stays in the log and is safe there.
    if ((error.code() & 0xFF) == SQLITE_BUSY) return;
    trouble_ = {problem_of(error.code(), error.what()), false};
    report({}, false);
  }
}

}  // namespace duet::task
