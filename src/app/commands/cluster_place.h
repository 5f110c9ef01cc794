#pragma once

#include <memory>
#include <string>

#include "app/cli/command_line.h"
#include "task/cluster_settings.h"
#include "task/postgres/admin_session.h"

namespace duet::app {

/// For people: the settings name no queue.
std::string no_shared_queue();

/// The queue that the settings of the command's project name. Throws Failure if they name none, or are faulty.
task::ClusterSettings shared_queue(const CommandLine& line);

/// A connection to its database, as whoever the settings say. Throws Failure if there is none to be had. `--timeout`
/// says how long to try.
std::unique_ptr<task::postgres::AdminSession> open_queue(const CommandLine& line, const task::ClusterSettings& cluster);

/// A call of one of the schema's functions that gives one JSON text. Throws Failure, in the server's words.
std::string call_queue(task::postgres::AdminSession& session, const task::ClusterSettings& cluster,
                       std::string_view function, std::vector<task::postgres::Argument> arguments);

}  // namespace duet::app
