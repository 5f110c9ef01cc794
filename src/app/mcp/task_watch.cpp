#include "app/mcp/task_watch.h"

#include <utility>
#include <vector>

#include <boost/json/value.hpp>

namespace duet::app::mcp {
namespace {

bool is_end(std::string_view kind) {
  return kind == "taskCompleted" || kind == "taskFailed" || kind == "taskCancelled" || kind == "tasksRemoved";
}

}  // namespace

EventFeed& TaskWatch::feed() {
  if (!feed_) {
    feed_ = make_feed_(
        {.on_event = [this](std::string_view kind, const boost::json::object& params) { take(kind, params); },
         .on_gap = [this] { look_at_all(nullptr); },
         .on_failed = [this](const ToolError& error) { look_at_all(&error); },
         .is_needed = [this] { return !waits_.empty() || happened_; },
         .may_start = [this] { return !waits_.empty() || (happened_ && starts_daemon_); }});
  }
  return *feed_;
}

TaskWatch::Ticket TaskWatch::wait(std::string task, Changed changed) {
  const Ticket ticket = ++last_;
  waits_.emplace(ticket, Wait{std::move(task), std::move(changed)});
  feed().want([this, ticket] {
    const auto found = waits_.find(ticket);
    if (found == waits_.end()) return;
    const Changed call = found->second.changed;
    call(nullptr);
  });
  return ticket;
}

void TaskWatch::listen(Happened happened, bool starts_daemon, std::function<void()> live) {
  happened_ = std::move(happened);
  starts_daemon_ = starts_daemon;
  feed().want(std::move(live));
}

void TaskWatch::set_outputs(std::set<std::string> tasks) {
  if (feed_ || !tasks.empty()) feed().set_outputs(std::move(tasks));
}

void TaskWatch::take(std::string_view kind, const boost::json::object& params) {
  const boost::json::value* const named = params.if_contains("taskId");
  const std::string_view task = named != nullptr && named->is_string() ? named->get_string() : std::string_view();
  if (is_end(kind)) {
    std::vector<Changed> told;
    for (const auto& [ticket, wait] : waits_) {
      if (wait.task == task || task.empty()) told.push_back(wait.changed);
    }
    for (const Changed& changed : told) changed(nullptr);
  }
  if (happened_) happened_(kind, task);
}

void TaskWatch::look_at_all(const ToolError* failure) {
  std::vector<Changed> told;
  for (const auto& [ticket, wait] : waits_) told.push_back(wait.changed);
  for (const Changed& changed : told) changed(failure);
  if (happened_ && failure == nullptr) happened_({}, {});
}

}  // namespace duet::app::mcp
