#include "automation/rulebook.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/json/parse.hpp>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

base::UtcTime time_of(const json::value& saved) {
  return base::UtcTime(std::chrono::milliseconds(saved.to_number<std::int64_t>()));
}

/// What is kept of a rule.
struct Saved {
  std::optional<bool> switched = {};
  std::optional<std::uint64_t> since = {};
  std::string asks = {};
  std::vector<base::UtcTime> fired = {};
  std::string cron = {};
  base::UtcTime seen = {};
  base::UtcTime latest = {};
};

// What a rule reacts to, and whether it is on. When that changes, earlier events no longer count: it reads the journal
// from where it stands then.
std::string asks_for(const ActiveRule& active) {
  const Trigger& trigger = active.rule.trigger;
  json::array asks{active.enabled(), trigger.source, trigger.type, trigger.pattern, trigger.cron};
  for (const Condition& condition : active.rule.conditions) {
    asks.push_back(json::array{condition.field, static_cast<int>(condition.op), condition.value});
  }
  return rpc::to_text(asks);
}

// Throws if it is anything else.
Saved read_saved(const json::object& saved) {
  Saved out;
  if (const json::value* switched = saved.if_contains("enabled")) out.switched = switched->as_bool();
  if (const json::value* since = saved.if_contains("since")) out.since = since->to_number<std::uint64_t>();
  if (const json::value* asks = saved.if_contains("asks")) out.asks = asks->as_string();
  if (const json::value* fired = saved.if_contains("fired")) {
    for (const json::value& at : fired->as_array()) out.fired.push_back(time_of(at));
  }
  if (const json::value* cron = saved.if_contains("cron")) {
    out.cron = cron->as_string();
    out.seen = out.latest = time_of(saved.at("seen"));
    if (const json::value* latest = saved.if_contains("latest")) out.latest = time_of(*latest);
  }
  return out;
}

std::optional<Saved> parse_saved(std::string_view text) {
  try {
    return read_saved(json::parse(text).as_object());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

tl::expected<Rulebook::Rules, std::string> Rulebook::compile(const std::vector<Rule>& rules) {
  Rules compiled;
  for (const Rule& rule : rules) {
    auto match = RuleMatch::of(rule);
    if (!match) return tl::unexpected(match.error());
    compiled.push_back(std::make_unique<ActiveRule>(ActiveRule{rule, std::move(*match)}));
  }
  return compiled;
}

void Rulebook::replace(Rules rules, base::UtcTime now, std::uint64_t seq) {
  faults_.clear();
  if (!rules_.empty()) remembered_ = saved();
  for (const auto& active : rules) {
    active->since = seq;
    if (active->match.schedule()) active->schedule.emplace(*active->match.schedule(), now);
    take_over(*active);
  }
  rules_ = std::move(rules);
  remembered_ = saved();
}

void Rulebook::take_over(ActiveRule& active) {
  if (ActiveRule* old = find(active.rule.id)) active.effects = std::move(old->effects);
  const auto remembered = remembered_.find(active.rule.id);
  if (remembered == remembered_.end() || remembered->second.empty()) return;
  const std::optional<Saved> known = parse_saved(remembered->second);
  if (!known) {
    faults_.push_back("what was known of rule " + active.rule.id + " cannot be read: it begins anew");
    return;
  }
  active.switched = known->switched;
  if (known->asks == asks_for(active)) active.since = known->since.value_or(active.since);
  for (const base::UtcTime at : known->fired) active.pace.fired(at);
  const bool same = active.schedule && known->cron == active.rule.trigger.cron;
  if (same) active.schedule.emplace(*active.match.schedule(), known->seen, known->latest);
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

std::string Rulebook::saved(const ActiveRule& active) {
  json::object saved{{"since", active.since}, {"asks", asks_for(active)}};
  if (active.switched) saved["enabled"] = *active.switched;
  if (active.schedule) {
    saved["cron"] = active.rule.trigger.cron;
    saved["seen"] = base::milliseconds_of(active.schedule->seen());
    if (active.schedule->latest() > active.schedule->seen())
      saved["latest"] = base::milliseconds_of(active.schedule->latest());
  }
  json::array& fired = saved["fired"].emplace_array();
  for (const base::UtcTime at : active.pace.firings()) fired.emplace_back(base::milliseconds_of(at));
  return rpc::to_text(saved);
}

std::map<std::string, std::string> Rulebook::saved() const {
  std::map<std::string, std::string> all;
  for (const auto& [id, text] : remembered_) {
    const std::optional<Saved> known = parse_saved(text);
    const bool was_switched = known && known->switched;
    all[id] = was_switched ? rpc::to_text(json::object{{"enabled", *known->switched}}) : "";
  }
  for (const auto& active : rules_) all[active->rule.id] = saved(*active);
  return all;
}

void Rulebook::load(std::string id, std::string_view saved) { remembered_[std::move(id)] = saved; }

}  // namespace duet::automation
