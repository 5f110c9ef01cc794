#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <boost/describe/class.hpp>

#include "app/doors/roles.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/rpc/error.h"
#include "task/queue.h"

namespace duet::app {

/// What the methods about tasks of one daemon share.
struct TaskContext {
  task::Queue& queue;
  /// How many submits of each connection are on their way to the disk. They hold up no later request, so that they can
  /// share a commit; but a request that asks for what was submitted before it has to find it.
  std::unordered_map<std::uint64_t, std::size_t> submitting = {};
  /// The task that each connection was found to come from: a walk through /proc for every submit would be dear.
  std::unordered_map<std::uint64_t, std::optional<task::TaskId>> asking = {};
};
using SharedTaskContext = std::shared_ptr<TaskContext>;
template <typename Result>
using SharedReply = std::shared_ptr<peer::Reply<Result>>;

template <typename Params, typename Result>
using Act = void (*)(TaskContext& context, const Params& params, const SharedReply<Result>& reply);

template <typename Params, typename Result>
void act_or_refuse(Act<Params, Result> act, TaskContext& context, const Params& params,
                   const SharedReply<Result>& reply) {
  try {
    act(context, params, reply);
  } catch (const rpc::Error& error) {
    reply->fail(error);
  }
}

/// Adds a method that is handled after the submits that came before it. Params with a member `by` are told who asks,
/// with `is_owner` whether he may do everything.
template <typename Params, typename Result>
peer::AddedMethod add_in_order(peer::Methods& methods, const SharedTaskContext& context, std::string name,
                               std::string summary, Act<Params, Result> act) {
  const auto handler = [context, act](Params params, const peer::Request& request, peer::Reply<Result> reply) {
    const SharedReply<Result> kept = shared(std::move(reply));
    if constexpr (requires { params.by; }) params.by = asked_by(request.conversation.peer());
    if constexpr (requires { params.is_owner; }) params.is_owner = is_owner(request.conversation.peer());
    if (!context->submitting.contains(request.conversation.peer().connection)) {
      return act_or_refuse(act, *context, params, kept);
    }
    context->queue.after_changes(
        [context, act, params = std::move(params), kept] { act_or_refuse(act, *context, params, kept); });
  };
  return methods.add(std::move(name), std::move(summary), handler);
}

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

struct TaskName {
  std::string taskId;
};
BOOST_DESCRIBE_STRUCT(TaskName, (), (taskId))

inline constexpr const char* task_id_summary = "The id of a task, as in task-7";

}  // namespace duet::app
