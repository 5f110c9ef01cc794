#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/mcp/call.h"
#include "app/mcp/resources.h"

namespace duet::app::mcp {

// What `tasks/…` and `resources/read` answer: each answers its call, now or later, whatever happens.

/// The `taskId` of a request. Modern ones must have declared that they can have tasks.
tl::expected<std::string, rpc::Error> handle_in(const Envelope& envelope);

void answer_task(const std::shared_ptr<Call>& call, const std::string& handle);
/// When the task has ended.
void answer_task_result(const std::shared_ptr<Call>& call, const std::string& handle);
void answer_task_update(const std::shared_ptr<Call>& call, const std::string& handle);
void answer_task_cancel(const std::shared_ptr<Call>& call, const std::string& handle);

/// What `tasks/get` would answer, for a notification; nothing if there is no such task.
void read_given_task(Services& services, const std::string& handle, std::function<void(boost::json::object)> then);

/// `unknown`: what is answered about a task that there is not.
void answer_resource(const std::shared_ptr<Call>& call, const std::string& uri, const ResourceName& name,
                     const rpc::Error& unknown);

}  // namespace duet::app::mcp
