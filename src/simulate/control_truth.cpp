#include "simulate/control_truth.h"

#include <chrono>
#include <utility>

namespace duet::simulate {

using task::TaskId;

std::uint64_t ControlTruth::asked(const std::string& name, bool shut) {
  Switch& known = switches_[name];
  (shut ? known.shut_asked : known.open_asked) = ++requests_;
  return requests_;
}

void ControlTruth::answered(const std::string& name, std::uint64_t number, bool shut) {
  Switch& known = switches_[name];
  (shut ? known.shut_answered : known.open_answered) = number;
}

bool ControlTruth::is_certainly_shut(const std::string& name) const {
  const auto found = switches_.find(name);
  return found != switches_.end() && found->second.shut_answered > found->second.open_asked;
}

bool ControlTruth::is_certainly_open(const std::string& name) const {
  const auto found = switches_.find(name);
  return found == switches_.end() || found->second.shut_asked == 0 ||
         found->second.open_answered > found->second.shut_asked;
}

void ControlTruth::takes(TaskId id, const task::Submission& submission, base::TimePoint asked_at) {
  const auto [place, is_new] = places_.try_emplace(id);
  if (!is_new) return;
  if (!submission.group.empty()) place->second.group = submission.group;
  if (submission.delay) place->second.earliest = asked_at + *submission.delay;
  place->second.not_before = submission.not_before;
}

void ControlTruth::edited(TaskId id, bool kept, const std::string& group) {
  Place& place = places_[id];
  --place.edits;
  if (kept) {
    place.group = group;
    place.in_doubt = place.edits > 0;
  } else {
    place.in_doubt = true;
  }
}

void ControlTruth::queued_again(TaskId id) {
  asked(task(id), false);
  places_[id].earliest.reset();
  places_[id].not_before.reset();
}

std::optional<std::string> ControlTruth::group_of(TaskId id) const {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.edits > 0 || found->second.in_doubt) return std::nullopt;
  return found->second.group;
}

std::optional<std::string> ControlTruth::why_not(TaskId id, const std::string& agent, bool jumped) const {
  if (is_certainly_shut(whole_queue())) return "the queue is paused";
  if (is_certainly_shut(task(id))) return "it is held";
  const std::optional<std::string> group_name = group_of(id);
  if (group_name && is_certainly_shut(group(*group_name))) return "its group " + *group_name + " is paused";
  if (jumped) return std::nullopt;
  if (const auto held = held_.find(agent); held != held_.end() && clock_.utc() < held->second) {
    return "its agent is held";
  }
  const auto place = places_.find(id);
  if (place == places_.end()) return std::nullopt;
  constexpr std::chrono::milliseconds rounding{2};  // times are written down in milliseconds
  if (place->second.earliest && clock_.now() + rounding < *place->second.earliest) return "its delay is not over";
  if (place->second.not_before && clock_.utc() + rounding < *place->second.not_before) return "its time has not come";
  return std::nullopt;
}

std::optional<std::string> ControlTruth::passed_over(const std::string& group, const std::set<std::string>& others) {
  const std::uint64_t last = std::exchange(last_start_[group], ++starts_);
  for (const std::string& other : others) {
    if (other != group && last_start_[other] < last) return other;
  }
  return std::nullopt;
}

}  // namespace duet::simulate
