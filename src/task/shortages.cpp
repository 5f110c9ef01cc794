#include "task/shortages.h"

#include <algorithm>

#include "duet/base/utc_text.h"

namespace duet::task {

void Shortages::met_by(TaskId id, const std::string& what) {
  if (!machine_) machine_ = Shortage{.what = {}, .since = clock_.utc()};
  machine_->what = what;
  met_by_.insert(id);
}

void Shortages::not_tried(TaskId id) {
  met_by_.erase(id);
  if (met_by_.empty()) machine_.reset();
}

void Shortages::one_has_started() {
  met_by_.clear();
  machine_.reset();
}

void Shortages::set_limits(TaskId id, const std::string& problem) {
  if (problem.empty()) {
    limits_.erase(id);
  } else {
    limits_.try_emplace(id, Shortage{.what = {}, .since = clock_.utc()}).first->second.what = problem;
  }
}

void Shortages::forget(TaskId id) {
  not_tried(id);
  limits_.erase(id);
}

const Shortages::Shortage* Shortages::of_limits(TaskId id) const {
  const auto found = limits_.find(id);
  return found == limits_.end() ? nullptr : &found->second;
}

std::string Shortages::text() const {
  std::string text;
  if (machine_) {
    text = "tasks cannot be started, since " + base::utc_text(machine_->since) + ": " + machine_->what +
           ". It is tried again and again";
  }
  if (limits_.empty()) return text;
  const auto& [first, shortage] = *limits_.begin();
  const std::size_t others = limits_.size() - 1;
  const auto oldest = std::ranges::min_element(limits_, {}, [](const auto& task) { return task.second.since; });
  if (!text.empty()) text += "; ";
  text += to_text(first) + (others == 0 ? " waits" : " and " + std::to_string(others) + " more wait");
  text += ", since " + base::utc_text(oldest->second.since);
  return text + ": limits cannot be kept: " + shortage.what;
}

}  // namespace duet::task
