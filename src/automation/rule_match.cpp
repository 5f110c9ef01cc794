#include "automation/rule_match.h"

#include <algorithm>
#include <array>
#include <compare>
#include <utility>
#include <variant>

#include "automation/template.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

struct EventType {
  std::string_view source;
  std::string_view type;
};

constexpr std::array<EventType, 8> event_types{{{"watch", "file.create"},
                                                {"watch", "file.modify"},
                                                {"watch", "file.delete"},
                                                {"schedule", "schedule.due"},
                                                {"task", "task.completed"},
                                                {"task", "task.failed"},
                                                {"task", "task.cancelled"},
                                                {"daemon", "daemon.started"}}};

std::string quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

bool may_come_from(const Trigger& trigger, std::string_view source) {
  return std::any_of(event_types.begin(), event_types.end(), [&](const EventType& event) {
    return event.source == source && (trigger.source.empty() || trigger.source == source) &&
           (trigger.type.empty() || trigger.type == event.type);
  });
}

template <typename Accepts>
std::string list_types(std::string_view EventType::*member, Accepts accepts) {
  std::string text;
  std::string_view last;
  for (const EventType& event : event_types) {
    if (!accepts(event) || event.*member == last) continue;
    last = event.*member;
    text += (text.empty() ? "" : ", ") + std::string(last);
  }
  return text;
}

void check_names(const Trigger& trigger) {
  const auto has_source = [&](const EventType& event) {
    return trigger.source.empty() || event.source == trigger.source;
  };
  const auto has_type = [&](const EventType& event) { return trigger.type.empty() || event.type == trigger.type; };
  if (std::none_of(event_types.begin(), event_types.end(), has_source)) {
    throw RuleFault("trigger.source", quote(trigger.source) + " is unknown; it is one of " +
                                          list_types(&EventType::source, [](const EventType&) { return true; }));
  }
  if (std::none_of(event_types.begin(), event_types.end(),
                   [&](const EventType& event) { return has_source(event) && has_type(event); })) {
    throw RuleFault("trigger.type",
                    quote(trigger.type) + " is unknown; it is one of " + list_types(&EventType::type, has_source));
  }
}

std::optional<Glob> read_pattern(const Trigger& trigger) {
  if (trigger.pattern.empty()) return std::nullopt;
  if (!may_come_from(trigger, "watch")) throw RuleFault("trigger.pattern", "only files have a path to compare it with");
  auto parsed = parse_glob(trigger.pattern);
  if (const auto* text = std::get_if<std::string>(&parsed)) throw RuleFault("trigger.pattern", *text);
  return std::get<Glob>(std::move(parsed));
}

std::optional<Cron> read_schedule(const Trigger& trigger) {
  const bool scheduled = trigger.source == "schedule" || trigger.type == "schedule.due";
  if (trigger.cron.empty()) {
    if (scheduled) throw RuleFault("trigger.cron", "a schedule needs one, such as \"0 9 * * mon-fri\"");
    return std::nullopt;
  }
  if (!may_come_from(trigger, "schedule")) throw RuleFault("trigger.cron", "it is for the source schedule");
  auto parsed = parse_cron(trigger.cron);
  if (const auto* text = std::get_if<std::string>(&parsed)) throw RuleFault("trigger.cron", *text);
  return std::get<Cron>(parsed);
}

Regex read_regex(const Condition& condition) {
  const json::string* text = condition.value.if_string();
  if (text == nullptr) throw RuleFault("conditions.value", "matches needs a regular expression, a text");
  auto parsed = parse_regex(*text);
  if (const auto* fault = std::get_if<std::string>(&parsed)) throw RuleFault("conditions.value", *fault);
  return std::get<Regex>(std::move(parsed));
}

// A file's name would become a command.
void check_action(const Action& action, std::string_view default_agent) {
  const std::string_view agent = action.agent.empty() ? default_agent : action.agent;
  if (action.type == Action::Type::agent && agent == "shell" && has_placeholders(action.prompt)) {
    throw RuleFault("action.prompt",
                    "the shell agent takes no {{...}}, since a file's name would become a command; use \"$DUET_PATH\"");
  }
}

std::partial_ordering compare(const json::value& left, const json::value& right) {
  if (left.is_number() && right.is_number()) return left.to_number<double>() <=> right.to_number<double>();
  if (left.is_string() && right.is_string()) return left.as_string().compare(right.as_string()) <=> 0;
  return left == right ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
}

bool contains(const json::value& whole, const json::value& part) {
  if (const json::array* list = whole.if_array()) {
    return std::any_of(list->begin(), list->end(),
                       [&](const json::value& member) { return compare(member, part) == 0; });
  }
  return whole.is_string() && part.is_string() && whole.as_string().find(part.as_string()) != json::string::npos;
}

}  // namespace

RuleMatch::RuleMatch(const Rule& rule, std::string_view default_agent)
    : source_(rule.trigger.source), type_(rule.trigger.type) {
  check_names(rule.trigger);
  check_action(rule.action, default_agent);
  pattern_ = read_pattern(rule.trigger);
  schedule_ = read_schedule(rule.trigger);
  if (schedule_) source_ = "schedule";
  for (const Condition& condition : rule.conditions) {
    checks_.push_back({condition});
    if (condition.op == Operator::matches) checks_.back().regex = read_regex(condition);
  }
}

bool RuleMatch::accepts(const Event& event) const {
  if (!source_.empty() && source_ != event.source) return false;
  if (!type_.empty() && type_ != event.type) return false;
  if (pattern_) {
    const json::value* path = event.payload.if_contains("path");
    if (path == nullptr || !path->is_string() || !path_matches(path->as_string())) return false;
  }
  return std::all_of(checks_.begin(), checks_.end(), [&](const Check& check) { return check.holds(event); });
}

bool RuleMatch::watches_files() const { return may_come_from({.source = source_, .type = type_}, "watch"); }

bool RuleMatch::wants_file(std::string_view path) const { return watches_files() && path_matches(path); }

bool RuleMatch::Check::holds(const Event& event) const {
  const json::value actual = field_of(event, condition.field).value_or(nullptr);
  const std::partial_ordering order = compare(actual, condition.value);
  switch (condition.op) {
    case Operator::eq:
      return !actual.is_null() && order == 0;
    case Operator::neq:
      return actual.is_null() || order != 0;
    case Operator::contains:
      return contains(actual, condition.value);
    case Operator::matches:
      return !actual.is_null() && regex->found_in(plain_text(actual));
    case Operator::gt:
      return order > 0;
    case Operator::lt:
      return order < 0;
    case Operator::gte:
      return order >= 0 && !actual.is_null();
    case Operator::lte:
      return order <= 0 && !actual.is_null();
    case Operator::exists:
      return !actual.is_null();
    case Operator::not_exists:
      return actual.is_null();
  }
  return false;
}

}  // namespace duet::automation
