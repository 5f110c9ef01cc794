// cluster init, migrate and adopt: what changes the schema, or which server it belongs to.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "app/commands/cluster_place.h"
#include "app/commands/commands.h"
#include "app/commands/test_migrations.h"
#include "app/project/failure.h"
#include "app/view/display_text.h"
#include "duet/base/fd.h"
#include "duet/rpc/value.h"
#include "task/postgres/migrator.h"
#include "task/postgres/records.h"

namespace duet::app {
namespace {

using namespace task::postgres;
using Kind = Objection::Kind;
using boost::json::object;

constexpr AdminSession::Wait step_wait = std::chrono::hours(24);  // an index of a large table takes its time
constexpr int oldest_server = 140000;

void tell(const std::string& line) {
  [[maybe_unused]] const bool written = base::write_all(STDERR_FILENO, harmless_lines(line) + '\n');
}

Migrator::World world_of(AdminSession* session) {
  return {.run = [session](const std::string& sql) -> Answer {
            if (session == nullptr) return tl::unexpected(Fault{Fault::Kind::never, "", "there is no connection"});
            return session->run(sql, step_wait);
          },
          .pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); },
          .tell = tell};
}

void check_server(const AdminSession& session) {
  if (session.server_version() < oldest_server)
    throw Failure("the server is PostgreSQL " + std::to_string(session.server_version() / 10000) +
                  ": a shared queue needs 14 or newer");
  const std::string encoding = session.server_parameter("server_encoding");
  if (encoding != "UTF8")
    throw Failure("the database has the encoding " + encoding +
                  ": make one with 'createdb --encoding=UTF8 "
                  "--template=template0'");
}

// A warning, by the server itself: roles are named after the schema, and belong to all databases of a server.
std::string warn_of_shared_roles(const std::string& schema) {
  return "DO $$\nDECLARE\n  queue text := " + sql_literal(schema) + R"(;
  others text := (SELECT string_agg(quote_ident(d.datname), ', ' ORDER BY d.datname) FROM pg_catalog.pg_shdepend s
    JOIN pg_catalog.pg_database d ON d.oid = s.dbid JOIN pg_catalog.pg_roles r ON r.oid = s.refobjid
    WHERE s.classid = 'pg_catalog.pg_namespace'::regclass AND s.refclassid = 'pg_catalog.pg_authid'::regclass
      AND s.deptype = 'o' AND d.datname <> current_database() AND r.rolname = queue || '_owner');
BEGIN
  IF others IS NOT NULL THEN
    RAISE WARNING 'a queue in the database % has the same roles, %_worker and so on: whoever is granted one may use '
      'both. Take another [cluster] schema for one of them, or see docs/cluster.md, Roles', others, queue;
  END IF;
END $$)";
}

int say(const CommandLine& line, const Migrator::Outcome& outcome) {
  if (!outcome) throw Failure(outcome.error());
  if (line.flag("json")) return print_text(rpc::to_text(object{{"done", *outcome}}) + '\n');
  return print_text(*outcome + '\n');
}

// Asked for, so that who may not change the schema can see what would be changed.
int version_of(AdminSession& session, const task::ClusterSettings& cluster) {
  const object hello = rpc::parse_value(call_queue(session, cluster, "hello_v1", {})).as_object();
  const boost::json::value* const version = hello.if_contains("version");
  if (version == nullptr || !version->is_int64()) throw Failure("the server does not say which version the schema has");
  return static_cast<int>(version->as_int64());
}

// That the queue is there, as far as this role may ask; empty: it cannot be told. Throws Failure if it is another's.
std::string there_already(AdminSession& session, const task::ClusterSettings& cluster) {
  const Answer hello = session.call(cluster.schema, "hello_v1", {});
  if (!hello) return "";
  const std::string project = text_in(rpc::parse_value(hello->text()).as_object(), "project");
  if (project == cluster.project)
    return "the queue of '" + cluster.project + "' is there already, in the schema " + cluster.schema;
  throw Failure("the schema " + cluster.schema + " has the queue of the project '" + project +
                "': name another one with [cluster] schema, or that project");
}

// What makes the queue; or, in words that psql passes over, that it is there.
std::string init_text(const task::ClusterSettings& cluster, const TestMigrations& files) {
  const auto session = reach_queue(cluster, std::chrono::seconds(5));
  const std::string there = session ? there_already(*session, cluster) : "";
  if (!there.empty()) return "-- " + there + '\n';
  return Migrator(world_of(session.get()), cluster.schema, files.all()).init_sql(cluster.project) + '\n' +
         warn_of_shared_roles(cluster.schema) + ";\n";
}

// `more`: what else it is told, for a backup of a queue on the queue's own server.
std::string adopt_statement(const task::ClusterSettings& cluster, const std::string& queue,
                            const std::string& more = "") {
  return "SELECT " + cluster.schema + ".adopt_v1(" + sql_literal(queue) + more + ")";
}

}  // namespace

int run_cluster_init(const CommandLine& line) {
  const task::ClusterSettings cluster = shared_queue(line);
  const TestMigrations files;
  if (line.flag("sql")) return print_text(init_text(cluster, files));
  const auto session = open_queue(line, cluster);
  check_server(*session);
  const Answer warned = session->run(warn_of_shared_roles(cluster.schema));
  for (const Notice& notice : session->take_notices()) tell("warning: " + notice.message);
  if (!warned) throw Failure(warned.error().message);
  if (const std::string there = there_already(*session, cluster); !there.empty()) return say(line, there);
  return say(line, Migrator(world_of(session.get()), cluster.schema, files.all()).init(cluster.project));
}

int run_cluster_migrate(const CommandLine& line) {
  const task::ClusterSettings cluster = shared_queue(line);
  // A copy may have to be migrated before it can be adopted.
  const auto session = open_owners_queue(line, cluster, {Kind::version, Kind::copy, Kind::backup}).session;
  const TestMigrations files;
  Migrator migrator(world_of(session.get()), cluster.schema, files.all());
  const bool finish = line.flag("finish");
  if (line.flag("sql")) {
    const int version = version_of(*session, cluster);
    return print_text(finish ? migrator.finish_sql(version) : migrator.migrate_sql(version));
  }
  return say(line, finish ? migrator.finish() : migrator.migrate());
}

int run_cluster_adopt(const CommandLine& line) {
  const task::ClusterSettings cluster = shared_queue(line);
  const auto queue = line.text("queue");
  if (!queue) throw Failure("say with --queue what becomes of the tasks that are queued in it: run or cancel");
  if (line.flag("sql"))
    return print_text("BEGIN;\nSET LOCAL ROLE " + cluster.schema + "_owner;\n" + adopt_statement(cluster, *queue) +
                      ";\nCOMMIT;\n");
  const OwnersQueue found = open_owners_queue(line, cluster, {Kind::copy, Kind::backup});
  const bool is_backup = std::ranges::find(found.left, Kind::backup, &Objection::kind) != found.left.end();
  const Answer answer = found.session->run("SET ROLE " + cluster.schema + "_owner; " +
                                           adopt_statement(cluster, *queue, is_backup ? ", true" : ""));
  if (!answer) throw Failure(in_words(answer.error()));
  if (queue_outcome(std::string(answer->text())) == "same")
    throw Failure("there is nothing to adopt: the queue in the schema " + cluster.schema +
                  " belongs to this database already");
  if (line.flag("json")) return print_text(std::string(answer->text()) + '\n');
  return print_text("the queue in the schema " + cluster.schema + " belongs to this database now; what was queued " +
                    (*queue == "run" ? "runs\n" : "is cancelled\n"));
}

}  // namespace duet::app
