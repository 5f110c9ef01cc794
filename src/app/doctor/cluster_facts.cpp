#include "app/doctor/cluster_facts.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "task/postgres/admin_session.h"
#include "task/postgres/migration_file.h"
#include "task/postgres/records.h"
#include "task/postgres/server_check.h"

namespace duet::app {
namespace {

using namespace task::postgres;
using boost::json::object;
using std::chrono::system_clock;

// The object that the server said; none: it is something else.
std::optional<object> object_in(std::string_view text) {
  boost::system::error_code fault;
  const boost::json::value parsed = boost::json::parse(text, fault);
  if (fault || !parsed.is_object()) return std::nullopt;
  return parsed.get_object();
}

/// Puts questions and leaves open what the server would not tell.
class Examination {
 public:
  Examination(AdminSession& session, const task::ClusterSettings& cluster, const WorkerMemory& memory,
              ClusterFacts& facts)
      : session_(session), schema_(cluster.schema), name_(cluster.name), memory_(memory), facts_(facts) {}

  void ask_all() {
    ask_session();
    ask_hello();
    ask_settings();
    ask_log();
    ask_activity();
    ask_status();
    ask_tables();
    probe();
  }

 private:
  std::optional<Result> rows(const std::string& sql, std::vector<Argument> arguments = {}) {
    Answer answer = session_.ask(sql, std::move(arguments), std::chrono::seconds(10));
    if (!answer) return std::nullopt;
    return std::move(*answer);
  }

  void ask_session() {
    facts_.tls = session_.tls();
    facts_.server_version = session_.server_version();
    facts_.encoding = session_.server_parameter("server_encoding");
    facts_.is_here = session_.is_here();
    facts_.is_superuser = session_.server_parameter("is_superuser") == "on";
    facts_.is_pooled = session_.is_pooled();
    if (const auto found = rows("SELECT session_user")) facts_.user = std::string(found->text());
    const auto may = [this](const char* function) -> std::optional<bool> {
      const auto found = rows(
          "SELECT has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE') FROM pg_proc p "
          "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1 AND p.proname = $2",
          {schema_, function});
      if (!found || found->rows() == 0) return std::nullopt;
      return found->text() == "t";
    };
    facts_.may_join = may("attach_v1");
    facts_.may_run = may("claim_v1");
  }

  static std::optional<std::int64_t> number(const object& hello, const char* name) {
    const boost::json::value* const found = hello.if_contains(name);
    if (found == nullptr || !found->is_number()) return std::nullopt;
    return found->to_number<std::int64_t>();
  }

  void ask_hello() {
    const auto before = system_clock::now();
    const Answer answer = session_.call(schema_, "hello_v1", {});
    const auto after = system_clock::now();
    if (!answer) {
      facts_.schema_fault = answer.error().message;
      return;
    }
    const auto told = object_in(answer->text());
    if (!told) return;
    const object& hello = *told;
    queue_ = text_in(hello, "queue");
    facts_.schema_version = number(hello, "version");
    facts_.oldest = number(hello, "oldest").value_or(0);
    facts_.timeline = number(hello, "serverTimeline");
    facts_.known_timeline = number(hello, "timeline");
    if (const auto* project = hello.if_contains("project"); project != nullptr && project->is_string())
      facts_.project = std::string(project->get_string());
    if (const auto* adopted = hello.if_contains("adopted"); adopted != nullptr && adopted->is_bool())
      facts_.is_adopted = adopted->get_bool();
    using Kind = Objection::Kind;
    for (const Objection& objection : objections_to(hello, memory_, facts_.own_project)) {
      const bool has_a_row = objection.kind == Kind::version || objection.kind == Kind::project || !facts_.is_adopted;
      if (!has_a_row) facts_.outdated = objection.why;
    }
    if (const auto now = number(hello, "now")) {
      const auto here = before + (after - before) / 2;
      const auto ours = std::chrono::duration_cast<std::chrono::milliseconds>(here.time_since_epoch());
      facts_.clock_apart = std::chrono::milliseconds(*now) - ours;
    }
  }

  std::string setting(const std::string& name) {
    const auto found = rows("SELECT current_setting($1, true)", {name});
    return found ? std::string(found->text()) : "";
  }

  void ask_settings() {
    facts_.fsync = setting("fsync");
    facts_.full_page_writes = setting("full_page_writes");
    facts_.synchronous_commit = setting("synchronous_commit");
    facts_.synchronous_standby_names = setting("synchronous_standby_names");
    facts_.autovacuum = setting("autovacuum");
    for (const char* name : {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}) {
      if (setting(name) == "0") facts_.missing_timeouts.emplace_back(name);
    }
  }

  void ask_log() {
    const bool on_error = setting("log_parameter_max_length_on_error") != "0";
    const bool at_all = setting("log_parameter_max_length") != "0";
    const auto is_set = [this](const std::string& name, const std::string& off) {
      const std::string value = setting(name);
      return !value.empty() && value != off;
    };
    if (on_error) facts_.logs_parameters = "log_parameter_max_length_on_error";
    if (!at_all) return;
    if (setting("log_statement") == "all") facts_.logs_parameters = "log_statement";
    if (is_set("log_min_duration_statement", "-1")) facts_.logs_parameters = "log_min_duration_statement";
    if (is_set("log_min_duration_sample", "-1")) facts_.logs_parameters = "log_min_duration_sample";
    if (is_set("log_transaction_sample_rate", "0")) facts_.logs_parameters = "log_transaction_sample_rate";
  }

  void ask_activity() {
    const auto old = rows(
        "SELECT pid, application_name, extract(epoch FROM now() - xact_start)::bigint FROM pg_stat_activity "
        "WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database() "
        "AND backend_type <> 'autovacuum worker' "
        "ORDER BY xact_start LIMIT 1");
    if (old && old->rows() > 0) {
      facts_.oldest_transaction = {std::string(old->text(0, 0)), std::string(old->text(0, 1)),
                                   std::chrono::seconds(old->number(0, 2).value_or(0))};
    }
    const auto hidden = rows("SELECT count(*) FROM pg_stat_activity WHERE query = '<insufficient privilege>'");
    if (hidden) facts_.hidden_sessions = hidden->number(0, 0).value_or(0);
    const auto left = rows(
        "SELECT least(current_setting('max_connections')::bigint "
        "- current_setting('superuser_reserved_connections')::bigint "
        "- coalesce(current_setting('reserved_connections', true)::bigint, 0) - (SELECT sum(numbackends) FROM "
        "pg_stat_database), (SELECT d.datconnlimit - s.numbackends FROM pg_database d JOIN pg_stat_database s ON "
        "s.datid = d.oid WHERE d.datname = current_database() AND d.datconnlimit >= 0), (SELECT r.rolconnlimit - "
        "(SELECT count(*) FROM pg_stat_activity a WHERE a.usename = r.rolname) FROM pg_roles r WHERE r.rolname = "
        "session_user AND r.rolconnlimit >= 0))");
    if (left) facts_.connections_left = left->number(0, 0);
    const auto standbys = rows("SELECT count(*) FROM pg_stat_replication");
    if (standbys) facts_.standbys = standbys->number(0, 0);
    const auto queue = rows("SELECT (pg_notification_queue_usage() * 1000)::bigint");
    if (queue && queue->number(0, 0)) facts_.notify_queue = static_cast<double>(*queue->number(0, 0)) / 1000;
  }

  // The schema's owner sees more of other sessions than this role may.
  void ask_status() {
    const Answer answer = session_.call(schema_, "read_status_v1", {});
    if (!answer) return;
    const auto status = object_in(answer->text());
    if (!status) return;
    for (const boost::json::value& worker : array_in(*status, "workers")) {
      const object& other = worker.as_object();
      const bool is_we = memory_.queue == queue_ && memory_.worker == number_in(other, "id");
      if (!is_we && text_in(other, "name") == name_) facts_.name_taken = name_;
    }
    const auto* const oldest = status->if_contains("oldestTransaction");
    if (oldest != nullptr && oldest->is_object()) {
      const object& transaction = oldest->get_object();
      const auto* const application = transaction.if_contains("application");
      const bool has_name = application != nullptr && application->is_string();
      facts_.oldest_transaction = {std::to_string(number(transaction, "pid").value_or(0)),
                                   has_name ? std::string(application->get_string()) : "",
                                   std::chrono::seconds(number(transaction, "ageMs").value_or(0) / 1000)};
    }
    const auto sees = rows("SELECT 1 WHERE pg_has_role($1, 'pg_read_all_stats', 'USAGE')", {schema_ + "_owner"});
    if (sees && sees->rows() > 0) facts_.hidden_sessions = 0;
  }

  std::vector<std::string> names(const std::string& sql) {
    std::vector<std::string> out;
    const auto found = rows(sql, {schema_});
    for (std::size_t row = 0; found && row < found->rows(); ++row) out.emplace_back(found->text(row, 0));
    return out;
  }

  void ask_tables() {
    const auto tables =
        rows("SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = $1", {schema_});
    for (std::size_t row = 0; tables && row < tables->rows(); ++row) {
      facts_.rows.push_back(
          {std::string(tables->text(row, 0)), tables->number(row, 1).value_or(0), tables->number(row, 2).value_or(0)});
    }
    facts_.tables_without_vacuum = names(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
        "c.reloptions && ARRAY['autovacuum_enabled=false', 'autovacuum_enabled=off', 'autovacuum_enabled=0']");
    facts_.invalid_indexes = names(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = "
        "c.relnamespace WHERE n.nspname = $1 AND NOT i.indisvalid");
  }

  // To oneself, on a channel of one's own: what wakes comes before the answer to whatever is asked next.
  void probe() {
    const std::string channel = schema_ + "_doctor_" + std::to_string(getpid());
    facts_.wakes = false;
    for (const std::string& text : {"LISTEN " + channel, "NOTIFY " + channel, std::string("SELECT 1")}) {
      if (!session_.run(text)) return;
    }
    facts_.wakes = session_.await_notification(std::chrono::milliseconds(0)).has_value();
  }

  AdminSession& session_;
  std::string schema_;
  std::string name_;
  std::string queue_;  // its id
  const WorkerMemory& memory_;
  ClusterFacts& facts_;
};

// Why a daemon would leave this server for another host; empty: it would not.
std::string why_not(AdminSession& session, const task::ClusterSettings& cluster, const WorkerMemory& memory) {
  const Answer answer = session.call(cluster.schema, "hello_v1", {});
  if (!answer) return answer.error().message;
  const auto objections = objections_to(object_in(answer->text()).value_or(object()), memory, cluster.project);
  return objections.empty() ? "" : objections.front().why;
}

using Opened = tl::expected<std::unique_ptr<AdminSession>, std::string>;

// The first host that a daemon would work with; if it would with none, the first that answers.
Opened open_as_a_daemon(const StoreAddress& address, const task::ClusterSettings& cluster, const WorkerMemory& memory,
                        std::chrono::milliseconds most, std::vector<std::string>& passed_by) {
  Opened session = AdminSession::open(address, most);
  const std::size_t tries =
      address.hosts().size() == 1 ? 0 : 2 * address.hosts().size();  // a host may have two addresses
  for (std::size_t tried = 0; session && tried < tries; ++tried) {
    const std::string why = why_not(**session, cluster, memory);
    if (why.empty()) return session;
    const std::string text = (*session)->server() + ": " + why;
    if (std::ranges::find(passed_by, text) == passed_by.end()) passed_by.push_back(text);
    if ((*session)->try_another(most)) break;
  }
  if (tries == 0 || !session) return session;
  passed_by.clear();
  return AdminSession::open(address, most);
}

}  // namespace

ClusterFacts cluster_facts(const task::ClusterSettings& cluster, const WorkerMemory& memory,
                           std::chrono::milliseconds most) {
  ClusterFacts facts{
      .server = "store", .wants_to_run = cluster.run, .schema = cluster.schema, .own_project = cluster.project};
  for (const MigrationFile& file : migration_files())
    facts.own_version = std::max<std::int64_t>(facts.own_version, file.version);
  try {
    const auto address = StoreAddress::parse(*cluster.store, {.name = cluster.name, .insecure = cluster.insecure});
    if (!address) return facts.unreachable = address.error(), facts;
    facts.server = address->text();
    facts.ssl_mode = address->ssl_mode();
    auto session = open_as_a_daemon(*address, cluster, memory, most, facts.passed_by);
    if (!session) return facts.unreachable = session.error(), facts;
    facts.server = (*session)->server();
    Examination(**session, cluster, memory, facts).ask_all();
  } catch (const std::runtime_error& missing) {  // libpq itself
    facts.unreachable = missing.what();
  }
  return facts;
}

}  // namespace duet::app
