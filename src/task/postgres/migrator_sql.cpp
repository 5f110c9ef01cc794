// What a Migrator would do, as texts for psql.

#include "task/postgres/migrator.h"

namespace duet::task::postgres {
namespace {

using Kind = MigrationStep::Kind;

constexpr const char* heading =
    "-- For psql, as a role that may do it: psql -X -f FILE DATABASE\n\\set ON_ERROR_STOP on\n";

std::string ended(std::string statement) {
  const std::size_t last = statement.find_last_not_of(" \t\r\n");
  if (last != std::string::npos && statement[last] != ';') statement.insert(last + 1, ";");
  if (!statement.ends_with('\n')) statement += '\n';
  return statement;
}

std::string transaction(const std::vector<std::string>& statements) {
  std::string out = "\nBEGIN;\nSET LOCAL lock_timeout = '5s';\n";
  for (const std::string& statement : statements) out += ended(statement);
  return out + "COMMIT;\n";
}

}  // namespace

std::string Migrator::init_sql(const std::string& project) const {
  const std::string rest = newest() > 1 ? migrate_sql(1) : "";
  return heading + transaction(first_statements(project)) + rest.substr(rest.empty() ? 0 : std::string(heading).size());
}

std::string Migrator::migrate_sql(int present) const {
  std::string out = heading;
  if (present >= newest()) return out + "-- there is nothing to do\n";
  out += transaction({as_owner(), journal_statement()});
  for (const MigrationStep& step : steps_) {
    if (step.version <= present || step.kind == Kind::finish) continue;
    if (step.kind == Kind::transaction) {
      out += transaction(statements_of(step));
      continue;
    }
    const std::string index = index_made_by(step.text);
    const std::string drop = index.empty() ? "" : "DROP INDEX CONCURRENTLY IF EXISTS " + schema_ + "." + index + ";\n";
    out += "\nSET ROLE " + owner() + ";\n" + drop + ended(step.text) + "RESET ROLE;\n";
    out += transaction({as_owner(), written_down(step)});
  }
  return out + transaction(version_statements(newest()));
}

std::string Migrator::finish_sql(int present) const {
  std::string out = std::string(heading) + "-- Refused while a daemon of an earlier release is there.\n";
  for (const MigrationStep& step : steps_) {
    if (step.kind != Kind::finish || step.version > present) continue;
    out += transaction(finish_statements(step));
  }
  return out;
}

}  // namespace duet::task::postgres
