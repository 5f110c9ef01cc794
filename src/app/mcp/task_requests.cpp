#include "app/mcp/task_requests.h"

#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/mcp_tasks.h"
#include "app/mcp/refusals.h"
#include "app/mcp/tools.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::string_view related_key = "io.modelcontextprotocol/related-task";

rpc::Error no_such_task() { return bad_params("Failed to retrieve task: Task not found"); }

// The task of a handle with its output's end, and whether it is being cancelled.
void read_given(const CallPointer& call, const std::string& handle, std::function<void(GivenTask)> then) {
  const std::string root = call->home();
  if (root.empty()) return;
  const TaskName name = task_named(handle);
  const std::vector<Desk::Part> parts{
      {"task.get", name.params},
      {"task.output", {{"taskId", name.id}, {"fromEnd", usual_tail}, {"limit", usual_tail}, {"encoding", "base64"}}},
      {"task.explain", {{"taskId", name.id}}}};
  call->ask(root, parts, {.keeps_refusals = true}, [=, then = std::move(then)](const Call::Parts& answers) {
    if (!answers[0] && answers[0].error().code() == daemon_code::unknown_task) return call->fail(no_such_task());
    if (!answers[0]) return call->fail_refused(answers[0].error());
    GivenTask task{.handle = handle, .view = {.record = answers[0]->as_object()}};
    if (answers[1]) {
      task.view.tail = without_torn_character(output_part(*answers[1]));
      task.view.output_bytes = task.view.tail->next;
    }
    if (answers[2] && !has_ended(task.view.record)) {
      const array& reasons = answers[2]->at("reasons").as_array();
      task.is_cancelling = !reasons.empty() && reasons[0].at("reason") == "cancelling";
      if (state_of(task.view.record) == "queued") task.view.waiting = answers[2]->at("text").as_string();
    }
    then(std::move(task));
  });
}

// With the result of one that has ended, which is what task_run would have answered.
object detailed_task(const Envelope& envelope, const GivenTask& task, std::string_view root, base::UtcTime now) {
  object out = modern_task(task, now);
  if (out.at("status") == "completed") {
    const ToolResult result = run_answer(task.view, root, usual_max_bytes);
    out["result"] = result_text(envelope, result.members()).value();
  }
  return out;
}

base::UtcTime now(Call& call) { return call.services().loop.clock().utc(); }

}  // namespace

tl::expected<std::string, rpc::Error> handle_in(const Envelope& envelope) {
  if (envelope.is_modern && !envelope.has_tasks) return tl::unexpected(missing_tasks_capability());
  const value* const given = envelope.params.if_contains("taskId");
  if (given == nullptr || !given->is_string()) return tl::unexpected(bad_params("taskId must be a string"));
  if (!is_handle(given->get_string())) return tl::unexpected(no_such_task());
  return std::string(given->get_string());
}

void answer_task(const CallPointer& call, const std::string& handle) {
  read_given(call, handle, [call](const GivenTask& task) {
    const Envelope& envelope = call->envelope();
    const object out =
        envelope.is_modern ? detailed_task(envelope, task, call->home(), now(*call)) : legacy_task(task, now(*call));
    call->answer(result_text(envelope, members_of(out)));
  });
}

void answer_task_result(const CallPointer& call, const std::string& handle) {
  read_given(call, handle, [call, handle](const GivenTask& given) {
    const auto finish = [call, handle](const GivenTask& task) {
      const ToolResult result = run_answer(task.view, call->home(), usual_max_bytes);
      const object meta{{"_meta", {{related_key, {{"taskId", handle}}}}}};
      call->answer(result_text(call->envelope(), result.members() + ',' + members_of(meta)));
    };
    if (has_ended(given.view.record)) return finish(given);
    const std::string id(id_of(given.view.record));
    call->wait_for_end(id, std::nullopt, [call, handle, finish](const object&) { read_given(call, handle, finish); });
  });
}

void answer_task_update(const CallPointer& call, const std::string& handle) {
  read_given(call, handle, [call](const GivenTask&) { call->answer(result_text(call->envelope(), "")); });
}

void answer_task_cancel(const CallPointer& call, const std::string& handle) {
  read_given(call, handle, [call, handle](const GivenTask& given) {
    const std::string id(id_of(given.view.record));
    const bool is_modern = call->envelope().is_modern;
    call->ask(call->home(), {{"task.cancel", {{"taskId", id}}}}, {.keeps_refusals = true},
              [=](const Call::Parts& parts) {
                const bool had_ended = !parts[0] && parts[0].error().code() == daemon_code::wrong_state;
                if (!parts[0] && !had_ended) return call->fail_refused(parts[0].error());
                if (is_modern) return call->answer(result_text(call->envelope(), ""));
                if (had_ended) return call->fail(bad_params("the task has ended already"));
                call->wait_for_end(id, std::nullopt, [=](const object&) { answer_task(call, handle); });
              });
  });
}

// It has no request to answer: a reply that is not there takes what comes.
void read_given_task(Services& services, const std::string& handle, std::function<void(object)> then) {
  const tl::expected<std::string, ToolError>& root = services.scope.home();
  if (!root) return;
  const TaskName name = task_named(handle);
  const std::vector<Desk::Part> parts{
      {"task.get", name.params},
      {"task.output", {{"taskId", name.id}, {"fromEnd", usual_tail}, {"limit", usual_tail}, {"encoding", "base64"}}}};
  services.desk.ask({.root = *root, .parts = parts, .deadline = services.loop.now() + Call::longest},
                    [&services, handle, root = *root, then = std::move(then)](const Desk::Answer& answer) {
                      if (!answer || !answer->at(0)) return;
                      GivenTask task{.handle = handle, .view = {.record = answer->at(0)->as_object()}};
                      if (answer->at(1)) {
                        task.view.tail = without_torn_character(output_part(*answer->at(1)));
                        task.view.output_bytes = task.view.tail->next;
                      }
                      const Envelope envelope{.is_modern = true, .revision = modern_revision};
                      then(detailed_task(envelope, task, root, services.loop.clock().utc()));
                    });
}

void find_tasks(Services& services, const std::set<std::string>& names,
                const std::function<void(const std::set<std::string>&)>& then) {
  std::vector<Desk::Part> parts;
  parts.reserve(names.size());
  for (const std::string& name : names) parts.push_back({"task.get", task_named(name).params});
  services.desk.ask(
      {.root = *services.scope.home(), .parts = std::move(parts), .deadline = services.loop.now() + Call::longest},
      [names, then](const Desk::Answer& answer) {
        std::set<std::string> known;
        auto part = answer ? answer->begin() : std::vector<Desk::PartAnswer>::const_iterator();
        for (const std::string& name : names) {
          if (answer && *part++) known.insert(name);
        }
        then(known);
      });
}

void check_resource(const CallPointer& call, const ResourceName& name, const rpc::Error& unknown,
                    const std::function<void()>& then) {
  if (name.task.empty()) return then();
  call->ask(call->home(), {{"task.get", task_named(name.task).params}}, {.keeps_refusals = true},
            [call, unknown, then](const Call::Parts& parts) {
              if (parts[0]) return then();
              if (parts[0].error().code() == daemon_code::unknown_task) return call->fail(unknown);
              call->fail_refused(parts[0].error());
            });
}

void answer_resource(const CallPointer& call, const std::string& uri, const ResourceName& name,
                     const rpc::Error& unknown) {
  constexpr std::int64_t most_of_output = 64 * 1024;
  constexpr std::size_t most_of_list = 300 * 1024;
  using Kind = ResourceName::Kind;
  const auto finish = [call, uri, name](std::string_view text) {
    call->answer(cacheable_text(call->envelope(), contents_of(uri, name, text), 0));
  };
  if (name.kind == Kind::status) {
    return read_status(call, std::nullopt, [finish](const object& status) { finish(rpc::to_text(status)); });
  }
  const std::string root = call->home();
  if (root.empty()) return;
  if (name.kind == Kind::tasks) {
    return read_tasks(call, {{"limit", 100}}, [=](const std::vector<TaskView>& tasks, const object& counts) {
      const ToolResult list = task_list_page(tasks, counts, root).cut({}, most_of_list, uri);
      finish(rpc::to_text(*list.structured));
    });
  }
  const TaskName task = task_named(name.task);
  const std::int64_t tail = name.kind == Kind::output ? most_of_output : 1;
  const std::vector<Desk::Part> parts{
      {"task.get", task.params},
      {"task.output", {{"taskId", task.id}, {"fromEnd", tail}, {"limit", tail}, {"encoding", "base64"}}}};
  call->ask(root, parts, {.keeps_refusals = true}, [=](const Call::Parts& answers) {
    if (!answers[0] && answers[0].error().code() == daemon_code::unknown_task) return call->fail(unknown);
    if (!answers[0]) return call->fail_refused(answers[0].error());
    const OutputPart part = answers[1] ? without_torn_character(output_part(*answers[1])) : OutputPart();
    if (name.kind == Kind::output) {
      return finish("[" + std::to_string(part.offset) + " bytes before this are left out]\n" +
                    rpc::valid_utf8(part.bytes));
    }
    const TaskView view{.record = answers[0]->as_object(), .output_bytes = part.next};
    finish(rpc::to_text(*task_answer(view, root, most_of_list).structured));
  });
}

}  // namespace duet::app::mcp
