#include "task/store_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <utility>

#include "process/process_tree.h"
#include "task/old_events.h"
#include "task/store_tables.h"

namespace duet::task {
namespace {

constexpr char unfinished_file[] = "tasks.db.new";
constexpr std::int64_t most_checked_pages = 65536;       // 256 MiB; of a larger store only the table of tasks is walked
constexpr std::size_t log_bytes = std::size_t{8} << 20;  // a little more than Committer lets it grow to
constexpr std::uint64_t ample_bytes = std::uint64_t{256} << 20;

void set_up(const Database& database) {
  database.run(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;"
      "PRAGMA busy_timeout=2000; PRAGMA journal_size_limit=33554432;");
}

// A connection that closes may change the file, also one that found it damaged.
void leave_alone_on_close(const Database& database, bool on) {
  database.set_option(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 1 : 0);
}

void check_content(const Database& database) {
  const bool small = database.number("PRAGMA page_count") <= most_checked_pages;
  const std::string found = database.text(small ? "PRAGMA quick_check(1)" : "PRAGMA quick_check(task)");
  if (found == "ok") return;
  const std::string first_fault = found.substr(found.starts_with("***") ? found.find('\n') + 1 : 0);
  throw StoreError(std::string(store_file) + " is damaged: " + first_fault.substr(0, first_fault.find('\n')));
}

void check_version(const Database& database) {
  const std::int64_t version = database.number("PRAGMA user_version");
  if (version <= static_cast<std::int64_t>(store_version)) return;
  throw StoreError("the store has version " + std::to_string(version) + ", this program knows up to " +
                   std::to_string(store_version) + ": a newer duet-rpc made it");
}

std::string cannot_be_used(const SqliteError& error) {
  return std::string(store_file) + " cannot be used: " + error.what();
}

// SQLite says of a file that cannot be made only that it cannot be opened.
bool is_for_want_of_room(const SqliteError& error, int folder) {
  if ((error.code() & 0xFF) == SQLITE_FULL || error.code() == SQLITE_IOERR_SHMSIZE) return true;
  struct statvfs room {};
  const bool may_be = (error.code() & 0xFF) == SQLITE_CANTOPEN && fstatvfs(folder, &room) == 0;
  return may_be && room.f_files > 0 && room.f_favail == 0;
}

std::string path_in(int folder, const char* file) { return "/proc/self/fd/" + std::to_string(folder) + '/' + file; }

// Its content is as it was, also when it is closed again.
Database open_checked(int folder, const StoreVfs& vfs) {
  Database database(path_in(folder, store_file), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs.name());
  leave_alone_on_close(database, true);
  check_content(database);
  check_version(database);
  return database;
}

void remove_unfinished(int folder) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    unlinkat(folder, (std::string(unfinished_file) + suffix).c_str(), 0);
  }
}

// Which boot of the machine has used the store, so that find_damage() knows what the index beside the log is worth.
void note_boot(const Database& database) {
  const std::string boot = process::boot_id();
  database.prepare("INSERT OR REPLACE INTO remembered(name, value) VALUES('boot', ?)").bind(1, boot).run();
}

}  // namespace

std::optional<std::string> examine_store(int folder) {
  if (std::optional<std::string> damage = find_damage(folder)) return damage;
  try {
    const StoreVfs vfs;
    open_checked(folder, vfs);
    return std::nullopt;
  } catch (const StoreError& error) {
    return error.what();
  } catch (const SqliteError& error) {
    return cannot_be_used(error);
  }
}

std::int64_t count_unfinished(int folder) {
  if (find_store(folder) != StoreTrace::file || find_damage(folder)) return 0;
  try {
    const StoreVfs vfs;
    return open_checked(folder, vfs).number("SELECT count(*) FROM task WHERE state < 2");
  } catch (const std::runtime_error&) {  // examine_store() says what is wrong with it
    return 0;
  }
}

std::string unfinished_text(std::int64_t count) {
  return "tasks.db has " + std::to_string(count) + (count == 1 ? " task that has" : " tasks that have") +
         " not ended: start once without the setting `store`, and let them end or cancel them";
}

StoreFolder::StoreFolder(int folder, Options options)
    : folder_(base::duplicate(folder)), options_(std::move(options)), vfs_(options_.fault) {}

Database StoreFolder::open_writer() {
  switch (find_store(folder_.get())) {
    case StoreTrace::remains:
      throw StoreError(std::string(store_file) + " is missing, but what belongs to it (" + store_log_file + ", " +
                       output_folder + "/) is there; put it back, or remove these too to begin anew");
    case StoreTrace::none:
      create();
      break;
    case StoreTrace::file:
      break;
  }
  if (const std::optional<std::string> damage = find_damage(folder_.get())) throw StoreError(*damage);
  try {
    Database database = open_checked(folder_.get(), vfs_);
    migrate(database, [&] { take_over_events(database, folder_.get()); });
    set_up(database);
    note_boot(database);
    // What the log holds may have been written by a process whose last sync failed: it is written and synced once more.
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    sync_log();
    remove_old_events(folder_.get());
    leave_alone_on_close(database, false);
    if (options_.lays_out_log) lay_out_log();
    identity_.emplace(folder_.get(), options_.folder_holds);
    return database;
  } catch (const SqliteError& error) {
    throw StoreError(cannot_be_used(error), is_for_want_of_room(error, folder_.get()));
  }
}

Database StoreFolder::open_reader() {
  Database database(path_in(folder_.get(), store_file), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs_.name());
  database.run("PRAGMA query_only=ON; PRAGMA temp_store=MEMORY; PRAGMA busy_timeout=1000;");
  return database;
}

// A log that comes back after a power cut, without what a failed sync has dropped, would hide what is newer in the main
// file.
void StoreFolder::sync_log() const {
  const base::Fd log(openat(folder_.get(), store_log_file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (log) base::check_call(fsync(log.get()), "fsync of tasks.db-wal");
}

void StoreFolder::lay_out_log() const {
  struct statvfs room {};
  if (fstatvfs(folder_.get(), &room) != 0 || room.f_bavail * room.f_frsize < ample_bytes) return;
  const base::Fd file(openat(folder_.get(), store_log_file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  // Somebody who reads the store meanwhile keeps the log from being emptied, and it is needed as it is.
  if (!file || fstat(file.get(), &status) != 0 || status.st_size != 0) return;
  const std::string zeros(std::size_t{1} << 20, '\0');
  for (std::size_t at = 0; at < log_bytes; at += zeros.size()) {
    if (pwrite(file.get(), zeros.data(), zeros.size(), static_cast<off_t>(at)) < 0) return;
  }
}

// It gets its name only when it is whole, so that a file with that name which is not whole is always damage.
void StoreFolder::create() const {
  remove_unfinished(folder_.get());
  // What an earlier store may have left is empty, or only a cache.
  for (const char* name : {store_log_file, store_index_file}) unlinkat(folder_.get(), name, 0);
  try {
    const base::Fd file(base::check_call(
        openat(folder_.get(), unfinished_file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600),
        "tasks.db.new"));
    {
      const Database database(path_in(folder_.get(), unfinished_file), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                              vfs_.name());
      database.run(("PRAGMA auto_vacuum=NONE; PRAGMA application_id=" + std::to_string(store_application_id)).c_str());
      set_up(database);
      migrate(database);
      database.run("PRAGMA wal_checkpoint(TRUNCATE)");  // closing does it, too, but tells of no failure
    }
    base::check_call(fsync(file.get()), "fsync of tasks.db.new");
  } catch (const SqliteError& error) {
    const bool no_room = is_for_want_of_room(error, folder_.get());
    remove_unfinished(folder_.get());
    throw StoreError(std::string("a store cannot be made: ") + error.what(), no_room);
  }
  base::check_call(renameat(folder_.get(), unfinished_file, folder_.get(), store_file), "rename of tasks.db.new");
  base::check_call(fsync(folder_.get()), "fsync of the store's folder");
}

}  // namespace duet::task
