#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include <boost/json/object.hpp>

#include "automation/event.h"
#include "automation/rule.h"
#include "automation/template.h"
#include "task/task.h"

namespace duet::automation {

/// What a firing does: a task, or else a notice.
struct Work {
  std::optional<task::Submission> submission = {};
  std::string notice = {};
};

/// What a rule does about an event. The task is told of its event by its environment, and carries its origin.
std::variant<Work, MissingField> work_of(const Rule& rule, const Event& event, const std::string& firing_id,
                                         std::size_t count);

boost::json::object save_work(const Work& work);
/// Throws if it is not what save_work() made.
Work load_work(const boost::json::object& saved);

/// The rule that a task comes from, and how many tasks of rules led to it, itself included.
struct Origin {
  std::string rule_id;
  unsigned depth;
};
std::optional<Origin> origin_of(const task::Task& task);

}  // namespace duet::automation
