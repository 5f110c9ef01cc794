#include "task/refusal.h"

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

rpc::Error not_cancellable(TaskId id, State state) {
  return refusal(-32001, "Task not cancellable", {{"taskId", to_text(id)}, {"state", name_of(state)}});
}

rpc::Error queue_full(std::size_t capacity) { return refusal(-32002, "Queue full", {{"capacity", capacity}}); }

rpc::Error unavailable(std::string_view subsystem, std::string_view why) {
  return refusal(-32003, unavailable_text(why), {{"subsystem", subsystem}});
}

rpc::Error is_stopping() { return unavailable("supervisor", "the daemon is stopping"); }

rpc::Error no_agent(std::string_view why, std::string_view set) {
  return refusal(-32003, unavailable_text(why), {{"subsystem", "agents"}, {"set", set}});
}

}  // namespace duet::task
