#include "task/cluster_settings.h"

#include <algorithm>

namespace duet::task {

std::vector<std::string> accepted_agents(const ClusterSettings& cluster, const TaskSettings& tasks) {
  std::vector<std::string> names;
  if (cluster.accept) {
    const auto is_here = [&](const std::string& name) {
      return name == "claude" || name == "shell" || tasks.agents.contains(name);
    };
    std::ranges::copy_if(*cluster.accept, std::back_inserter(names), is_here);
  } else {
    for (const auto& [name, agent] : tasks.agents) {
      if (name != "shell") names.push_back(name);
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string keep_until_restart(const ClusterSettings& running, ClusterSettings& next) {
  std::string differs;
  const auto keep = [&differs](const char* name, const auto& before, auto& after) {
    if (before == after) return;
    after = before;
    differs += (differs.empty() ? "" : ", ") + std::string(name);
  };
  const bool was_shared = running.store.has_value();
  keep("store", running.store, next.store);
  if (was_shared) {
    keep("cluster.schema", running.schema, next.schema);
    keep("cluster.project", running.project, next.project);
    if (next.name.empty()) next.name = running.name;
    keep("cluster.name", running.name, next.name);
    keep("cluster.run", running.run, next.run);
  }
  return differs.empty() ? "" : "changed, and used after a restart only: " + differs + "; 'duet-rpc daemon restart'";
}

}  // namespace duet::task
