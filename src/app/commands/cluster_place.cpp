#include "app/commands/cluster_place.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <utility>
#include <variant>

#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "duet/rpc/value.h"
#include "task/postgres/worker_memory.h"

namespace duet::app {
namespace {

using namespace task::postgres;
using boost::json::object;

// What the server says of a function that it does not have, or that this role may not call.
std::string cure_of(const Fault& fault) {
  if (fault.sqlstate == "42883" || fault.sqlstate == "3F000")
    return ": is there a queue in this schema? 'duet-rpc cluster init' makes it, 'cluster migrate' brings it up to "
           "date";
  if (fault.sqlstate == "42501") return ": the role of `store` may not do this; docs/cluster.md says which one may";
  return "";
}

StoreAddress address_of(const task::ClusterSettings& cluster) {
  try {
    auto address = StoreAddress::parse(*cluster.store, {.name = cluster.name, .insecure = cluster.insecure});
    if (!address) throw Failure("store: " + address.error());
    return std::move(*address);
  } catch (const Failure&) {
    throw;
  } catch (const std::runtime_error& missing) {  // libpq itself
    throw Failure(missing.what());
  }
}

std::chrono::milliseconds patience_of(const CommandLine& line) {
  return line.duration("timeout").value_or(std::chrono::seconds(30));
}

Failure unreachable(const std::string& why) { return Failure("the database of the queue cannot be reached: " + why); }

WorkerMemory remembered(const CommandLine& line) { return remembered_queue(find_project(line.text("project"))); }

// There is none, or one of which this role may see nothing: whoever changes it is told so.
bool is_no_queue(const std::string& sqlstate) {
  return sqlstate == "42501" || sqlstate == "42883" || sqlstate == "3F000" || sqlstate == "42704" ||
         sqlstate == "22023";
}

// Goes from host to host until there is no reason to refuse one.
void search_server(const CommandLine& line, const task::ClusterSettings& cluster, AdminSession& session,
                   const std::function<std::string()>& why_not) {
  const std::size_t hosts = address_of(cluster).hosts().size();
  const std::size_t most = hosts == 1 ? 1 : 2 * hosts;  // a host may have two addresses
  for (std::size_t tried = 1;; ++tried) {
    const std::string why = why_not();
    if (why.empty()) return;
    if (tried >= most) throw Failure("the queue at " + session.server() + " is refused: " + why);
    if (const auto trouble = session.try_another(patience_of(line))) throw unreachable(*trouble);
  }
}

// The same for whoever may look at the queue: none to which there is an objection that counts.
void search_own_server(const CommandLine& line, const task::ClusterSettings& cluster, AdminSession& session,
                       const std::function<bool(const Objection&)>& counts) {
  search_server(line, cluster, session, [&]() -> std::string {
    const object hello = rpc::parse_value(call_queue(session, cluster, "hello_v1", {})).as_object();
    const auto objections = objections_to(hello, remembered(line), cluster.project);
    const auto worst = std::ranges::find_if(objections, counts);
    return worst == objections.end() ? "" : worst->why;
  });
}

}  // namespace

std::string no_shared_queue() {
  return "no queue is shared here: neither the setting `store` nor DUET_RPC_STORE names a database, such as "
         "postgresql://duet@db/work";
}

WorkerMemory remembered_queue(const Project& project) {
  const auto folder = StateFolder::find(project, state_place(settings_places()));
  return folder ? memory_of(folder->read_small(memory_file)).value_or(WorkerMemory()) : WorkerMemory();
}

task::ClusterSettings shared_queue(const CommandLine& line) {
  const Project project = find_project(line.text("project"));
  auto read = read_settings(project, settings_places());
  if (const auto* error = std::get_if<SettingsError>(&read)) throw Failure(error->text);
  Settings& settings = std::get<Settings>(read);
  if (settings.cluster.store) return std::move(settings.cluster);
  const std::string note = settings.note.empty() ? "" : " (" + settings.note + ")";
  throw Failure(no_shared_queue() + note);
}

std::unique_ptr<AdminSession> open_queue(const CommandLine& line, const task::ClusterSettings& cluster) {
  auto session = AdminSession::open(address_of(cluster), patience_of(line));
  if (!session) throw unreachable(session.error());
  return std::move(*session);
}

std::unique_ptr<AdminSession> reach_queue(const task::ClusterSettings& cluster, std::chrono::milliseconds most) {
  try {
    auto session = AdminSession::open(address_of(cluster), most);
    return session ? std::move(*session) : nullptr;
  } catch (const Failure&) {
    return nullptr;
  }
}

void check_queue(const CommandLine& line, const task::ClusterSettings& cluster) {
  const auto session = AdminSession::open(address_of(cluster), std::chrono::seconds(3));
  const bool was_worker = remembered(line).worker != 0;  // such a daemon starts without its database, and tries again
  if (!session && !was_worker) throw unreachable(session.error());
  if (session)
    search_own_server(line, cluster, **session, [](const Objection& objection) { return !objection.may_pass(); });
}

std::unique_ptr<AdminSession> open_own_queue(const CommandLine& line, const task::ClusterSettings& cluster) {
  auto session = open_queue(line, cluster);
  search_own_server(line, cluster, *session, [](const Objection&) { return true; });
  return session;
}

OwnersQueue open_owners_queue(const CommandLine& line, const task::ClusterSettings& cluster,
                              std::initializer_list<Objection::Kind> bearable) {
  OwnersQueue queue{.session = open_queue(line, cluster)};
  search_server(line, cluster, *queue.session, [&]() -> std::string {
    const Answer answer =
        queue.session->run("SET LOCAL ROLE " + cluster.schema + "_owner; SELECT " + cluster.schema + ".hello_v1()");
    queue.left.clear();
    if (!answer && is_no_queue(answer.error().sqlstate)) return "";
    if (!answer) throw Failure(in_words(answer.error()));
    queue.left = objections_to(rpc::parse_value(answer->text()).as_object(), remembered(line), cluster.project);
    const auto worst = std::ranges::find_if(queue.left, [&](const Objection& objection) {
      return std::ranges::find(bearable, objection.kind) == bearable.end();
    });
    return worst == queue.left.end() ? "" : worst->why;
  });
  return queue;
}

std::string call_queue(AdminSession& session, const task::ClusterSettings& cluster, std::string_view function,
                       std::vector<Argument> arguments) {
  const Answer answer = session.call(cluster.schema, function, std::move(arguments));
  if (!answer) throw Failure(in_words(answer.error()));
  return std::string(answer->text());
}

std::string in_words(const Fault& fault) { return fault.message + cure_of(fault); }

std::string queue_outcome(const std::string& answer) {
  const boost::json::value parsed = rpc::parse_value(answer);
  const boost::json::value* const outcome = parsed.is_object() ? parsed.get_object().if_contains("outcome") : nullptr;
  return outcome != nullptr && outcome->is_string() ? std::string(outcome->get_string()) : answer;
}

}  // namespace duet::app
