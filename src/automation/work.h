#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include <boost/json/object.hpp>

#include "automation/event.h"
#include "automation/programs.h"
#include "automation/rule.h"
#include "automation/template.h"
#include "task/task.h"

namespace duet::automation {

/// What a firing does: a task, a program, or else a notice.
struct Work {
  std::optional<task::Submission> submission = {};
  std::optional<Program> program = {};
  std::string notice = {};
};

/// What a rule does about an event. The task is told of its event by its environment, and carries its origin.
std::variant<Work, MissingField> work_of(const Rule& rule, const Event& event, const std::string& firing_id,
                                         std::size_t count);

/// What it would do, for people: `{action, agent?, prompt?, message?, command?}`; long texts are cut.
boost::json::object shown_work(const Work& work);
/// What set it off, in a few words: `file.modify src/a.c`.
std::string cause_of(const Event& event);

boost::json::object save_work(const Work& work);
/// Throws if it is not what save_work() made.
Work load_work(const boost::json::object& saved);

/// The rule that a task comes from, and how many tasks and programs of rules led to it, itself included. None if the
/// task does not say so, or says anything else: whoever submits one may write there what they like.
struct Origin {
  std::string rule_id;
  unsigned depth;
  std::string cause;  ///< the task before it, or the firing that has run a program; empty: none
};
std::optional<Origin> origin_of(const task::Task& task);

}  // namespace duet::automation
