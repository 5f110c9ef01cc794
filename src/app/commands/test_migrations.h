#pragma once

#include <span>
#include <string>
#include <vector>

#include "task/postgres/migration_file.h"

namespace duet::app {

/// The files of the schema. A program that was built for tests also takes those of the folder that
/// DUET_RPC_TEST_MIGRATIONS names, so that going from one version to the next can be tried before there is a next one.
class TestMigrations {
 public:
  TestMigrations();
  std::span<const task::postgres::MigrationFile> all() const { return files_; }

 private:
  std::vector<std::string> texts_;  // of the folder: a name, then its text
  std::vector<task::postgres::MigrationFile> files_;
};

}  // namespace duet::app
