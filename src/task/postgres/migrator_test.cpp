#include "task/postgres/migrator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

/// The process was killed.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// As much of a server as a migration needs: transactions that are forgotten unless they are committed, the version,
/// the rows of steps, which texts were committed, and an index that may be left half-built.
class FakeServer {
 public:
  struct State {
    bool has_schema = false;
    std::string project;
    int version = 0;
    int oldest = 1;
    std::multiset<std::string> texts;  // that took effect
    std::set<std::string> rows;        // of the table `migration`
    std::optional<bool> index;         // valid or not
  };

  Migrator::World world() {
    return {.run = [this](const std::string& sql) { return run(sql); },
            .pause = [this](auto) { ++pauses; },
            .tell = [](const std::string&) {}};
  }

  Answer run(const std::string& sql) {
    if (kill_after && (*kill_after)-- == 0) {
      open_.reset();
      if (sql.find("INDEX CONCURRENTLY new_index") != std::string::npos) committed.index = false;  // half-way
      throw Killed();
    }
    ++statements;
    if (!faults.empty() && sql.find(faults.front().first) != std::string::npos) {
      const std::string code = faults.front().second;
      faults.erase(faults.begin());
      return tl::unexpected(Fault{Fault::Kind::refused, code, "no"});
    }
    return answer(sql);
  }

  State committed;
  std::vector<std::string> old_workers;
  std::optional<int> kill_after;                            // so many statements are still run
  std::vector<std::pair<std::string, std::string>> faults;  // a part of a statement, and its code
  int statements = 0;
  int pauses = 0;

 private:
  State& state() { return open_ ? *open_ : committed; }

  Answer answer(const std::string& sql) {
    const auto has = [&sql](const char* part) { return sql.find(part) != std::string::npos; };
    if (sql.starts_with("BEGIN")) return open_ = committed, Result();
    if (sql == "ROLLBACK") return open_.reset(), Result();
    if (sql == "COMMIT") return committed = *open_, open_.reset(), Result();
    if (has("FROM pg_catalog.pg_namespace")) return rows_if(state().has_schema);
    if (has("SELECT version FROM")) return Result({"version"}, {{std::to_string(state().version)}});
    if (has("SELECT project FROM")) return Result({"project"}, {{state().project}});
    if (has("SELECT name FROM") && !has("DO $$")) return workers();
    if (has("SELECT 1 FROM duet.migration")) return rows_if(state().rows.contains(row_in(sql)));
    if (has("indisvalid")) return index_state();
    return change(sql);
  }

  Answer change(const std::string& sql) {
    const auto has = [&sql](const char* part) { return sql.find(part) != std::string::npos; };
    if (has("INSERT INTO duet.migration")) {
      const bool is_new = state().rows.insert(row_in(sql)).second;
      if (!is_new && !has("ON CONFLICT")) return tl::unexpected(Fault{Fault::Kind::refused, "23505", "twice"});
    } else if (has("CREATE SCHEMA duet")) {
      state().has_schema = true;
      state().version = 1;
    } else if (has("SET version = 2")) {
      state().version = std::max(state().version, 2);
    } else if (has("SET oldest = 2")) {
      state().oldest = 2;
    } else if (has("DROP INDEX CONCURRENTLY")) {
      state().index.reset();
    } else if (has("CREATE INDEX CONCURRENTLY")) {
      if (open_) return tl::unexpected(Fault{Fault::Kind::refused, "25001", "in a transaction"});
      if (state().index) return tl::unexpected(Fault{Fault::Kind::refused, "42P07", "it is there"});
      state().index = true;
    } else if (const auto at = sql.find("found_v1("); at != std::string::npos) {
      state().project = sql.substr(at + 10, sql.size() - at - 12);
    } else if (has("ADD COLUMN") || has("CREATE FUNCTION") || has("DROP FUNCTION")) {
      state().texts.insert(sql);
    }
    return Result();
  }

  static Answer rows_if(bool any) { return any ? Result({"x"}, {{"1"}}) : Result({"x"}); }

  static std::string row_in(const std::string& sql) {
    const auto begin = sql.rfind('(', sql.find_last_of("0123456789"));
    return sql.substr(begin, sql.find(')', begin) - begin);
  }

  Answer workers() const {
    Result out({"name"});
    for (const std::string& name : old_workers) out.add(name);
    return out;
  }

  Answer index_state() {
    if (!state().index) return Result({"indisvalid", "building"});
    return Result({"indisvalid", "building"}, {{*state().index ? "t" : "f", "f"}});
  }

  std::optional<State> open_;
};

constexpr MigrationFile one[] = {{1, "0001.sql", "CREATE SCHEMA @schema@;"}};
constexpr MigrationFile two[] = {
    one[0],
    {2, "0002.sql",
     "ALTER TABLE @schema@.task ADD COLUMN extra int;\n--@ alone\nCREATE INDEX CONCURRENTLY new_index ON @schema@.task "
     "(extra);\n--@ transaction\nCREATE FUNCTION @schema@.claim_v2();\n--@ finish\nDROP FUNCTION "
     "@schema@.claim_v1();"}};

void expect_version_two(const FakeServer& server) {
  EXPECT_EQ(server.committed.version, 2);
  EXPECT_EQ(server.committed.index, true);
  ASSERT_EQ(server.committed.texts.size(), 2U) << "each step took effect exactly once";
  EXPECT_NE(server.committed.texts.begin()->find("ADD COLUMN"), std::string::npos);
}

FakeServer with_first_version() {
  FakeServer server;
  EXPECT_TRUE(Migrator(server.world(), "duet", one).init("site"));
  server.statements = 0;
  return server;
}

TEST(Migrator, MakesAQueueOnce) {
  FakeServer server;
  Migrator migrator(server.world(), "duet", one);
  EXPECT_EQ(migrator.present(), 0);
  EXPECT_EQ(migrator.init("site").value_or("failed"), "made the queue of 'site', in the schema duet");
  EXPECT_EQ(migrator.present(), 1);
  EXPECT_EQ(server.committed.project, "site");
  EXPECT_EQ(migrator.init("site").value_or("failed"), "the queue of 'site' is there already, in the schema duet");
  const auto other = migrator.init("other");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().find("has the queue of the project 'site'"), std::string::npos) << other.error();
}

TEST(Migrator, ANewQueueHasTheNewestVersion) {
  FakeServer server;
  EXPECT_TRUE(Migrator(server.world(), "duet", two).init("site"));
  expect_version_two(server);
}

TEST(Migrator, WhoeverIsSecondToMakeItFindsIt) {
  FakeServer server;
  server.faults = {{"CREATE SCHEMA", "42P06"}};
  EXPECT_TRUE(Migrator(server.world(), "duet", one).init("site"));
  EXPECT_EQ(server.pauses, 1);
}

TEST(Migrator, GoesToTheNextVersion) {
  FakeServer server = with_first_version();
  Migrator migrator(server.world(), "duet", two);
  EXPECT_EQ(migrator.migrate().value_or("failed"), "the schema has version 2 now");
  expect_version_two(server);
  EXPECT_EQ(migrator.migrate().value_or("failed"), "the schema has version 2: there is nothing to do");
  expect_version_two(server);
}

TEST(Migrator, NeedsASchemaThatItKnows) {
  FakeServer none;
  EXPECT_NE(Migrator(none.world(), "duet", two).migrate().error().find("cluster init"), std::string::npos);
  FakeServer newer = with_first_version();
  newer.committed.version = 3;
  EXPECT_NE(Migrator(newer.world(), "duet", two).migrate().error().find("use a newer program"), std::string::npos);
}

TEST(Migrator, AfterAKillAtAnyPointItIsRunAgain) {
  FakeServer whole = with_first_version();
  ASSERT_TRUE(Migrator(whole.world(), "duet", two).migrate());
  ASSERT_GT(whole.statements, 20);
  for (int point = 0; point < whole.statements; ++point) {
    SCOPED_TRACE(point);
    FakeServer server = with_first_version();
    server.kill_after = point;
    EXPECT_THROW(static_cast<void>(Migrator(server.world(), "duet", two).migrate()), Killed);
    server.kill_after.reset();
    const auto again = Migrator(server.world(), "duet", two).migrate();
    EXPECT_TRUE(again) << again.error();
    expect_version_two(server);
  }
}

TEST(Migrator, TriesAgainWhatWaitsForALock) {
  FakeServer server = with_first_version();
  server.faults = {{"ADD COLUMN", "55P03"}, {"ADD COLUMN", "40P01"}, {"new_index", "40P01"}};
  EXPECT_TRUE(Migrator(server.world(), "duet", two).migrate());
  EXPECT_EQ(server.pauses, 3);
  expect_version_two(server);
}

TEST(Migrator, GivesUpWhenTheLockNeverComesAndWhenTheServerSaysNo) {
  FakeServer held = with_first_version();
  held.faults.assign(1000, {"ADD COLUMN", "55P03"});
  const auto never = Migrator(held.world(), "duet", two).migrate();
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().find("step 1 of version 2: no (55P03)"), std::string::npos) << never.error();
  FakeServer refused = with_first_version();
  refused.faults = {{"ADD COLUMN", "42501"}};
  EXPECT_FALSE(Migrator(refused.world(), "duet", two).migrate());
  EXPECT_EQ(refused.pauses, 0);
}

TEST(Migrator, FinishIsRefusedWithTheNamesOfOlderDaemons) {
  FakeServer server = with_first_version();
  Migrator migrator(server.world(), "duet", two);
  EXPECT_NE(migrator.finish().error().find("cluster migrate' first"), std::string::npos);
  ASSERT_TRUE(migrator.migrate());
  server.old_workers = {"build-1", "build-2"};
  const auto refused = migrator.finish();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("build-1, build-2"), std::string::npos) << refused.error();
  EXPECT_EQ(server.committed.oldest, 1);
  server.old_workers.clear();
  EXPECT_EQ(migrator.finish().value_or("failed"), "what only earlier releases used is gone");
  EXPECT_EQ(server.committed.oldest, 2);
  EXPECT_EQ(server.committed.texts.size(), 3U);
  EXPECT_EQ(migrator.finish().value_or("failed"), "there is nothing to finish");
}

TEST(Migrator, SaysInSqlWhatItWouldDo) {
  FakeServer server;
  const Migrator migrator(server.world(), "duet", two);
  const std::string init = migrator.init_sql("o'neill");
  EXPECT_NE(init.find("CREATE SCHEMA duet;\n"), std::string::npos) << init;
  EXPECT_NE(init.find("found_v1('o''neill');\n"), std::string::npos) << init;
  EXPECT_NE(init.find("CREATE INDEX CONCURRENTLY new_index"), std::string::npos) << "and all that follows";
  const std::string migrate = migrator.migrate_sql(1);
  EXPECT_EQ(migrate.find("CREATE SCHEMA"), std::string::npos);
  EXPECT_EQ(migrate.find("DROP FUNCTION"), std::string::npos);
  EXPECT_NE(migrate.find("UPDATE duet.meta SET version = 2 WHERE version < 2;\n"), std::string::npos) << migrate;
  EXPECT_NE(migrator.migrate_sql(2).find("nothing to do"), std::string::npos);
  EXPECT_NE(migrator.finish_sql(2).find("DROP FUNCTION duet.claim_v1();"), std::string::npos);
  EXPECT_EQ(server.statements, 0);
}

}  // namespace
}  // namespace duet::task::postgres
