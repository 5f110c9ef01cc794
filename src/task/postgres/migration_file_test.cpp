#include "task/postgres/migration_file.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

using Kind = MigrationStep::Kind;

TEST(MigrationFile, IsCutIntoSteps) {
  const MigrationFile files[] = {
      {1, "0001_a.sql", "CREATE TABLE @schema@.a ();\n"},
      {1, "0001_b.sql", "-- only a remark\n"},
      {1, "0001_c.sql", "CREATE TABLE @schema@.b ();"},
      {2, "0002.sql",
       "ALTER TABLE @schema@.a ADD c int;\n--@ alone\nCREATE INDEX CONCURRENTLY i ON @schema@.a (c);\n--@ transaction\n"
       "SELECT 1;\n--@ finish\nDROP FUNCTION @schema@.f_v1();\n"},
  };
  const auto steps = migration_steps(files, "duet");
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_EQ(steps[0].text, "CREATE TABLE duet.a ();\n");
  EXPECT_EQ(steps[1].text, "CREATE TABLE duet.b ();\n");
  EXPECT_EQ(steps[1].number, 2) << "what has no statement is no step";
  EXPECT_EQ(steps[2].version, 2);
  EXPECT_EQ(steps[2].number, 1);
  EXPECT_EQ(steps[3].kind, Kind::alone);
  EXPECT_EQ(steps[4].kind, Kind::transaction);
  EXPECT_EQ(steps[5].kind, Kind::finish);
  EXPECT_EQ(steps[5].number, 4);
  EXPECT_EQ(steps[5].text, "DROP FUNCTION duet.f_v1();\n");
}

TEST(MigrationFile, TheNameOfAnIndexIsFound) {
  EXPECT_EQ(index_made_by("CREATE INDEX CONCURRENTLY one ON t (a)"), "one");
  EXPECT_EQ(index_made_by("-- why\ncreate unique index concurrently\n  if not exists two ON t (a);"), "two");
  EXPECT_EQ(index_made_by("CREATE INDEX one ON t (a)"), "") << "that one is part of a transaction";
  EXPECT_EQ(index_made_by("CREATE INDEX CONCURRENTLY ON t (a)"), "");
  EXPECT_EQ(index_made_by("VACUUM t"), "");
}

TEST(MigrationFile, ALiteralIsWhatItWas) {
  EXPECT_EQ(sql_literal("site"), "'site'");
  EXPECT_EQ(sql_literal("o'neill"), "'o''neill'");
  EXPECT_EQ(sql_literal("a\\b'"), "E'a\\\\b'''");
}

TEST(MigrationFile, TheProgramsOwnAreInOrderAndBeginWithOne) {
  int version = 0;
  for (const MigrationFile& file : migration_files()) {
    EXPECT_TRUE(file.version == version || file.version == version + 1) << file.name;
    version = file.version;
  }
  EXPECT_GE(version, 1);
}

}  // namespace
}  // namespace duet::task::postgres
