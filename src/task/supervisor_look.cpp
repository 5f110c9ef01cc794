#include <utility>

#include "task/supervisor.h"

// What the queue is asked about as a whole, and what rules read of it.

namespace duet::task {

void Supervisor::set_paused(const std::optional<std::string>& group, bool paused, const Paused& done) {
  if (group) {
    // Also one that the settings do not have any more, if it is paused or still has tasks. An empty name would be the
    // whole queue.
    const bool is_in_use = !group->empty() && (gate_.is_paused(*group) || queue_.queued_in_group(*group) > 0 ||
                                               running_in_group(*group) > 0);
    const auto refusal = is_in_use ? std::nullopt : check_group(*group);
    if (refusal) return done(tl::unexpected(*refusal));
  }
  gate_.set_paused(group, paused, [this, done](const tl::expected<bool, rpc::Error>& changed) {
    if (!changed) return done(tl::unexpected(changed.error()));
    done(Pause{*changed, gate_.paused_groups()});
  });
}

void Supervisor::release_agent(const std::string& agent, const Changed& released) {
  if (!gate_.is_held(agent) && agents_.find(agent) == nullptr) {
    return released(tl::unexpected(agents_.unknown(agent, "name")));
  }
  gate_.release(agent, released);
}

void Supervisor::look(const Stood& stood) {
  Standing standing{.paused = gate_.is_paused(), .counts = counts_};
  for (const std::string& name : groups()) {
    standing.groups[name] = {
        .paused = gate_.is_paused(name), .running = running_in_group(name), .queued = queue_.queued_in_group(name)};
  }
  for (const auto& [name, agent] : agents_.all()) {
    standing.agents[name] = {.running = running_for_agent(name), .queued = queue_.queued_for_agent(name)};
  }
  for (const auto& [agent, hold] : gate_.holds()) standing.holds[agent] = {hold.until, hold.task, hold.text};
  stood(standing);
}

// The newest of one state, or of all, have an index of their own.
void Supervisor::list(const ListQuery& query, const std::function<bool(const Task&)>& each,
                      const std::function<void(const std::optional<rpc::Error>&)>& done) {
  constexpr TaskId behind_all = std::numeric_limits<std::int64_t>::max();
  const bool is_plain =
      !query.group && !query.agent && query.labels.empty() && !query.since && query.sort == ListQuery::Sort::newest;
  const auto read = store_.read([&](StoreReader& tasks) {
    if (is_plain) return tasks.list(query.state, query.from.value_or(behind_all), query.limit, each);
    tasks.list(query, each);
  });
  done(read ? std::nullopt : std::optional(read.error()));
}

tl::expected<std::optional<Task>, rpc::Error> Supervisor::known(TaskId id) {
  return store_.read([id](StoreReader& tasks) { return tasks.find(id); });
}

void Supervisor::events_after(std::uint64_t seq, std::size_t limit, const Told& told) {
  told(store_.read([&](StoreReader& tasks) {
    std::vector<Event> events;
    tasks.events_after(seq, limit, [&](Event event) { events.push_back(std::move(event)); });
    return events;
  }));
}

tl::expected<std::uint64_t, rpc::Error> Supervisor::newest_event() {
  return store_.read([](StoreReader& tasks) {
    std::uint64_t newest = 0;
    tasks.newest_events([&newest](const Event& event) {
      newest = event.seq;
      return false;
    });
    return newest;
  });
}

}  // namespace duet::task
