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

// Another time zone makes another schedule of it.
std::string cron_of(const Rule& rule) {
  return rule.timezone.empty() ? rule.trigger.cron : rule.trigger.cron + " " + rule.timezone;
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
  std::optional<Pending> pending = {};
  std::optional<base::UtcTime> gone = {};  // since then there is no such rule
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

json::object saved_pending(const Pending& pending) {
  return {{"event", save_event(pending.event)},
          {"number", pending.firing.number},
          {"at", base::milliseconds_of(pending.firing.at)},
          {"count", pending.firing.count},
          {"reason", pending.firing.reason},
          {"cause", pending.firing.cause}};
}

// Throws if it is anything else; the rule's id is not in it.
Pending read_pending(const json::object& saved) {
  Event event = load_event(saved.at("event").as_object());
  std::string by = event.cause;
  return {.event = std::move(event),
          .firing = {.number = saved.at("number").to_number<std::uint64_t>(),
                     .at = time_of(saved.at("at")),
                     .count = saved.at("count").to_number<std::size_t>(),
                     .reason = std::string(saved.at("reason").as_string()),
                     .cause = std::string(saved.at("cause").as_string()),
                     .by = std::move(by)}};
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
  if (const json::value* pending = saved.if_contains("pending")) out.pending = read_pending(pending->as_object());
  if (const json::value* gone = saved.if_contains("gone")) out.gone = time_of(*gone);
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
  remembered_ = saved();
  forget_long_absent(now);
  for (const auto& active : rules) {
    active->since = seq;
    if (active->match.schedule()) active->schedule.emplace(*active->match.schedule(), now);
    take_over(*active);
  }
  rules_ = std::move(rules);
  note_absent(now);
}

void Rulebook::forget_long_absent(base::UtcTime now) {
  for (auto& [id, text] : remembered_) {
    const std::optional<Saved> known = parse_saved(text);
    if (!known || !known->gone || now - *known->gone <= longest_absence) continue;
    if (known->pending) drop(id, known->pending->firing, "changed: the rule has not been in the settings for a week");
    text = known->switched ? rpc::to_text(json::object{{"enabled", *known->switched}}) : "";
  }
}

// All that is known of a rule has what it asks for in it; else there is nothing but its switch.
void Rulebook::note_absent(base::UtcTime now) {
  for (auto& [id, text] : remembered_) {
    if (find(id) != nullptr) continue;
    const std::optional<Saved> known = parse_saved(text);
    if (!known) text.clear();
    if (!known || known->gone || known->asks.empty()) continue;
    json::object saved = json::parse(text).as_object();
    saved["gone"] = base::milliseconds_of(now);
    text = rpc::to_text(saved);
  }
}

void Rulebook::drop_absent(const char* reason) {
  for (auto& [id, text] : remembered_) {
    const std::optional<Saved> known = find(id) == nullptr ? parse_saved(text) : std::nullopt;
    if (!known || !known->pending) continue;
    drop(id, known->pending->firing, reason);
    json::object saved = json::parse(text).as_object();
    saved.erase("pending");
    text = rpc::to_text(saved);
  }
}

void Rulebook::drop(const std::string& id, Firing firing, const char* reason) {
  firing.rule_id = id;
  firing.reason = reason;
  dropped_.push_back(std::move(firing));
}

void Rulebook::take_over(ActiveRule& active) {
  ActiveRule* const old = find(active.rule.id);
  if (old != nullptr) {
    active.live = std::move(old->live);
    active.submitting = old->submitting;
    active.chain = std::move(old->chain);
  }
  const auto remembered = remembered_.find(active.rule.id);
  if (remembered == remembered_.end() || remembered->second.empty()) return;
  const std::optional<Saved> known = parse_saved(remembered->second);
  if (!known) {
    faults_.push_back("what was known of rule " + active.rule.id + " cannot be read: it begins anew");
    return;
  }
  active.switched = known->switched;
  for (const base::UtcTime at : known->fired) active.pace.fired(at);
  const bool asks_the_same = known->asks == asks_for(active);
  if (known->pending && asks_the_same) {
    active.pending = known->pending;
    active.pending->firing.rule_id = active.rule.id;
  } else if (known->pending) {
    drop(active.rule.id, known->pending->firing, "changed: the rule asks for something else by now, or is off");
  }
  if (old != nullptr && asks_the_same) active.burst = std::move(old->burst);
  if (known->gone) return;
  if (asks_the_same) active.since = known->since.value_or(active.since);
  if (active.schedule && known->cron == cron_of(active.rule))
    active.schedule.emplace(*active.match.schedule(), known->seen, known->latest);
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
    saved["cron"] = cron_of(active.rule);
    saved["seen"] = base::milliseconds_of(active.schedule->seen());
    if (active.schedule->latest() > active.schedule->seen())
      saved["latest"] = base::milliseconds_of(active.schedule->latest());
  }
  if (active.pending) saved["pending"] = saved_pending(*active.pending);
  json::array& fired = saved["fired"].emplace_array();
  for (const base::UtcTime at : active.pace.firings()) fired.emplace_back(base::milliseconds_of(at));
  return rpc::to_text(saved);
}

std::map<std::string, std::string> Rulebook::saved() const {
  std::map<std::string, std::string> all = remembered_;
  for (const auto& active : rules_) all[active->rule.id] = saved(*active);
  return all;
}

void Rulebook::load(std::string id, std::string_view saved) { remembered_[std::move(id)] = saved; }

}  // namespace duet::automation
