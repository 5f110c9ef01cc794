#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "task/postgres/line.h"
#include "task/postgres/migration_file.h"

namespace duet::task::postgres {

/// Makes the schema of a queue and brings it from one version to the next, while daemons work with it.
///
/// What is done is written down step by step in the table `migration`, in the transaction of the step itself. So two
/// may run at once, and one that was killed at any point is finished by another. A step that waits for a lock gives up
/// after 5 s, so that no daemon waits longer behind it, and is tried again. It blocks; for commands only.
class Migrator {
 public:
  /// What it needs of the outside.
  struct World {
    std::function<Answer(const std::string& sql)> run;  ///< one statement or several; the result is the last one's
    std::function<void(std::chrono::milliseconds)> pause;
    std::function<void(const std::string& line)> tell;  ///< what goes on, for people
  };
  /// What it did, or why it could not go on, for people. What was done stays; running it again does the rest.
  using Outcome = tl::expected<std::string, std::string>;

  Migrator(World world, std::string schema, std::span<const MigrationFile> files);

  /// The version that the files lead to.
  int newest() const { return steps_.empty() ? 0 : steps_.back().version; }
  /// The version of the schema; 0: there is none.
  tl::expected<int, std::string> present();

  Outcome init(const std::string& project);
  Outcome migrate();
  /// Refused with their names while a daemon lives that needs what it drops.
  Outcome finish();

  /// The same as texts for psql. The last two begin with the version that the schema has.
  std::string init_sql(const std::string& project) const;
  std::string migrate_sql(int present) const;
  std::string finish_sql(int present) const;

 private:
  using Done = tl::expected<void, std::string>;
  using Statements = std::vector<std::string>;

  Answer in_transaction(const Statements& statements);
  Done persist(const std::function<Answer()>& attempt, const std::string& what, bool with_rivals);
  Done apply(const MigrationStep& step);
  Done apply_alone(const MigrationStep& step);
  Answer index_attempt(const std::string& index, const std::string& statement);
  Answer finish_attempt(const MigrationStep& step);
  Done check_project(const std::string& project);
  tl::expected<bool, std::string> is_done(const MigrationStep& step);

  Statements first_statements(const std::string& project) const;
  Statements statements_of(const MigrationStep& step) const;
  Statements finish_statements(const MigrationStep& step) const;
  Statements version_statements(int version) const;
  std::string journal_statement() const;
  std::string owner() const { return schema_ + "_owner"; }
  std::string as_owner() const { return "SET LOCAL ROLE " + owner(); }
  std::string written_down(const MigrationStep& step) const;
  std::string older_workers(int version) const;

  World world_;
  std::string schema_;
  std::vector<MigrationStep> steps_;
};

}  // namespace duet::task::postgres
