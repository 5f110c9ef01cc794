#include "automation/rule_match.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

namespace duet::automation {
namespace {

namespace json = boost::json;

// What is wrong with it, if anything.
template <typename Value>
std::string put(std::optional<Value>& into, std::variant<Value, std::string> parsed) {
  if (auto* fault = std::get_if<std::string>(&parsed)) return std::move(*fault);
  into = std::get<Value>(std::move(parsed));
  return {};
}

std::string_view name_of(Operator op) {
  constexpr std::string_view names[] = {"eq", "neq", "contains", "matches", "gt",
                                        "lt", "gte", "lte",      "exists",  "not_exists"};
  return names[static_cast<std::size_t>(op)];
}

std::partial_ordering compare(const json::value& left, const json::value& right) {
  if (!left.is_number() || !right.is_number()) return std::partial_ordering::unordered;
  return left.to_number<double>() <=> right.to_number<double>();
}

bool equal(const json::value& left, const json::value& right) {
  return left == right || std::is_eq(compare(left, right));
}

bool contains(const json::value& whole, const json::value& part) {
  return whole.is_string() && part.is_string() && whole.as_string().find(part.as_string()) != json::string::npos;
}

}  // namespace

tl::expected<RuleMatch, std::string> RuleMatch::of(const Rule& rule) {
  RuleMatch match(rule.trigger);
  const std::string fault = match.read(rule);
  if (!fault.empty()) return tl::unexpected("rule " + rule.id + ": " + fault);
  return match;
}

// What is wrong, if anything.
std::string RuleMatch::read(const Rule& rule) {
  std::string fault;
  if (!rule.trigger.pattern.empty()) fault = put(pattern_, pattern::parse_glob(rule.trigger.pattern));
  if (fault.empty() && !rule.trigger.cron.empty()) {
    std::shared_ptr<const TimeZone> zone = rule.timezone.empty() ? nullptr : TimeZone::find(rule.timezone);
    if (!zone && !rule.timezone.empty()) return "there is no time zone " + rule.timezone;
    fault = put(schedule_, parse_cron(rule.trigger.cron, std::move(zone)));
    source_ = "schedule";
  }
  for (const Condition& condition : rule.conditions) {
    checks_.push_back({condition});
    if (!fault.empty() || condition.op != Operator::matches) continue;
    fault = put(checks_.back().regex, pattern::parse_regex(plain_text(condition.value)));
  }
  return fault;
}

bool RuleMatch::accepts(const Event& event) const {
  return trigger_holds(event) &&
         std::all_of(checks_.begin(), checks_.end(), [&](const Check& check) { return check.holds(event); });
}

bool RuleMatch::trigger_holds(const Event& event) const {
  if (!source_.empty() && source_ != event.source) return false;
  if (!type_.empty() && type_ != event.type) return false;
  if (!pattern_) return true;
  const json::value* path = event.payload.if_contains("path");
  return path != nullptr && pattern_->matches(path->as_string());
}

std::vector<RuleMatch::Verdict> RuleMatch::explain(const Event& event) const {
  std::vector<Verdict> verdicts;
  if (!source_.empty()) verdicts.push_back({"trigger.source " + source_, source_ == event.source});
  if (!type_.empty()) verdicts.push_back({"trigger.type " + type_, type_ == event.type});
  if (pattern_) {
    const json::value* path = event.payload.if_contains("path");
    verdicts.push_back({"trigger.pattern " + pattern_text_,
                        path != nullptr && path->is_string() && pattern_->matches(path->as_string())});
  }
  for (const Check& check : checks_) {
    const Condition& condition = check.condition;
    const std::string value = condition.value.is_null() ? "" : " " + plain_text(condition.value);
    verdicts.push_back({condition.field + " " + std::string(name_of(condition.op)) + value, check.holds(event)});
  }
  return verdicts;
}

bool RuleMatch::watches_files() const {
  return (source_.empty() || source_ == "watch") && (type_.empty() || type_.starts_with("file."));
}

bool RuleMatch::Check::holds(const Event& event) const {
  const json::value actual = field_of(event, condition.field).value_or(nullptr);
  const bool exists = !actual.is_null();
  switch (condition.op) {
    case Operator::eq:
      return exists && equal(actual, condition.value);
    case Operator::neq:
      return !exists || !equal(actual, condition.value);
    case Operator::contains:
      return contains(actual, condition.value);
    case Operator::matches:
      return exists && regex->found_in(plain_text(actual));
    case Operator::gt:
      return std::is_gt(compare(actual, condition.value));
    case Operator::lt:
      return std::is_lt(compare(actual, condition.value));
    case Operator::gte:
      return std::is_gteq(compare(actual, condition.value));
    case Operator::lte:
      return std::is_lteq(compare(actual, condition.value));
    case Operator::exists:
      return exists;
    case Operator::not_exists:
      return !exists;
  }
  return false;
}

}  // namespace duet::automation
