#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json/array.hpp>

#include "automation/engine.h"
#include "automation/template.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/json_text.h"
#include "task/refusal.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

rpc::Error no_such_rule(std::string_view id, const json::array& ids) {
  constexpr std::size_t shown_characters = 64;
  return rpc::invalid_params("ruleId", "the id of a rule", rpc::first_characters(id, shown_characters), ids);
}

rpc::Error misplaced(std::string_view param, const std::string& source) {
  return rpc::invalid_params(param, "left out for a rule of source " + source, "given");
}

// The settings name it, or it follows from what they name.
std::string source_of(const Trigger& trigger) {
  if (!trigger.source.empty()) return trigger.source;
  if (!trigger.cron.empty()) return "schedule";
  return trigger.type.starts_with("task.") ? "task" : trigger.type.starts_with("daemon.") ? "daemon" : "watch";
}

json::object payload_of(const task::Task& task) {
  json::object payload{{"taskId", task::to_text(task.id)},
                       {"agent", task.agent},
                       {"state", std::string(task::name_of(task.progress.state))},
                       {"exitCode", nullptr},
                       {"signal", nullptr}};
  if (task.progress.exit_code) payload["exitCode"] = *task.progress.exit_code;
  if (!task.progress.signal.empty()) payload["signal"] = task.progress.signal;
  return payload;
}

json::array shown_verdicts(const std::vector<RuleMatch::Verdict>& verdicts) {
  json::array shown;
  for (const RuleMatch::Verdict& verdict : verdicts) {
    shown.push_back(json::object{{"asks", verdict.asks}, {"holds", verdict.holds}});
  }
  return shown;
}

}  // namespace

// As the source of the rule would make it.
Event Engine::event_for(const ActiveRule& active, const Question& question) {
  const Trigger& trigger = active.rule.trigger;
  const std::string source = source_of(trigger);
  if (question.path && source != "watch") throw misplaced("path", source);
  if (question.task && source != "task") throw misplaced("taskId", source);
  if (question.time && source != "schedule") throw misplaced("time", source);
  if (question.task) {
    const auto found = queue_.known(*question.task);
    if (!found) throw rpc::Error(found.error());
    if (!*found) throw task::unknown_task(task::to_text(*question.task));
    const task::Task* const task = &**found;
    json::object payload = payload_of(*task);
    std::string type = "task." + plain_text(payload["state"]);
    Event event{.source = "task", .type = std::move(type), .payload = std::move(payload)};
    if (const std::optional<Origin> origin = origin_of(*task)) {
      event.depth = origin->depth;
      event.cause = task::to_text(task->id);
    }
    return event;
  }
  Event event{.source = source, .type = trigger.type};
  if (event.source == "watch") {
    if (event.type.empty()) event.type = "file.modify";
    event.payload = {{"path", question.path ? json::value(*question.path) : json::value(nullptr)},
                     {"paths", question.path ? json::array{json::value(*question.path)} : json::array()}};
  } else if (event.source == "schedule") {
    event.type = "schedule.due";
    event.payload = {{"time", base::utc_text(question.time.value_or(loop_.clock().utc()))}};
  } else if (event.source == "task") {
    if (event.type.empty()) event.type = "task.completed";
    for (const char* name : {"taskId", "agent", "state", "exitCode", "signal"}) event.payload[name] = nullptr;
    event.payload["state"] = event.type.substr(event.type.find('.') + 1);
  } else {
    event.type = "daemon.started";
  }
  return event;
}

// Of a file: none if it would be told of.
std::optional<std::string> Engine::why_no_file(const ActiveRule& active, const Event& event) const {
  if (event.source != "watch" || !active.match.watches_files() || !watch_) return std::nullopt;
  const json::value& path = event.payload.at("path");
  return path.is_string() ? watch_->why_not(path.get_string()) : std::nullopt;
}

// What would hold it back now; empty: nothing.
std::string Engine::hindrance_of(const ActiveRule& active, const Event& event) const {
  if (!enabled_) return "automation is off";
  if (!active.enabled()) return "the rule is off";
  if (const std::optional<std::string> why = why_no_file(active, event)) return "the file is not watched: " + *why;
  if (event.depth >= max_chain_) return chain_limit();
  const bool restarts = active.rule.when_busy == WhenBusy::restart;
  if (waits_for_tasks(active) && !restarts) {
    return std::string(busy) + (active.rule.when_busy == WhenBusy::skip ? "" : "; it would happen then");
  }
  const std::string_view refusal = active.pace.refusal(loop_.clock().utc(), active.rule.cooldown);
  if (!refusal.empty())
    return std::string(refusal) + (happens_later(active, refusal) ? ": it would happen at its end" : "");
  if (!waits_for_tasks(active) || asks_although_busy(active)) return {};
  return std::string(busy) + ": it would be cancelled, and this happen then";
}

json::object Engine::test(std::string_view rule_id, const Question& question) {
  ActiveRule* const active = rules_.find(rule_id);
  if (active == nullptr) throw no_such_rule(rule_id, rules_.ids());
  const Event event = event_for(*active, question);
  std::vector<RuleMatch::Verdict> verdicts = active->match.explain(event);
  if (active->match.schedule() && question.time) {
    const base::UtcTime minute = std::chrono::floor<std::chrono::minutes>(*question.time);
    verdicts.push_back({"trigger.cron " + active->rule.trigger.cron,
                        active->match.schedule()->next(minute - std::chrono::seconds(1)) == minute});
  }
  const bool matches = std::ranges::all_of(verdicts, &RuleMatch::Verdict::holds);
  json::object result{
      {"ruleId", active->rule.id},
      {"matches", matches},
      {"event", json::object{{"source", event.source}, {"type", event.type}, {"payload", event.payload}}},
      {"conditions", shown_verdicts(verdicts)},
      {"requiresApproval", active->rule.requires_approval}};
  std::string hindrance = hindrance_of(*active, event);
  auto work = work_of(active->rule, event, "firing-0", 1);
  if (const auto* missing = std::get_if<MissingField>(&work)) {
    if (hindrance.empty()) hindrance = "template: the event has no " + missing->name;
  } else {
    Work& would = std::get<Work>(work);
    if (would.submission) {
      tl::expected<std::string, rpc::Error> agent = queue_.choose_agent(*would.submission);
      if (agent) would.submission->agent = std::move(*agent);
      if (!agent && hindrance.empty()) hindrance = agent.error().message();
    }
    result["would"] = shown_work(would);
  }
  result["fires"] = matches && hindrance.empty();
  if (!hindrance.empty()) result["hindrance"] = hindrance;
  if (active->match.schedule()) {
    const base::UtcTime from = question.time.value_or(loop_.clock().utc());
    result["nextAt"] = base::utc_text(active->match.schedule()->next(from));
  }
  return result;
}

void Engine::fire_now(std::string_view rule_id, const Question& question, const Fired& fired) {
  ActiveRule* const active = rules_.find(rule_id);
  if (active == nullptr) throw no_such_rule(rule_id, rules_.ids());
  const Event event = event_for(*active, question);
  Firing firing = new_firing(*active, event, 1);
  firing.cause = "by hand";
  if (const std::optional<rpc::Error> refusal = why_not_now(firing)) return fired(tl::unexpected(*refusal));
  hands_[firing.number] = fired;
  active->pace.fired(firing.at);
  active->chain.clear();
  fire(*active, event, std::move(firing));
}

// Whoever fired it by hand hears what became of it.
void Engine::answer_hand(std::uint64_t number) {
  const auto asked = hands_.extract(number);
  if (asked.empty()) return;
  json::object result{{"id", id_of({.number = number})}, {"outcome", "fired"}};
  if (const Firing* const firing = firings_.find(number)) {
    if (firing->held()) {
      result["outcome"] = "held";
      result["reason"] = firing->reason;
    }
    if (!firing->task_id.empty()) result["taskId"] = firing->task_id;
  }
  asked.mapped()(std::move(result));
}

json::object Engine::history(std::string_view rule_id) const {
  if (rules_.find(rule_id) == nullptr) throw no_such_rule(rule_id, rules_.ids());
  return {{"ruleId", std::string(rule_id)}, {"firings", firings_.shown(rule_id)}};
}

}  // namespace duet::automation
