#include "automation/work.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/system/error_code.hpp>

#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

constexpr std::string_view metadata_name = "automation";

json::object metadata_of(const Rule& rule, const Event& event, const std::string& firing_id) {
  json::object origin{{"ruleId", rule.id}, {"firingId", firing_id}, {"depth", event.depth + 1}};
  if (!event.cause.empty()) origin["cause"] = event.cause;
  return {{metadata_name, std::move(origin)}};
}

Program program_of(const Rule& rule, const Event& event, const std::string& firing_id, std::size_t count) {
  json::object told{{"ruleId", rule.id},      {"id", firing_id},    {"count", count},
                    {"source", event.source}, {"type", event.type}, {"payload", event.payload}};
  return {.command = rule.action.command,
          .timeout = rule.action.timeout,
          .input = rpc::to_text(told) + "\n",
          .depth = event.depth + 1};
}

std::string cut(const std::string& text) {
  constexpr std::size_t shown_characters = 1'024;
  return std::string(rpc::first_characters(text, shown_characters));
}

}  // namespace

json::object shown_work(const Work& work) {
  if (work.program) {
    return {{"action", "run"}, {"command", json::array(work.program->command.begin(), work.program->command.end())}};
  }
  if (!work.submission) return {{"action", "notify"}, {"message", cut(work.notice)}};
  json::object shown{{"action", "agent"}, {"prompt", cut(work.submission->prompt)}};
  if (work.submission->agent) shown["agent"] = *work.submission->agent;
  return shown;
}

std::string cause_of(const Event& event) {
  for (const std::string_view member : {"path", "time", "taskId"}) {
    const json::value* const found = event.payload.if_contains(member);
    if (found != nullptr && !found->is_null()) return event.type + " " + plain_text(*found);
  }
  return event.type;
}

std::variant<Work, MissingField> work_of(const Rule& rule, const Event& event, const std::string& firing_id,
                                         std::size_t count) {
  if (rule.action.type == Action::Type::run) return Work{.program = program_of(rule, event, firing_id, count)};
  const bool is_notice = rule.action.type == Action::Type::notify;
  auto filled = fill_template(is_notice ? rule.action.message : rule.action.prompt, event);
  if (auto* missing = std::get_if<MissingField>(&filled)) return std::move(*missing);
  std::string& text = std::get<std::string>(filled);
  if (is_notice) return Work{.notice = std::move(text)};
  task::Submission submission{.prompt = std::move(text), .env = environment_of(event)};
  if (!rule.action.agent.empty()) submission.agent = rule.action.agent;
  submission.priority = rule.action.priority;
  submission.env["DUET_RULE"] = rule.id;
  submission.env["DUET_COUNT"] = std::to_string(count);
  submission.metadata = metadata_of(rule, event, firing_id);
  return Work{.submission = std::move(submission)};
}

json::object save_work(const Work& work) {
  if (work.submission) return {{"submission", task::to_body(*work.submission)}};
  if (work.program) {
    const Program& program = *work.program;
    return {{"command", json::array(program.command.begin(), program.command.end())},
            {"timeout", program.timeout.count()},
            {"input", program.input},
            {"depth", program.depth}};
  }
  return {{"notice", work.notice}};
}

Work load_work(const json::object& saved) {
  if (const json::value* body = saved.if_contains("submission")) {
    Work work{.submission = task::from_body(body->as_string())};
    work.submission->key_decides = !work.submission->key.empty();
    return work;
  }
  if (const json::value* command = saved.if_contains("command")) {
    Program program{.timeout = std::chrono::milliseconds(saved.at("timeout").to_number<std::int64_t>()),
                    .input = std::string(saved.at("input").as_string())};
    if (const json::value* depth = saved.if_contains("depth")) program.depth = depth->to_number<unsigned>();
    for (const json::value& word : command->as_array()) program.command.emplace_back(word.as_string());
    return {.program = std::move(program)};
  }
  return {.notice = std::string(saved.at("notice").as_string())};
}

std::optional<Origin> origin_of(const task::Task& task) {
  const json::value* found = task.metadata.if_contains(metadata_name);
  const json::object* origin = found == nullptr ? nullptr : found->if_object();
  if (origin == nullptr) return std::nullopt;
  const json::value* const rule = origin->if_contains("ruleId");
  const json::value* const depth = origin->if_contains("depth");
  const json::value* const cause = origin->if_contains("cause");
  if (rule == nullptr || !rule->is_string() || depth == nullptr) return std::nullopt;
  boost::system::error_code fault;
  const auto tasks = depth->to_number<unsigned>(fault);
  if (fault) return std::nullopt;
  return Origin{std::string(rule->get_string()), tasks,
                cause == nullptr || !cause->is_string() ? std::string() : std::string(cause->get_string())};
}

}  // namespace duet::automation
