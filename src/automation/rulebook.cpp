#include "automation/rulebook.h"

#include <algorithm>
#include <string>
#include <utility>

namespace duet::automation {
namespace {

namespace json = boost::json;

std::int64_t milliseconds(base::UtcTime at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

base::UtcTime time_of(const json::value& saved) {
  return base::UtcTime(std::chrono::milliseconds(saved.to_number<std::int64_t>()));
}

json::object save_rule(const ActiveRule& active) {
  json::object saved;
  if (active.switched) saved["enabled"] = *active.switched;
  if (active.schedule) {
    saved["cron"] = active.rule.trigger.cron;
    saved["seen"] = milliseconds(active.schedule->seen());
  }
  json::array& fired = saved["fired"].emplace_array();
  for (const base::UtcTime at : active.pace.firings()) fired.emplace_back(milliseconds(at));
  return saved;
}

void load_rule(ActiveRule& active, const json::object& saved) {
  if (const json::value* switched = saved.if_contains("enabled")) active.switched = switched->as_bool();
  if (const json::value* fired = saved.if_contains("fired")) {
    for (const json::value& at : fired->as_array()) active.pace.fired(time_of(at));
  }
  const json::value* cron = saved.if_contains("cron");
  if (cron != nullptr && active.schedule && cron->as_string() == active.rule.trigger.cron) {
    active.schedule.emplace(*active.match.schedule(), time_of(saved.at("seen")));
  }
}

}  // namespace

void Rulebook::replace(const std::vector<Rule>& rules, base::UtcTime now) {
  std::vector<std::unique_ptr<ActiveRule>> next;
  for (const Rule& rule : rules) {
    next.push_back(std::make_unique<ActiveRule>(ActiveRule{rule, RuleMatch(rule)}));
    ActiveRule& active = *next.back();
    if (active.match.schedule()) active.schedule.emplace(*active.match.schedule(), now);
  }
  if (!rules_.empty()) remembered_ = save();
  for (const auto& active : next) take_over(*active);
  rules_ = std::move(next);
  remembered_ = save();
}

void Rulebook::take_over(ActiveRule& active) const {
  if (const json::value* saved = remembered_.if_contains(active.rule.id)) load_rule(active, saved->as_object());
  if (ActiveRule* old = find(active.rule.id)) active.effects = std::move(old->effects);
}

ActiveRule* Rulebook::find(std::string_view id) const {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [id](const auto& active) { return active->rule.id == id; });
  return found == rules_.end() ? nullptr : found->get();
}

json::array Rulebook::ids() const {
  json::array ids;
  for (const auto& active : rules_) ids.emplace_back(active->rule.id);
  return ids;
}

json::object Rulebook::save() const {
  json::object saved;
  for (const auto& [id, rule] : remembered_) {
    const json::value* switched = rule.as_object().if_contains("enabled");
    if (switched != nullptr) saved[id] = json::object{{"enabled", *switched}};
  }
  for (const auto& active : rules_) saved[active->rule.id] = save_rule(*active);
  return saved;
}

}  // namespace duet::automation
