#include "task/committer.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "duet/base/all_calls.h"

namespace duet::task {
namespace {

constexpr std::chrono::seconds retry_after{1};
constexpr std::chrono::milliseconds lock_patience{2000};  // with another program, on the thread that commits
constexpr std::chrono::milliseconds quiet{50};            // without changes: time to tidy up
constexpr int much_log = 1000;                            // pages: worth moving when nobody waits
constexpr int too_much_log = 2000;                        // pages: moved even so
constexpr std::size_t most_reserved = 1024;               // changes: as many as the last time may come again
constexpr int memory_of_times = 4;                        // a commit counts for one part of so many in the usual time
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

}  // namespace

Committer::Committer(transport::Loop& loop, Database database, std::function<bool()> holds, Reports reports,
                     Options options)
    : loop_(loop),
      holds_(std::move(holds)),
      reports_(std::move(reports)),
      options_(options),
      database_(std::move(database)),
      writer_(database_),
      begin_(database_.prepare("BEGIN IMMEDIATE")),
      commit_(database_.prepare("COMMIT")) {
  database_.set_patience(lock_patience);
  sqlite3_wal_hook(
      database_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
}

Committer::~Committer() {
  thread_.reset();
  if (!queue_.empty() || !facts_.empty()) commit(std::exchange(queue_, {}));
}

void Committer::add(Change change) {
  ++waiting_;
  waiting_bytes_ += change.bytes;
  is_urgent_ |= change.kind != Change::Kind::patient_fact;
  queue_.push_back(std::move(change));
  look_soon();
}

void Committer::look_soon() {
  if (!look_) look_ = loop_.deferred([this] { look(); });
}

void Committer::look_at(base::TimePoint time) {
  timer_ = loop_.at(time, [this] { look(); });
}

void Committer::look() {
  if (busy_) return;  // finish() looks again
  const base::TimePoint now = loop_.now();
  const bool retries = !health_.problem.empty() && !health_.lost;
  const bool patience_is_over = now >= last_commit_ + options_.patience;
  const bool is_time = is_urgent_ || (!queue_.empty() && patience_is_over) ||
                       (retries && now >= last_commit_ + base::Duration(retry_after));
  timer_.cancel();
  if (log_pages_ >= too_much_log) return start([this] { return tidy(); }, false);
  if (is_time) {
    const bool is_small = usual_time_ < options_.quick_commit && waiting_bytes_ <= options_.few_bytes;
    const bool may_be_quick = std::exchange(is_urgent_, false) && is_small && health_.problem.empty();
    // Functions can be copied; changes need not be.
    const auto changes = std::make_shared<Changes>(std::exchange(queue_, {}));
    queue_.reserve(std::min(changes->size(), most_reserved));
    const bool is_quick = may_be_quick && begin_at_once();
    return start([this, changes] { return commit(std::move(*changes)); }, is_quick);
  }
  if (!queue_.empty()) return look_at(last_commit_ + options_.patience);
  if (retries) return look_at(last_commit_ + base::Duration(retry_after));
  if (log_pages_ < much_log) return;
  if (now >= last_commit_ + base::Duration(quiet)) return start([this] { return tidy(); }, false);
  look_at(last_commit_ + base::Duration(quiet));
}

// False: another program has the lock, or something else is wrong; the loop is not to wait for that.
bool Committer::begin_at_once() {
  try {
    database_.set_patience(std::chrono::milliseconds(0));
    begin_.run();
  } catch (const SqliteError&) {  // NOLINT(bugprone-empty-catch): who waits for it meets it again
  }
  database_.set_patience(lock_patience);
  return database_.in_transaction();
}

void Committer::start(std::function<Batch()> work, bool is_quick) {
  if (is_quick || !options_.may_use_thread || !has_thread()) return finish(work());
  busy_ = true;
  auto done = lifetime_.bind([this](const Batch& batch) {
    busy_ = false;
    finish(batch);
  });
  thread_->give([this, work = std::move(work), done = std::move(done)]() mutable {
    loop_.post([done = std::move(done), batch = work()]() mutable { done(batch); });
  });
}

// Without memory for one the loop has to do.
bool Committer::has_thread() {
  try {
    if (!thread_) thread_.emplace();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void Committer::finish(const Batch& batch) {
  last_commit_ = loop_.now();
  usual_time_ += (batch.waited - usual_time_) / memory_of_times;
  const bool health_changed = batch.health != health_;
  health_ = batch.health;
  base::AllCalls calls;
  for (const Change& change : batch.done) {
    --waiting_;
    waiting_bytes_ -= change.bytes;
    if (change.done) calls.make([&] { change.done(batch.kept); });
  }
  if (!batch.events.empty() && reports_.events) calls.make([&] { reports_.events(batch.events); });
  if (health_changed && reports_.health) calls.make([&] { reports_.health(batch.health); });
  calls.make([&] { tell_if_idle(); });
  look_soon();
  calls.check();
}

void Committer::when_idle(std::function<void()> call) {
  when_idle_.push_back(std::move(call));
  loop_.defer(lifetime_.bind([this] { tell_if_idle(); }));
}

void Committer::tell_if_idle() {
  const bool only_facts_are_left = !health_.problem.empty() && !busy_ && queue_.empty();
  if (waiting_ > 0 && !only_facts_are_left) return;
  base::call_all(std::exchange(when_idle_, {}));
}

Committer::Batch Committer::commit(Changes changes) {
  waited_ = {};
  Changes all = std::exchange(facts_, {});
  if (all.empty()) {
    all = std::move(changes);
  } else {
    std::move(changes.begin(), changes.end(), std::back_inserter(all));
  }
  Batch batch;
  try {
    write(all);
    trouble_ = {};
    batch.kept = true;
    batch.events = writer_.take_told();
  } catch (const SqliteError& error) {
    take_failure(error.code(), error.what());
  } catch (const std::exception& error) {  // there is no memory, say
    take_failure(SQLITE_NOMEM, error.what());
  }
  if (batch.kept) {
    batch.done = std::move(all);
  } else {
    for (Change& change : all) {
      (change.kind == Change::Kind::request ? batch.done : facts_).push_back(std::move(change));
    }
  }
  batch.health = trouble_;
  batch.waited = waited_;
  return batch;
}

void Committer::write(const Changes& changes) {
  if (trouble_.lost) throw SqliteError(file_was_lost, {});
  if (uncertain_) {
    verify();
  } else if (!trouble_.problem.empty()) {
    write_marker();  // to see whether it works again: the changes may be such that write nothing
  }
  if (!changes.empty()) {
    if (!database_.in_transaction()) wait_for([this] { begin_.run(); });
    for (const Change& change : changes) change.apply(writer_);
    wait_for([this] { commit_.run(); });
  }
  // A commit into files that nobody will find again is none.
  if (!holds_()) throw SqliteError(file_was_lost, {});
}

// For the disk, or for another program's lock.
void Committer::wait_for(const std::function<void()>& work) {
  const base::TimePoint begun = loop_.clock().now();
  base::AllCalls calls;
  calls.make(work);
  waited_ += loop_.clock().now() - begun;
  calls.check();
}

void Committer::take_failure(int code, const std::string& text) {
  if (database_.in_transaction()) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  writer_.take_back_told();
  trouble_ = {problem_of(code, text), code == file_was_lost};
  if (trouble_.lost) return;
  uncertain_ |= (code & 0xFF) == SQLITE_IOERR;
  if ((code & 0xFF) == SQLITE_BUSY) return;  // a lock is met at the beginning, before anything is written
  try {
    // The refused changes may stand in the log, whole, behind its last valid frame, and whoever opens it next would
    // take them for committed. This goes over them.
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
  begin_.run();
  writer_.remember("marker", std::to_string(++markers_));
  commit_.run();
}

void Committer::move_log_to_main(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw SqliteError(sqlite3_extended_errcode(database_.handle()), sqlite3_errmsg(database_.handle()));
  }
}

Committer::Batch Committer::tidy() {
  log_pages_ = 0;  // whatever comes of it: the next commit tells how much there is
  Batch batch{.waited = usual_time_};
  try {
    move_log_to_main(SQLITE_CHECKPOINT_PASSIVE);
  } catch (const SqliteError& error) {
    // What is committed stays in the log and is safe there.
    const bool is_trouble = !trouble_.lost && (error.code() & 0xFF) != SQLITE_BUSY;
    if (is_trouble) trouble_ = {problem_of(error.code(), error.what()), false};
  }
  batch.health = trouble_;
  return batch;
}

}  // namespace duet::task
