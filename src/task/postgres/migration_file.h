#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::task::postgres {

/// A file of `schema/`: `0001_tables.sql` belongs to version 1. Several files of one version are run in the order of
/// their names. `@schema@` in the text stands for the schema's name.
///
/// A line that begins with `--@` cuts a text into steps. `--@ transaction` begins one that is run in a transaction of
/// its own, as what stands before any such line is. `--@ alone` begins one that is a single statement outside of any
/// (CREATE INDEX CONCURRENTLY). `--@ finish` begins what `migrate --finish` runs: dropping what only earlier releases
/// used. A step that locks a table locks no other one, since it holds the first while it waits for the second.
struct MigrationFile {
  int version;
  std::string_view name;
  std::string_view text;
};

/// Those that the program was built with, in order.
std::span<const MigrationFile> migration_files();

struct MigrationStep {
  enum class Kind { transaction, alone, finish };
  int version = 0;
  int number = 0;  ///< from 1 within its version
  Kind kind = Kind::transaction;
  std::string text;  ///< with the schema's name in it
};

/// All steps in the order in which they are run. Steps without a statement are left out.
std::vector<MigrationStep> migration_steps(std::span<const MigrationFile> files, std::string_view schema);

/// The name of the index that `CREATE [UNIQUE] INDEX CONCURRENTLY [IF NOT EXISTS] NAME` makes, without a schema; empty:
/// the statement is another one.
std::string index_made_by(std::string_view statement);

/// A text as a literal of SQL. It has no zero byte.
std::string sql_literal(std::string_view text);

}  // namespace duet::task::postgres
