#include "automation/work.h"

#include <utility>

namespace duet::automation {
namespace {

namespace json = boost::json;

constexpr std::string_view metadata_name = "automation";

json::object metadata_of(const Rule& rule, const Event& event, const std::string& firing_id) {
  json::object origin{{"ruleId", rule.id}, {"firingId", firing_id}, {"depth", event.depth + 1}};
  if (!event.cause.empty()) origin["cause"] = event.cause;
  return {{metadata_name, std::move(origin)}};
}

}  // namespace

std::variant<Work, MissingField> work_of(const Rule& rule, const Event& event, const std::string& firing_id,
                                         std::size_t count) {
  const bool is_notice = rule.action.type == Action::Type::notify;
  auto filled = fill_template(is_notice ? rule.action.message : rule.action.prompt, event);
  if (auto* missing = std::get_if<MissingField>(&filled)) return std::move(*missing);
  std::string& text = std::get<std::string>(filled);
  if (is_notice) return Work{.notice = std::move(text)};
  task::Submission submission{.prompt = std::move(text), .env = environment_of(event)};
  if (!rule.action.agent.empty()) submission.agent = rule.action.agent;
  submission.priority = rule.action.priority.value_or(0);
  submission.env["DUET_RULE"] = rule.id;
  submission.env["DUET_COUNT"] = std::to_string(count);
  submission.metadata = metadata_of(rule, event, firing_id);
  return Work{.submission = std::move(submission)};
}

json::object save_work(const Work& work) {
  if (work.submission) return {{"submission", task::to_body(*work.submission)}};
  return {{"notice", work.notice}};
}

Work load_work(const json::object& saved) {
  if (const json::value* body = saved.if_contains("submission")) {
    return {.submission = task::from_body(body->as_string())};
  }
  return {.notice = std::string(saved.at("notice").as_string())};
}

std::optional<Origin> origin_of(const task::Task& task) {
  const json::value* found = task.metadata.if_contains(metadata_name);
  const json::object* origin = found == nullptr ? nullptr : found->if_object();
  if (origin == nullptr) return std::nullopt;
  return Origin{std::string(origin->at("ruleId").as_string()), origin->at("depth").to_number<unsigned>()};
}

}  // namespace duet::automation
