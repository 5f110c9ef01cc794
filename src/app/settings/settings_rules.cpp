#include "app/settings/settings_rules.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "app/words/number.h"
#include "automation/cron.h"
#include "automation/event.h"
#include "automation/template.h"
#include "automation/time_zone.h"
#include "pattern/glob.h"
#include "pattern/regex.h"

namespace duet::app {
namespace {

using Text = std::string_view;
using automation::Action;
using automation::Operator;

constexpr Text rule_names[] = {"id",       "trigger",           "conditions", "action",
                               "cooldown", "trailing",          "when_busy",  "timezone",
                               "missed",   "requires_approval", "enabled"};
constexpr Text busy_choices[] = {"queue", "skip", "restart"};
constexpr Text missed_choices[] = {"skip", "once"};
constexpr Text trigger_names[] = {"source", "type", "pattern", "cron"};
constexpr Text condition_names[] = {"field", "operator", "value"};
constexpr Text action_names[] = {"type", "agent", "prompt", "message", "priority", "command", "timeout"};
constexpr Text action_types[] = {"agent", "notify", "run"};
constexpr Text sources[] = {"watch", "schedule", "task", "daemon"};

/// What an event may be called, and who tells of it.
struct EventType {
  Text name;
  Text source;
};
constexpr EventType event_types[] = {
    {"file.create", "watch"}, {"file.modify", "watch"},   {"file.delete", "watch"},     {"task.completed", "task"},
    {"task.failed", "task"},  {"task.cancelled", "task"}, {"daemon.started", "daemon"},
};

// In the order of automation::Operator.
constexpr Text operators[] = {"eq", "neq", "contains", "matches", "gt", "lt", "gte", "lte", "exists", "not_exists"};
static_assert(std::size(operators) == static_cast<std::size_t>(Operator::not_exists) + 1);

std::vector<Text> types_of(Text source) {
  std::vector<Text> out;
  for (const EventType& type : event_types) {
    if (source.empty() || type.source == source) out.push_back(type.name);
  }
  return out;
}

/// The trigger of a rule. What is given must be able to hold all at once.
class TriggerReader {
 public:
  TriggerReader(SettingFaults& faults, const Setting& setting)
      : faults_(faults), setting_(setting), section_(faults, setting, "trigger.", trigger_names) {}

  automation::Trigger read() {
    out_.source = section_.choice("source", sources).value_or("");
    if (section_.find("type") != nullptr) read_type();
    if (section_.find("pattern") != nullptr) read_pattern();
    if (section_.find("cron") != nullptr) read_cron();
    if (out_.source == "schedule") section_.require("cron");
    if (out_.source.empty()) out_.source = implied_source();
    const bool empty = setting_.as<Setting::Table>() != nullptr && setting_.as<Setting::Table>()->empty();
    if (empty) faults_.add(setting_.place, "trigger is empty: it needs source, type, pattern or cron");
    return std::move(out_);
  }

 private:
  // A cron implies its own.
  std::string implied_source() const {
    const auto* const named = std::ranges::find(event_types, out_.type, &EventType::name);
    if (named != std::end(event_types)) return std::string(named->source);
    return out_.pattern.empty() ? "" : "watch";
  }

  void read_type() {
    const std::vector<Text> types = types_of(out_.source);
    if (types.empty()) return section_.refuse(*section_.find("type"), "type", "left out for a schedule");
    out_.type = section_.choice("type", types).value_or("");
  }

  void read_pattern() {
    const Setting& setting = *section_.find("pattern");
    out_.pattern = section_.text("pattern").value_or("");
    const bool has_path =
        (out_.source.empty() || out_.source == "watch") && (out_.type.empty() || out_.type.starts_with("file."));
    if (!has_path) return section_.refuse(setting, "pattern", "left out: only events of files have a path");
    const auto glob = pattern::parse_glob(out_.pattern);
    if (const auto* wrong = std::get_if<std::string>(&glob); wrong != nullptr && !out_.pattern.empty()) {
      section_.refuse(setting, "pattern", "a glob such as 'src/**/*.cpp' (" + *wrong + ")");
    }
  }

  void read_cron() {
    const Setting& setting = *section_.find("cron");
    out_.cron = section_.text("cron").value_or("");
    const bool alone = (out_.source.empty() || out_.source == "schedule") && out_.type.empty();
    if (!alone) return section_.refuse(setting, "cron", "left out: it is for source 'schedule'");
    if (automation::is_reboot(out_.cron)) {
      out_ = {.source = "daemon", .type = "daemon.started"};
      return;
    }
    out_.source = "schedule";
    const auto cron = automation::parse_cron(out_.cron);
    if (const auto* wrong = std::get_if<std::string>(&cron); wrong != nullptr && !out_.cron.empty()) {
      section_.refuse(setting, "cron",
                      "@daily, or minute, hour, day, month and day of week, as in '*/5 * * * *' (" + *wrong + ")");
    }
  }

  SettingFaults& faults_;
  const Setting& setting_;
  SettingsSection section_;
  automation::Trigger out_;
};

boost::json::value json_value(const Setting& setting) {
  if (const auto* text = setting.as<std::string>()) return boost::json::value(*text);
  if (const auto* number = setting.as<std::int64_t>()) return *number;
  if (const auto* number = setting.as<double>()) return *number;
  if (const auto* flag = setting.as<bool>()) return *flag;
  return nullptr;
}

// What the value of a condition must be for its operator; empty: it is.
std::string value_fault(Operator op, const Setting& value) {
  const auto* const text = value.as<std::string>();
  const bool number = value.as<std::int64_t>() != nullptr || value.as<double>() != nullptr;
  switch (op) {
    case Operator::gt:
    case Operator::lt:
    case Operator::gte:
    case Operator::lte:
      return number ? "" : "a number";
    case Operator::contains:
      return text != nullptr ? "" : "a text";
    case Operator::matches: {
      if (text == nullptr) return "a text";
      const auto regex = pattern::parse_regex(*text);
      const auto* const wrong = std::get_if<std::string>(&regex);
      return wrong == nullptr ? "" : "a regular expression (" + *wrong + ")";
    }
    default:
      return json_value(value).is_null() ? "a text, a number, true or false" : "";
  }
}

// The fields of a rule's events; none are known if its trigger is faulty.
std::vector<std::string> known_fields(const automation::Trigger& trigger) {
  return trigger.source.empty() ? std::vector<std::string>() : automation::fields_of_source(trigger.source);
}

std::string choice_of(const std::vector<std::string>& fields) {
  return one_of(std::vector<Text>(fields.begin(), fields.end()));
}

bool is_unknown(const std::string& field, const std::vector<std::string>& fields) {
  return !fields.empty() && std::ranges::find(fields, field) == fields.end();
}

automation::Condition read_condition(SettingFaults& faults, const Setting& setting, std::vector<std::string> fields) {
  const SettingsSection section(faults, setting, "conditions.", condition_names);
  automation::Condition out;
  section.require("field");
  section.require("operator");
  out.field = section.text("field").value_or("");
  std::erase(fields, "payload.paths");  // a condition is for one file
  if (!out.field.empty() && is_unknown(out.field, fields)) {
    section.refuse(*section.find("field"), "field", choice_of(fields) + ", which the rule's events have");
  }
  const std::string name = section.choice("operator", operators).value_or("exists");
  out.op = static_cast<Operator>(std::ranges::find(operators, name) - std::begin(operators));
  const bool needs_value = out.op != Operator::exists && out.op != Operator::not_exists;
  if (needs_value) section.require("value");
  const Setting* const value = section.find("value");
  if (value == nullptr) return out;
  out.value = json_value(*value);
  const std::string fault = value_fault(out.op, *value);
  if (needs_value && !fault.empty()) section.refuse(*value, "value", fault);
  return out;
}

// What only another type of action can use.
void refuse_misplaced(const SettingsSection& section, const std::string& type) {
  struct Member {
    Text name;
    Text type;
  };
  constexpr std::array<Member, 6> members{{{"agent", "agent"},
                                           {"prompt", "agent"},
                                           {"priority", "agent"},
                                           {"message", "notify"},
                                           {"command", "run"},
                                           {"timeout", "run"}}};
  for (const Member& member : members) {
    const Setting* const misplaced = section.find(member.name);
    if (misplaced == nullptr || member.type == type) continue;
    section.refuse(*misplaced, member.name, "left out for type '" + type + "'");
  }
}

// A program and its arguments, as they are: what came in stands on its stdin.
void read_program(const SettingsSection& section, Action& out) {
  constexpr std::chrono::hours longest{1};
  section.require("command");
  out.command = section.texts("command").value_or(std::vector<std::string>());
  const Setting* const command = section.find("command");
  if (out.command.empty() && command != nullptr && command->as<Setting::List>() != nullptr) {
    section.refuse(*command, "command", "a program and its arguments");
  }
  const std::optional<std::chrono::milliseconds> timeout = section.duration("timeout");
  if (!timeout) return;
  if (timeout->count() == 0 || *timeout > longest) {
    return section.refuse(*section.find("timeout"), "timeout", "more than nothing, and an hour at most");
  }
  out.timeout = *timeout;
}

// A placeholder that no event could fill.
void check_template(const SettingsSection& section, Text name, const std::vector<std::string>& fields) {
  const Setting* const setting = section.find(name);
  if (setting == nullptr || setting->as<std::string>() == nullptr) return;
  for (const std::string& field : automation::fields_in(*setting->as<std::string>())) {
    if (!is_unknown(field, fields)) continue;
    return section.refuse(*setting, name,
                          "without {{" + shown(Text(field)) + "}}: the rule's events have " + choice_of(fields));
  }
}

Action read_action(SettingFaults& faults, const Setting& setting, const std::vector<std::string>& fields) {
  const SettingsSection section(faults, setting, "action.", action_names);
  Action out;
  section.require("type");
  const std::optional<std::string> type = section.choice("type", action_types);
  if (!type) return out;
  out.type = *type == "agent" ? Action::Type::agent : *type == "run" ? Action::Type::run : Action::Type::notify;
  if (out.type == Action::Type::agent) section.require("prompt");
  refuse_misplaced(section, *type);
  if (out.type == Action::Type::run) read_program(section, out);
  for (const Text name : {"prompt", "message"}) check_template(section, name, fields);
  out.agent = section.text("agent").value_or("");
  out.prompt = section.text("prompt").value_or("");
  out.message = section.text("message").value_or("");
  out.priority =
      section.number("priority", std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
  return out;
}

void read_missed(const SettingsSection& section, automation::Rule& rule) {
  const std::optional<std::string> missed = section.choice("missed", missed_choices);
  if (!missed) return;
  if (rule.trigger.source != "schedule") {
    return section.refuse(*section.find("missed"), "missed", "left out: it is for source 'schedule'");
  }
  rule.missed = *missed == "once" ? automation::Missed::once : automation::Missed::skip;
}

// Each event of a task tells of another task, so that each has a firing of its own, unless it is asked for otherwise.
void read_when_busy(const SettingsSection& section, automation::Rule& rule) {
  using automation::WhenBusy;
  const std::optional<std::string> choice = section.choice("when_busy", busy_choices);
  if (choice && rule.action.type != Action::Type::agent) {
    return section.refuse(*section.find("when_busy"), "when_busy",
                          "left out: only an action of type 'agent' has tasks");
  }
  const bool tells_of_tasks = rule.trigger.source == "task" || rule.trigger.source.empty();
  rule.when_busy = !choice              ? (tells_of_tasks ? WhenBusy::each : WhenBusy::queue)
                   : *choice == "queue" ? WhenBusy::queue
                   : *choice == "skip"  ? WhenBusy::skip
                                        : WhenBusy::restart;
}

void read_timezone(const SettingsSection& section, automation::Rule& rule) {
  const std::optional<std::string> name = section.text("timezone");
  if (!name) return;
  const Setting& setting = *section.find("timezone");
  if (rule.trigger.cron.empty()) return section.refuse(setting, "timezone", "left out: it is for a cron");
  if (!automation::TimeZone::find(*name)) {
    return section.refuse(setting, "timezone", "the name of a time zone of this system, such as 'Europe/Berlin'");
  }
  rule.timezone = *name;
}

void read_conditions(SettingFaults& faults, const SettingsSection& section, automation::Rule& rule,
                     const std::vector<std::string>& fields) {
  const Setting* const setting = section.find("conditions");
  if (setting == nullptr) return;
  const auto* const list = setting->as<Setting::List>();
  if (list == nullptr) return section.refuse(*setting, "conditions", "a list of tables");
  for (const Setting& entry : *list) rule.conditions.push_back(read_condition(faults, entry, fields));
}

SettingPlace place_in(const Setting& table, Text name, SettingPlace otherwise) {
  const auto* const entries = table.as<Setting::Table>();
  if (entries == nullptr) return otherwise;
  const auto found = std::ranges::find(*entries, name, &NamedSetting::name);
  return found == entries->end() ? otherwise : found->setting.place;
}

}  // namespace

ReadRule read_rule(SettingFaults& faults, const Setting& setting) {
  const SettingsSection section(faults, setting, "rules.", rule_names);
  ReadRule out{{}, place_in(setting, "id", setting.place), setting.place, setting.place};
  for (const Text name : {"id", "trigger", "action"}) section.require(name);
  automation::Rule& rule = out.rule;
  rule.id = section.text("id").value_or("");
  if (const Setting* trigger = section.find("trigger")) rule.trigger = TriggerReader(faults, *trigger).read();
  const std::vector<std::string> fields = known_fields(rule.trigger);
  if (const Setting* action = section.find("action")) {
    rule.action = read_action(faults, *action, fields);
    out.agent_place = place_in(*action, "agent", action->place);
    out.prompt_place = place_in(*action, "prompt", action->place);
  }
  read_conditions(faults, section, rule, fields);
  read_missed(section, rule);
  read_when_busy(section, rule);
  read_timezone(section, rule);
  rule.trailing = section.flag("trailing").value_or(true);
  rule.cooldown = section.duration("cooldown").value_or(std::chrono::milliseconds(0));
  rule.requires_approval = section.flag("requires_approval").value_or(false);
  rule.enabled = section.flag("enabled").value_or(true);
  return out;
}

}  // namespace duet::app
