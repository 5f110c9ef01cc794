#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/command_line.h"
#include "app/project/project.h"
#include "task/cluster_settings.h"
#include "task/postgres/admin_session.h"
#include "task/postgres/server_check.h"

namespace duet::app {

/// For people: the settings name no queue.
std::string no_shared_queue();

/// The queue that the settings of the command's project name. Throws Failure if they name none, or are faulty.
task::ClusterSettings shared_queue(const CommandLine& line);

/// What the daemon of a project has seen of its queue; nothing if there was none.
task::postgres::WorkerMemory remembered_queue(const Project& project);

/// A connection to its database, as whoever the settings say. Throws Failure if there is none to be had. `--timeout`
/// says how long to try.
std::unique_ptr<task::postgres::AdminSession> open_queue(const CommandLine& line, const task::ClusterSettings& cluster);

/// The same if it can be had within that time; else nothing.
std::unique_ptr<task::postgres::AdminSession> reach_queue(const task::ClusterSettings& cluster,
                                                          std::chrono::milliseconds most);

/// Throws Failure if a daemon would refuse to start with it, as far as that can be told now.
void check_queue(const CommandLine& line, const task::ClusterSettings& cluster);

/// The same, of a server that a daemon of this project would take, too; of several hosts the first such one.
std::unique_ptr<task::postgres::AdminSession> open_own_queue(const CommandLine& line,
                                                             const task::ClusterSettings& cluster);

/// A connection for the owner of the schema, who may do with it what a daemon refuses.
struct OwnersQueue {
  std::unique_ptr<task::postgres::AdminSession> session;
  std::vector<task::postgres::Objection> left = {};  ///< what speaks against the server and was borne
};
/// Throws Failure for what is not `bearable`. Whether there is a queue, and who may look at it, is left to what
/// follows.
OwnersQueue open_owners_queue(const CommandLine& line, const task::ClusterSettings& cluster,
                              std::initializer_list<task::postgres::Objection::Kind> bearable);

/// A call of one of the schema's functions that gives one JSON text. Throws Failure, in the server's words.
std::string call_queue(task::postgres::AdminSession& session, const task::ClusterSettings& cluster,
                       std::string_view function, std::vector<task::postgres::Argument> arguments);
/// The `outcome` of such an answer; the answer itself if it has none.
std::string queue_outcome(const std::string& answer);
/// What the server said, and what to do about it.
std::string in_words(const task::postgres::Fault& fault);

}  // namespace duet::app
