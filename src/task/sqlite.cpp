#include "task/sqlite.h"

namespace duet::task {
namespace {

void check(sqlite3* database, int code) {
  if (code == SQLITE_OK) return;
  throw SqliteError(sqlite3_extended_errcode(database), sqlite3_errmsg(database));
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  check(database, sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                     &statement, nullptr));
  handle_.reset(statement);
}

Statement& Statement::bind(int at, std::int64_t value) { return bound(sqlite3_bind_int64(handle_.get(), at, value)); }

Statement& Statement::bind(int at, std::string_view text) {
  // A null pointer would bind NULL.
  const char* begin = text.empty() ? "" : text.data();
  return bound(sqlite3_bind_text64(handle_.get(), at, begin, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

Statement& Statement::bind_bytes(int at, std::string_view bytes) {
  const char* begin = bytes.empty() ? "" : bytes.data();
  return bound(sqlite3_bind_blob64(handle_.get(), at, begin, bytes.size(), SQLITE_STATIC));
}

// One that is given up half-way leaves nothing for the next time.
void Statement::give_up() {
  sqlite3* const database = sqlite3_db_handle(handle_.get());
  const SqliteError error(sqlite3_extended_errcode(database), sqlite3_errmsg(database));
  sqlite3_clear_bindings(handle_.get());
  throw error;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* database = sqlite3_db_handle(handle_.get());
  const SqliteError error(sqlite3_extended_errcode(database), sqlite3_errmsg(database));
  reset();
  throw error;
}

void Statement::run() {
  step();
  reset();
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

std::string_view Statement::text(int at) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), at));
  const int size = sqlite3_column_bytes(handle_.get(), at);
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, static_cast<std::size_t>(size));
}

std::optional<std::int64_t> Statement::optional_number(int at) const {
  return is_null(at) ? std::nullopt : std::optional(number(at));
}

Database::Database(const std::string& path, int flags, const char* vfs) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_EXRESCODE, vfs);
  handle_.reset(database);
  if (database == nullptr) throw SqliteError(code, sqlite3_errstr(code));
  check(database, code);
}

void Database::run(const char* sql) const {
  check(handle_.get(), sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr));
}

std::int64_t Database::number(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.number(0) : 0;
}

std::string Database::text(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? std::string(statement.text(0)) : std::string();
}

void Database::set_patience(std::chrono::milliseconds time) const {
  check(handle_.get(), sqlite3_busy_timeout(handle_.get(), static_cast<int>(time.count())));
}

void Database::set_option(int option, int value) const {
  check(handle_.get(), sqlite3_db_config(handle_.get(), option, value, nullptr));
}

}  // namespace duet::task
