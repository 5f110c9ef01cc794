#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace duet::task {

/// SQLite refused something. The text has no paths.
class SqliteError : public std::runtime_error {
 public:
  SqliteError(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }  ///< the extended one

 private:
  int code_;
};

/// A prepared statement. Values are bound from 1 and read from 0, as SQLite counts. Text that is bound must live until
/// the statement has been run or reset. Text is read as bytes.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::string_view text);
  Statement& bind(int at, const std::string& text) { return bind(at, std::string_view(text)); }
  Statement& bind(int at, std::string&& text) = delete;
  Statement& bind(int at, std::optional<std::string>&& text) = delete;
  Statement& bind_bytes(int at, std::string_view bytes);
  /// What is not bound is NULL.
  template <typename Value>
  Statement& bind(int at, const std::optional<Value>& value) {
    return value ? bind(at, *value) : *this;
  }

  /// False: no more rows. Throws SqliteError.
  bool step();
  /// For a statement without rows: does it, and makes it ready for the next time.
  void run();
  void reset();

  bool is_null(int at) const { return sqlite3_column_type(handle_.get(), at) == SQLITE_NULL; }
  std::int64_t number(int at) const { return sqlite3_column_int64(handle_.get(), at); }
  std::string_view text(int at) const;
  std::optional<std::int64_t> optional_number(int at) const;

 private:
  Statement& bound(int code) {
    if (code != SQLITE_OK) give_up();
    return *this;
  }
  [[noreturn]] void give_up();

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Resets a statement when it has been read, since a statement that is not reset keeps its snapshot of the database.
class Reading {
 public:
  explicit Reading(Statement& statement) : statement_(statement) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { statement_.reset(); }

 private:
  Statement& statement_;
};

/// A connection to a database. For one thread at a time.
class Database {
 public:
  Database(const std::string& path, int flags, const char* vfs);

  sqlite3* handle() const { return handle_.get(); }
  Statement prepare(std::string_view sql) const { return {handle_.get(), sql}; }
  void run(const char* sql) const;
  std::int64_t number(std::string_view sql) const;
  std::string text(std::string_view sql) const;
  void set_option(int option, int value) const;
  /// How long it waits for the lock of another connection.
  void set_patience(std::chrono::milliseconds time) const;
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace duet::task
