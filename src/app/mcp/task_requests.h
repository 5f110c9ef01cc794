#pragma once

#include <functional>
#include <memory>
#include <set>
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

/// Which of these tasks, by id or handle, there are; none of them if no daemon is to be had.
void find_tasks(Services& services, const std::set<std::string>& names,
                const std::function<void(const std::set<std::string>&)>& then);

/// Goes on if there is what the name names; else the call fails with `unknown`.
void check_resource(const std::shared_ptr<Call>& call, const ResourceName& name, const rpc::Error& unknown,
                    const std::function<void()>& then);

/// `unknown`: what is answered about a task that there is not.
void answer_resource(const std::shared_ptr<Call>& call, const std::string& uri, const ResourceName& name,
                     const rpc::Error& unknown);

}  // namespace duet::app::mcp
