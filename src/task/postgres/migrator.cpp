#include "task/postgres/migrator.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace duet::task::postgres {
namespace {

using Kind = MigrationStep::Kind;
using namespace std::chrono_literals;

constexpr int most_attempts = 40;
constexpr const char* begin = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0";

std::chrono::milliseconds pause_after(int attempt) {
  return std::min<std::chrono::milliseconds>(100ms * (1 << std::min(attempt, 5)), 3s);
}

template <std::size_t Size>
bool is_among(const std::string& code, const std::string_view (&codes)[Size]) {
  return std::ranges::find(codes, code) != std::end(codes);
}

// Somebody holds what it needs. With a rival: somebody was about to make the same.
bool may_pass(const Fault& fault, bool with_rivals) {
  constexpr std::string_view held[] = {"55P03", "40P01", "40001"};
  constexpr std::string_view rival[] = {"42P06", "42P07", "42710", "23505", "XX000"};
  if (fault.kind != Fault::Kind::refused) return false;
  return is_among(fault.sqlstate, held) || (with_rivals && is_among(fault.sqlstate, rival));
}

std::string in_words(const Fault& fault) {
  return fault.message + (fault.sqlstate.empty() ? "" : " (" + fault.sqlstate + ")");
}

std::string name_of(const MigrationStep& step) {
  return "step " + std::to_string(step.number) + " of version " + std::to_string(step.version);
}

Fault refusal(std::string message) { return {Fault::Kind::refused, "", std::move(message)}; }

}  // namespace

Migrator::Migrator(World world, std::string schema, std::span<const MigrationFile> files)
    : world_(std::move(world)), schema_(std::move(schema)), steps_(migration_steps(files, schema_)) {}

// The result is that of the last statement.
Answer Migrator::in_transaction(const Statements& statements) {
  Answer answer = world_.run(begin);
  for (std::size_t i = 0; answer && i < statements.size(); ++i) answer = world_.run(statements[i]);
  if (!answer) {
    const bool is_usable = answer.error().kind == Fault::Kind::refused;
    if (is_usable) [[maybe_unused]]
      const Answer back = world_.run("ROLLBACK");
    return answer;
  }
  const Answer committed = world_.run("COMMIT");
  return committed ? answer : committed;
}

Migrator::Done Migrator::persist(const std::function<Answer()>& attempt, const std::string& what, bool with_rivals) {
  for (int i = 1;; ++i) {
    const Answer answer = attempt();
    if (answer) return {};
    const bool is_last = i == most_attempts || !may_pass(answer.error(), with_rivals);
    std::string text = what;
    text.append(is_last ? ": " : " is held up, and tried again: ").append(in_words(answer.error()));
    if (is_last) return tl::unexpected(std::move(text));
    world_.tell(text);
    world_.pause(pause_after(i));
  }
}

// Read as the owner, since nobody else may read the table.
tl::expected<int, std::string> Migrator::present() {
  const Answer there = world_.run("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = " + sql_literal(schema_));
  if (!there) return tl::unexpected(in_words(there.error()));
  if (there->rows() == 0) return 0;
  const Answer answer = in_transaction({as_owner(), "SELECT version FROM " + schema_ + ".meta"});
  if (!answer) {
    return tl::unexpected("there is a schema " + schema_ +
                          ", and what is in it cannot be read: " + in_words(answer.error()));
  }
  const auto version = answer->number(0, 0);
  if (!version) return tl::unexpected("there is a schema " + schema_ + " without a queue in it");
  return static_cast<int>(*version);
}

Migrator::Statements Migrator::first_statements(const std::string& project) const {
  Statements out;
  for (const MigrationStep& step : steps_) {
    if (step.version == 1) out.push_back(step.text);
  }
  out.push_back("SELECT " + schema_ + ".found_v1(" + sql_literal(project) + ")");
  return out;
}

Migrator::Done Migrator::check_project(const std::string& project) {
  const Answer answer = in_transaction({as_owner(), "SELECT project FROM " + schema_ + ".meta"});
  if (!answer) return tl::unexpected(in_words(answer.error()));
  const std::string theirs(answer->text());
  if (theirs == project) return {};
  return tl::unexpected("the schema " + schema_ + " has the queue of the project '" + theirs +
                        "': name another one with [cluster] schema, or that project");
}

Migrator::Outcome Migrator::init(const std::string& project) {
  bool made = false;
  const auto attempt = [&]() -> Answer {
    const auto version = present();
    if (!version) return tl::unexpected(refusal(version.error()));
    if (*version > 0) return Result();
    made = true;
    return in_transaction(first_statements(project));
  };
  if (auto done = persist(attempt, "cluster init", true); !done) return tl::unexpected(done.error());
  if (auto same = check_project(project); !same) return tl::unexpected(same.error());
  if (!made) return "the queue of '" + project + "' is there already, in the schema " + schema_;
  if (newest() > 1) {
    if (auto rest = migrate(); !rest) return rest;
  }
  return "made the queue of '" + project + "', in the schema " + schema_;
}

std::string Migrator::journal_statement() const {
  return "CREATE TABLE IF NOT EXISTS " + schema_ +
         ".migration (version int, step int, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (version, step))";
}

std::string Migrator::written_down(const MigrationStep& step) const {
  return "INSERT INTO " + schema_ + ".migration (version, step) VALUES (" + std::to_string(step.version) + ", " +
         std::to_string(step.number) + ") ON CONFLICT DO NOTHING";
}

tl::expected<bool, std::string> Migrator::is_done(const MigrationStep& step) {
  const Answer answer =
      in_transaction({as_owner(), "SELECT 1 FROM " + schema_ + ".migration WHERE (version, step) = (" +
                                      std::to_string(step.version) + ", " + std::to_string(step.number) + ")"});
  if (!answer) return tl::unexpected(in_words(answer.error()));
  return answer->rows() > 0;
}

// The row is written first: whoever comes second waits for it, and then finds the name taken.
Migrator::Statements Migrator::statements_of(const MigrationStep& step) const {
  return {as_owner(),
          "INSERT INTO " + schema_ + ".migration (version, step) VALUES (" + std::to_string(step.version) + ", " +
              std::to_string(step.number) + ")",
          step.text};
}

Migrator::Statements Migrator::version_statements(int version) const {
  const std::string number = std::to_string(version);
  return {as_owner(), "UPDATE " + schema_ + ".meta SET version = " + number + " WHERE version < " + number};
}

Migrator::Done Migrator::apply(const MigrationStep& step) {
  if (step.kind == Kind::alone) return apply_alone(step);
  const auto attempt = [&]() -> Answer {
    const auto done = is_done(step);
    if (!done) return tl::unexpected(refusal(done.error()));
    if (*done) return Result();
    return step.kind == Kind::finish ? finish_attempt(step) : in_transaction(statements_of(step));
  };
  return persist(attempt, name_of(step), true);
}

// An index that was given up half-way is there, and not valid. It waits for old transactions, and nobody for it.
Answer Migrator::index_attempt(const std::string& index, const std::string& statement) {
  const std::string name = sql_literal(schema_ + "." + index);
  Answer state = world_.run(
      "SELECT i.indisvalid, EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index p "
      "WHERE p.index_relid = i.indexrelid) FROM pg_catalog.pg_index i WHERE i.indexrelid = "
      "pg_catalog.to_regclass(" +
      name + ")");
  if (!state) return state;
  if (state->rows() > 0 && state->flag(0, 0)) return Result();
  if (state->rows() > 0 && state->flag(0, 1))
    return tl::unexpected(Fault{Fault::Kind::refused, "42P07", "another one builds it"});
  if (state->rows() > 0) {
    Answer dropped = world_.run("DROP INDEX CONCURRENTLY IF EXISTS " + schema_ + "." + index);
    if (!dropped) return dropped;
  }
  return world_.run(statement);
}

Migrator::Done Migrator::apply_alone(const MigrationStep& step) {
  if (const auto done = is_done(step); !done || *done) return done ? Done() : tl::unexpected(done.error());
  const std::string index = index_made_by(step.text);
  const auto attempt = [&] { return index.empty() ? world_.run(step.text) : index_attempt(index, step.text); };
  const Answer role = world_.run("SET lock_timeout = 0; SET statement_timeout = 0; SET ROLE " + owner());
  if (!role) return tl::unexpected(in_words(role.error()));
  Done built = persist(attempt, name_of(step), true);
  [[maybe_unused]] const Answer back = world_.run("RESET ROLE");
  if (!built) return built;
  return persist([&] { return in_transaction({as_owner(), written_down(step)}); }, name_of(step), false);
}

Migrator::Outcome Migrator::migrate() {
  const auto version = present();
  if (!version) return tl::unexpected(version.error());
  if (*version == 0)
    return tl::unexpected("there is no queue in the schema " + schema_ + ": 'duet-rpc cluster init' makes it");
  const std::string versions = std::to_string(*version) + ", this program knows " + std::to_string(newest());
  if (*version > newest()) return tl::unexpected("the schema has version " + versions + ": use a newer program");
  if (*version == newest()) return "the schema has version " + std::to_string(*version) + ": there is nothing to do";
  const auto make_journal = [this] { return in_transaction({as_owner(), journal_statement()}); };
  if (auto made = persist(make_journal, "the list of steps", true); !made) return tl::unexpected(made.error());
  for (const MigrationStep& step : steps_) {
    if (step.version <= *version || step.kind == Kind::finish) continue;
    world_.tell(name_of(step));
    if (auto done = apply(step); !done) return tl::unexpected(done.error());
  }
  const auto attempt = [this] { return in_transaction(version_statements(newest())); };
  if (auto done = persist(attempt, "the version", false); !done) return tl::unexpected(done.error());
  return "the schema has version " + std::to_string(newest()) + " now";
}

std::string Migrator::older_workers(int version) const {
  return "SELECT name FROM " + schema_ + ".worker WHERE state <> 3 AND protocol < " + std::to_string(version) +
         " ORDER BY name";
}

// The lock keeps an older daemon from coming in between.
Migrator::Statements Migrator::finish_statements(const MigrationStep& step) const {
  Statements out = statements_of(step);
  const std::string number = std::to_string(step.version);
  std::string raise = "DO $$ BEGIN IF EXISTS (" + older_workers(step.version);
  raise += ") THEN RAISE EXCEPTION 'a daemon of an earlier release is there' USING ERRCODE = '55P03'; END IF; END $$";
  std::string served = "UPDATE " + schema_ + ".meta SET oldest = ";
  served.append(number).append(" WHERE oldest < ").append(number);
  out.insert(out.begin() + 1, {"LOCK TABLE " + schema_ + ".worker IN SHARE MODE", std::move(raise), std::move(served)});
  return out;
}

Answer Migrator::finish_attempt(const MigrationStep& step) {
  Answer older = in_transaction({as_owner(), older_workers(step.version)});
  if (!older) return older;
  std::string names;
  for (std::size_t row = 0; row < older->rows(); ++row) names.append(row == 0 ? "" : ", ").append(older->text(row, 0));
  if (!names.empty()) return tl::unexpected(refusal("daemons of an earlier release are still there: " + names));
  return in_transaction(finish_statements(step));
}

Migrator::Outcome Migrator::finish() {
  const auto version = present();
  if (!version) return tl::unexpected(version.error());
  if (*version < newest())
    return tl::unexpected(std::string("the schema is not up to date: 'duet-rpc cluster migrate' first"));
  bool any = false;
  for (const MigrationStep& step : steps_) {
    if (step.kind != Kind::finish || step.version > *version) continue;
    const auto before = is_done(step);
    if (!before) return tl::unexpected(before.error());
    if (*before) continue;
    world_.tell(name_of(step));
    if (auto done = apply(step); !done) return tl::unexpected(done.error());
    any = true;
  }
  return any ? "what only earlier releases used is gone" : "there is nothing to finish";
}

}  // namespace duet::task::postgres
