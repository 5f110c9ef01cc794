#include "app/view/event_view.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/array.hpp>

#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "app/view/task_view.h"
#include "app/words/duration.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::size_t id_width = 8;
constexpr std::size_t state_width = 9;

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t shown = display_width(text);
  return text + std::string(shown < width ? width - shown : 0, ' ');
}

std::string painted_state(const std::string& state, const TextStyle& style) {
  std::string text = padded(state, state_width);
  if (state == "completed") return style.good(text);
  if (state == "failed") return style.fault(text);
  if (state == "started") return style.name(text);
  return text;
}

// `exit 1`, `SIGKILL`, `timeout`: how it ended.
std::string how_it_ended(const object& params) {
  if (std::string signal = member_text(params, "signal"); !signal.empty()) return signal;
  const value* const error = params.if_contains("error");
  const std::string reason = error != nullptr && error->is_object() ? member_text(error->get_object(), "reason") : "";
  const std::string code = member_text(params, "exitCode");
  if (reason == "exit" || (reason.empty() && !code.empty() && code != "0")) return "exit " + code;
  if (reason.empty()) return {};
  const std::string message = member_text(error->get_object(), "message");
  return message.empty() ? reason : message;
}

std::string run_time(const object& params) {
  const auto started = parse_time(member_text(params, "startedAt"));
  const auto ended = parse_time(member_text(params, "completedAt"));
  if (!started || !ended || *ended < *started) return {};
  return "after " + readable_duration(std::chrono::duration_cast<std::chrono::milliseconds>(*ended - *started));
}

std::optional<base::UtcTime> time_in(const object& params) {
  for (const std::string_view name : {"at", "completedAt", "startedAt", "createdAt"}) {
    if (const auto time = parse_time(member_text(params, name))) return time;
  }
  return std::nullopt;
}

void add_word(std::string& line, const std::string& word) {
  if (!word.empty()) line += (line.empty() ? "" : "  ") + one_line(word);
}

// Of a task's life: what it became, whose it is, and how it went.
std::string task_event(const object& params, const std::string& state, const TextStyle& style) {
  std::string rest;
  add_word(rest, member_text(params, "agent"));
  add_word(rest, how_it_ended(params));
  add_word(rest, run_time(params));
  const std::string attempts = member_text(params, "attempts");
  if (state == "started" && attempts != "1") add_word(rest, "attempt " + attempts);
  const auto retry = parse_time(member_text(params, "retryAt"));
  if (retry) add_word(rest, "again at " + clock_time(*retry, *retry));
  const std::string id = padded(member_text(params, "taskId"), id_width);
  return style.heading(id) + "  " + painted_state(state, style) + (rest.empty() ? "" : "  " + rest);
}

// `agentHeld` as `agent` and `held`: what it is about, and what happened.
std::pair<std::string, std::string> noun_and_verb(std::string_view kind) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto at = static_cast<std::size_t>(std::ranges::find_if(kind, is_upper) - kind.begin());
  std::string verb(kind.substr(at));
  if (!verb.empty()) verb.front() = static_cast<char>(verb.front() - 'A' + 'a');
  return {std::string(kind.substr(0, at)), verb};
}

// The member that names what events of a noun are about.
std::string_view subject_member(std::string_view noun) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> members{
      {{"task", "taskId"}, {"agent", "agent"}, {"queue", "group"}, {"automation", "ruleId"}}};
  for (const auto& [name, member] : members) {
    if (name == noun) return member;
  }
  return {};
}

// The daemon's own times are shown as those of where the user is. What tasks and rules have written stays as it is.
std::string value_text(const object& params, std::string_view name, base::UtcTime now) {
  const std::string text = one_line(member_text(params, name));
  const bool is_time = name == "until" || name == "notBefore" || name.ends_with("At");
  return is_time ? with_local_times(text, now) : text;
}

// Events of any kind: what they are about, what happened, and all else that they say.
std::string any_event(std::string_view kind, const object& params, const TextStyle& style, base::UtcTime now) {
  const auto [noun, verb] = noun_and_verb(kind);
  const std::string_view subject = subject_member(noun);
  const std::string about = subject.empty() ? std::string() : member_text(params, subject);
  std::string out = style.heading(padded(one_line(about.empty() ? noun : about), id_width));
  out += "  " + style.name(padded(verb, state_width));
  for (const auto& member : params) {
    const std::string_view name = member.key();
    const bool said = name == "seq" || name == "at" || name == subject || name == "state" || name == "attempts";
    const bool empty = member.value().is_null() || (member.value().is_array() && member.value().get_array().empty());
    if (said || empty) continue;
    out += "  " + std::string(name) + "=" + value_text(params, name, now);
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// `failed` of `taskFailed`; nothing for kinds that are not of a task's life.
std::string_view state_told_by(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> states{{{"taskQueued", "queued"},
                                                                                 {"taskStarted", "started"},
                                                                                 {"taskCompleted", "completed"},
                                                                                 {"taskFailed", "failed"},
                                                                                 {"taskCancelled", "cancelled"}}};
  for (const auto& [name, state] : states) {
    if (name == kind) return state;
  }
  return {};
}

}  // namespace

std::string event_line(std::string_view method, const object& params, const TextStyle& style,
                       std::optional<base::UtcTime> happened, base::UtcTime now) {
  const std::string_view kind = method.substr(method.starts_with("event.") ? 6 : 0);
  const std::optional<base::UtcTime> told = time_in(params);
  const std::optional<base::UtcTime> time = told ? told : happened;
  const std::string state(state_told_by(kind));
  return style.faint(time ? clock_time(*time, now) : "--:--:--") + "  " +
         (state.empty() ? any_event(kind, params, style, now) : task_event(params, state, style));
}

}  // namespace duet::app
