#include "app/commands/cluster_place.h"

#include <chrono>
#include <stdexcept>
#include <utility>
#include <variant>

#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/settings/settings.h"

namespace duet::app {
namespace {

using namespace task::postgres;

// What the server says of a function that it does not have, or that this role may not call.
std::string cure_of(const Fault& fault) {
  if (fault.sqlstate == "42883" || fault.sqlstate == "3F000")
    return ": is there a queue in this schema? 'duet-rpc cluster init' makes it, 'cluster migrate' brings it up to "
           "date";
  if (fault.sqlstate == "42501") return ": the role of `store` may not do this; docs/cluster.md says which one may";
  return "";
}

}  // namespace

std::string no_shared_queue() {
  return "no queue is shared here: neither the setting `store` nor DUET_RPC_STORE names a database, such as "
         "postgresql://duet@db/work";
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
  try {
    const auto address = StoreAddress::parse(*cluster.store, {.name = cluster.name, .insecure = cluster.insecure});
    if (!address) throw Failure("store: " + address.error());
    const auto patience = line.duration("timeout").value_or(std::chrono::seconds(30));
    auto session = AdminSession::open(*address, patience);
    if (!session) throw Failure("the database of the queue cannot be reached: " + session.error());
    return std::move(*session);
  } catch (const Failure&) {
    throw;
  } catch (const std::runtime_error& missing) {  // libpq itself
    throw Failure(missing.what());
  }
}

std::string call_queue(AdminSession& session, const task::ClusterSettings& cluster, std::string_view function,
                       std::vector<Argument> arguments) {
  const Answer answer = session.call(cluster.schema, function, std::move(arguments));
  if (!answer) throw Failure(answer.error().message + cure_of(answer.error()));
  return std::string(answer->text());
}

}  // namespace duet::app
