#include "task/refusal.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/rpc/json_text.h"

namespace duet::task {
namespace {

constexpr std::size_t shown_characters = 64;

rpc::Error refusal(int code, std::string message, const boost::json::object& data) {
  return {code, std::move(message), data};
}

std::string unavailable_text(std::string_view why) { return "Subsystem unavailable: " + std::string(why); }

}  // namespace

rpc::Error unknown_task(std::string_view id) {
  return refusal(-32000, "Task not found", {{"taskId", rpc::first_characters(id, shown_characters)}});
}

rpc::Error not_cancellable(TaskId id, State state) { return wrong_state(id, state, "Task not cancellable", "ended"); }

rpc::Error wrong_state(TaskId id, State state, std::string_view message, std::string_view reason) {
  return refusal(-32001, std::string(message),
                 {{"taskId", to_text(id)}, {"state", name_of(state)}, {"reason", reason}});
}

rpc::Error key_is_taken(TaskId id, const std::vector<std::string>& differences) {
  boost::json::array names;
  for (const std::string& name : differences) names.emplace_back(name);
  return refusal(rpc::code::invalid_params, "Invalid params",
                 {{"param", "key"},
                  {"expected", "a key that was not used for another submission"},
                  {"received", "string"},
                  {"taskId", to_text(id)},
                  {"differs", std::move(names)}});
}

rpc::Error dependency_cycle(TaskId id, TaskId dependency) {
  return refusal(rpc::code::invalid_params, "Invalid params",
                 {{"param", "after"},
                  {"expected", "tasks that do not come after " + to_text(id)},
                  {"received", to_text(dependency)},
                  {"reason", "cycle"}});
}

rpc::Error unknown_group(std::string_view name, const std::vector<std::string>& known) {
  boost::json::array names;
  for (const std::string& group : known) names.emplace_back(group);
  return rpc::invalid_params("group", "the name of a group", rpc::first_characters(name, shown_characters), names);
}

rpc::Error untrusted_group(std::string_view name, const Distrust& distrust) {
  const std::string group(rpc::first_characters(name, shown_characters));
  return refusal(-32003,
                 unavailable_text("the group '" + group + "' is one of the project's settings, and " + distrust.why +
                                  ": " + distrust.cure),
                 {{"subsystem", "supervisor"}, {"group", group}, {"reason", "untrusted"}});
}

rpc::Error queue_full(std::size_t capacity) { return refusal(-32002, "Queue full", {{"capacity", capacity}}); }

rpc::Error env_is_gone(TaskId id) {
  return refusal(rpc::code::invalid_params, "Invalid params",
                 {{"param", "taskId"},
                  {"expected", "a task without env, which a shared queue erases: submit it anew, with its env"},
                  {"received", to_text(id)},
                  {"reason", "env-gone"}});
}

rpc::Error unavailable(std::string_view subsystem, std::string_view why) {
  return refusal(-32003, unavailable_text(why), {{"subsystem", subsystem}});
}

rpc::Error queue_is_away(std::string_view why) {
  return refusal(-32003, unavailable_text(why), {{"subsystem", "store"}, {"away", true}});
}

rpc::Error limits_not_kept(std::string_view why) {
  return refusal(-32003, unavailable_text("limits cannot be kept: " + std::string(why)),
                 {{"subsystem", "limits"}, {"reason", "limits-not-kept"}});
}

rpc::Error too_deep(TaskId asking, unsigned most) {
  return refusal(-32003,
                 unavailable_text(to_text(asking) + " asks for it, and " + std::to_string(most) +
                                  " tasks led to that one already, each by submitting the next"),
                 {{"subsystem", "supervisor"}, {"reason", "too-deep"}, {"taskId", to_text(asking)}});
}

rpc::Error needs_shared_queue(std::string_view param) {
  return refusal(rpc::code::invalid_params, "Invalid params",
                 {{"param", param},
                  {"expected", "nothing, without a queue that machines share: see the setting `store`"},
                  {"received", "a value"},
                  {"reason", "not-shared"}});
}

rpc::Error is_stopping() { return unavailable("supervisor", "the daemon is stopping"); }

rpc::Error no_agent(std::string_view why, std::string_view set) {
  return refusal(-32003, unavailable_text(why), {{"subsystem", "agents"}, {"set", set}});
}

static rpc::Error not_trusted(std::string_view agent, const std::string& text) {
  return refusal(-32003, unavailable_text(text), {{"subsystem", "agents"}, {"agent", agent}, {"reason", "untrusted"}});
}

rpc::Error untrusted_agent(std::string_view name, const Distrust& distrust) {
  const std::string agent(rpc::first_characters(name, shown_characters));
  return not_trusted(
      agent, "the agent '" + agent + "' is one of the project's settings, and " + distrust.why + ": " + distrust.cure);
}

rpc::Error untrusted_default_agent(std::string_view name, const Distrust& distrust) {
  const std::string agent(rpc::first_characters(name, shown_characters));
  return not_trusted(agent, "the default agent is '" + agent + "' by the project's settings, and " + distrust.why +
                                ": name another agent, or " + distrust.cure);
}

}  // namespace duet::task
