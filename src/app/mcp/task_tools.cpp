#include <sys/random.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/mcp_tasks.h"
#include "app/mcp/page.h"
#include "app/mcp/refusals.h"
#include "app/mcp/task_answers.h"
#include "app/mcp/tools.h"
#include "app/words/number.h"
#include "app/words/task_name.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;
using std::chrono::seconds;

constexpr std::int64_t usual_wait = 20;

std::string new_key() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "random bytes");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string key = "mcp-";
  for (const unsigned char byte : bytes) {
    key += digits[byte >> 4U];
    key += digits[byte & 15U];
  }
  return key;
}

Desk::Part tail_of(const std::string& id, std::int64_t bytes) {
  const std::int64_t limit = std::max<std::int64_t>(bytes, 1);
  return {"task.output", {{"taskId", id}, {"fromEnd", bytes}, {"limit", limit}, {"encoding", "base64"}}};
}

void take_tail(TaskView& view, const Desk::PartAnswer& answer, bool is_wanted) {
  const value* const known = view.record.if_contains("outputBytes");
  if (known != nullptr && known->is_number()) view.output_bytes = known->to_number<std::uint64_t>();
  if (!answer) return;
  OutputPart part = without_torn_character(output_part(*answer));
  view.output_bytes = std::max(view.output_bytes, part.next);
  if (is_wanted) view.tail = std::move(part);
}

// What `task.explain` says.
std::string why_waiting(const value& explained) { return std::string(explained.at("text").as_string()); }

// What is in no record: why a task waits, and how much one that runs has written.
std::optional<Desk::Part> beyond_record(const object& record) {
  const std::string id(id_of(record));
  if (state_of(record) == "queued") return Desk::Part{"task.explain", {{"taskId", id}}};
  return state_of(record) == "running" ? std::optional(tail_of(id, 0)) : std::nullopt;
}

// With the end of its output, and why it waits.
void finish_task(const CallPointer& call, TaskView view, const Desk::PartAnswer& output, std::int64_t tail_bytes,
                 const std::function<void(TaskView)>& then) {
  take_tail(view, output, tail_bytes > 0);
  if (output) call->services().tails.keep(view.record, tail_bytes, without_torn_character(output_part(*output)));
  if (state_of(view.record) != "queued") return then(std::move(view));
  const std::string id(id_of(view.record));
  call->ask(call->home(), {{"task.explain", {{"taskId", id}}}}, {.keeps_refusals = true},
            [view = std::move(view), then](const Call::Parts& why) {
              TaskView whole = view;
              if (why[0]) whole.waiting = why_waiting(*why[0]);
              then(std::move(whole));
            });
}

// `task-7 running, 4,096 bytes`, looked up whenever it is told.
void tell_of_task(const CallPointer& call, const std::string& id) {
  call->set_progress([weak = std::weak_ptr<Call>(call), id](const std::function<void(std::string)>& tell) {
    const CallPointer asking = weak.lock();
    if (!asking) return;
    Call::How how{.keeps_refusals = true, .on_failure = [tell](const ToolError&) { tell("starting the daemon"); }};
    asking->ask(*asking->services().scope.home(), {{"task.get", {{"taskId", id}}}, tail_of(id, 0)}, how,
                [tell, id](const Call::Parts& parts) {
                  if (!parts[0]) return tell("waiting for " + id);
                  TaskView view{.record = parts[0]->as_object()};
                  take_tail(view, parts[1], false);
                  tell(id + ' ' + std::string(state_of(view.record)) + ", " + grouped(view.output_bytes) + " bytes");
                });
  });
}

ToolError not_offered(const std::string& agent, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  const std::string which = agent.empty() ? "no default agent is offered here"
                                          : "the agent '" + one_line(agent, 100) + "' is not offered here";
  return {.code = "agent-not-offered",
          .problem = which,
          .remedy = list.empty() ? "ask the user to set up an agent, [agents.NAME] in the settings" : "one of " + list};
}

ToolError no_folder(const std::string& path) {
  return {.code = "not-found",
          .problem = "there is no folder " + one_line(path, 300),
          .remedy = "a folder of the project as cwd, or none"};
}

object submit_params(const Arguments& arguments, const std::string& agent, array after, bool with_handle) {
  object params{{"prompt", *arguments.text("prompt")}, {"agent", agent}};
  params["key"] = arguments.text("key").value_or(new_key());
  if (const auto priority = arguments.number("priority")) params["priority"] = *priority;  // else its agent's counts
  if (const auto limit = arguments.number("time_limit_seconds")) params["timeoutSeconds"] = *limit;
  if (with_handle) params["handle"] = true;
  if (!after.empty()) params["after"] = std::move(after);
  return params;
}

// The task is on disk: the client gets it now as an MCP task, or its end if that comes in time.
void answer_run(const CallPointer& call, const Arguments& arguments, const object& submitted, bool as_mcp_task) {
  const std::string id(submitted.at("taskId").as_string());
  const std::string root = *call->services().scope.home();
  if (as_mcp_task) {
    const std::string handle(submitted.at("handle").as_string());
    return read_task(call, task_named(id), 0, [call, handle](TaskView view) {
      const GivenTask task{.handle = handle, .view = std::move(view)};
      const base::UtcTime now = call->services().loop.clock().utc();
      if (call->envelope().is_modern) {
        return call->answer(result_text(call->envelope(), members_of(modern_task(task, now)), "task"));
      }
      call->answer(result_text(call->envelope(), members_of({{"task", legacy_task(task, now)}})));
    });
  }
  call->set_remedy("task_get " + id + ", which runs on");
  const std::int64_t wait = arguments.number("wait_seconds", usual_wait);
  const auto finish = [call, arguments, root, id] {
    read_task(call, task_named(id), usual_tail,
              [=](const TaskView& view) { call->finish(run_answer(view, root, arguments.max_bytes())); });
  };
  if (wait == 0) return finish();
  tell_of_task(call, id);
  call->wait_for_end(id, seconds(wait), [finish](const object&) { finish(); });
}

// The daemon gives whole pages, of which as much is shown as fits; the next one begins behind the last that was.
void finish_list(const CallPointer& call, const Arguments& arguments, const std::vector<TaskView>& tasks,
                 const object& counts, const std::string& root, std::int64_t limit) {
  const auto number_of = [](const TaskView& task) {
    return static_cast<std::size_t>(parse_number(id_of(task.record).substr(5)).value_or(0));
  };
  const Page page = task_list_page(tasks, counts, root);
  ToolResult result = page.cut({}, arguments.max_bytes(), arguments.identity());
  const std::size_t shown = result.structured->at("tasks").as_array().size();
  const bool has_more = shown < tasks.size() || tasks.size() == static_cast<std::size_t>(limit);
  if (has_more && shown > 0) {
    // What a cursor of a list says is the task behind which it goes on, whichever come meanwhile.
    const std::string next = cursor_text({.item = number_of(tasks[shown - 1])}, arguments.identity());
    if (const value* const old = result.structured->if_contains("next")) {
      const std::string told(old->get_string());
      result.text.replace(result.text.find("cursor " + told) + 7, told.size(), next);
    } else {
      result.text += "\nmore: cursor " + next;
    }
    (*result.structured)["next"] = next;
  }
  call->finish(result);
}

ToolError beyond_end(std::uint64_t end) {
  return bad_argument("'cursor' is behind the end of the output", "an offset up to " + std::to_string(end));
}

// Part by part, until there is enough or no more.
void search_output(const CallPointer& call, const TaskName& name, const std::string& root,
                   const std::shared_ptr<OutputSearch>& search, std::optional<std::int64_t> tail) {
  constexpr std::int64_t at_once = 1 << 20;
  constexpr seconds time_to_search{20};  // else the rest is for the next call
  object params{{"taskId", name.id}, {"limit", at_once}, {"encoding", "base64"}};
  const std::uint64_t begin = search->read_to();
  tail ? params["fromEnd"] = *tail + 1 : params["offset"] = begin;
  const std::vector<Desk::Part> questions{{"task.get", name.params}, {"task.output", params}, tail_of(name.id, 0)};
  call->ask(root, questions, {}, [=](const Call::Parts& parts) {
    const std::uint64_t end = output_part(*parts[2]).next;
    if (begin > end) return call->fail(beyond_end(end));
    OutputPart part = output_part(*parts[1]);
    if (tail) part = search->begin_tail(std::move(part), static_cast<std::size_t>(*tail));
    const bool has_time = call->services().loop.now() + time_to_search < call->deadline();
    const bool goes_on = search->take(part) && !part.bytes.empty() && has_time;
    if (goes_on) return search_output(call, name, root, search, std::nullopt);
    call->finish(search->answer(parts[0]->as_object(), root));
  });
}

}  // namespace

TaskName task_named(const std::string& text) {
  if (is_handle(text)) return {{{"handle", text}}, text.substr(0, text.rfind('-'))};
  const std::string id = task_name(text);
  return {{{"taskId", id}}, id};
}

OfferedAgents offered_agents(Services& services, const value& list) {
  const std::optional<std::vector<std::string>> chosen =
      services.agents ? services.agents : services.agents_of_settings();
  OfferedAgents offered;
  for (const value& entry : list.at("agents").as_array()) {
    const object& agent = entry.as_object();
    const std::string name(agent.at("name").as_string());
    const bool is_offered = chosen ? std::ranges::find(*chosen, name) != chosen->end() : name != "shell";
    if (!is_offered) continue;
    offered.names.push_back(name);
    if (agent.at("isDefault").as_bool()) offered.usual = name;
  }
  return offered;
}

void read_task(const CallPointer& call, const TaskName& name, std::int64_t tail_bytes,
               std::function<void(TaskView)> then) {
  const std::string root = call->home();
  if (root.empty()) return;
  std::vector<Desk::Part> parts{{"task.get", name.params}};
  if (!call->services().tails.contains(name.id, tail_bytes)) parts.push_back(tail_of(name.id, tail_bytes));
  call->ask(root, std::move(parts), {.keeps_refusals = true}, [=, then = std::move(then)](const Call::Parts& answers) {
    if (!answers[0]) return call->fail_refused(answers[0].error());
    const TaskView view{.record = answers[0]->as_object()};
    if (answers.size() > 1) return finish_task(call, view, answers[1], tail_bytes, then);
    if (const OutputPart* const known = call->services().tails.find(view.record, tail_bytes)) {
      TaskView whole = view;
      whole.output_bytes = known->next;
      if (tail_bytes > 0) whole.tail = *known;
      return then(std::move(whole));
    }
    call->ask(root, {tail_of(name.id, tail_bytes)}, {.keeps_refusals = true},
              [=](const Call::Parts& tail) { finish_task(call, view, tail[0], tail_bytes, then); });
  });
}

void run_task_run(const CallPointer& call, const Arguments& arguments) {
  const std::string root = call->home();
  if (root.empty()) return;
  std::string cwd;
  if (const std::optional<std::string> given = arguments.text("cwd")) {
    const tl::expected<Scope::Target, ToolError> target = call->services().scope.locate(*given);
    if (!target) return call->fail(target.error());
    if (!std::filesystem::is_directory(target->path)) return call->fail(no_folder(target->path));
    if (target->path != root) cwd = target->path;  // which it is without, too
  }
  const std::int64_t wait = arguments.number("wait_seconds", usual_wait);
  if (wait != 0) call->set_total(wait);
  const bool as_mcp_task = call->envelope().has_tasks && wait != 0;
  std::vector<Desk::Part> parts{{"agent.list", {}}};
  for (const std::string& task : arguments.texts("after")) parts.push_back({"task.get", task_named(task).params});
  call->set_remedy("task_list, which tells whether the task was submitted");
  call->ask(root, std::move(parts), {}, [=](const Call::Parts& answers) {
    const OfferedAgents offered = offered_agents(call->services(), *answers[0]);
    const std::string agent = arguments.text("agent").value_or(offered.usual);
    if (std::ranges::find(offered.names, agent) == offered.names.end()) {
      return call->fail_for_trust(not_offered(agent, offered.names), root);
    }
    array after;
    for (auto task = answers.begin() + 1; task != answers.end(); ++task) after.push_back((*task)->at("id"));
    object params = submit_params(arguments, agent, std::move(after), as_mcp_task);
    if (!cwd.empty()) params["cwd"] = cwd;
    call->ask(root, "task.submit", std::move(params), {},
              [=](const value& submitted) { answer_run(call, arguments, submitted.as_object(), as_mcp_task); });
  });
}

void run_task_get(const CallPointer& call, const Arguments& arguments) {
  const TaskName name = task_named(*arguments.text("task_id"));
  const std::int64_t tail = arguments.number("tail_bytes", usual_tail);
  const std::int64_t wait = arguments.number("wait_seconds", 0);
  const std::string root = call->home();
  if (root.empty()) return;
  if (wait != 0) call->set_total(wait);
  const auto finish = [=](const TaskView& view) { call->finish(task_answer(view, root, arguments.max_bytes())); };
  read_task(call, name, tail, [=](const TaskView& view) {
    if (has_ended(view.record) || wait == 0) return finish(view);
    const std::string id(id_of(view.record));
    tell_of_task(call, id);
    call->wait_for_end(id, seconds(wait), [=](const object&) { read_task(call, name, tail, finish); });
  });
}

void read_tasks(const CallPointer& call, object params,
                const std::function<void(const std::vector<TaskView>&, const object& counts)>& then) {
  const std::string root = call->home();
  if (root.empty()) return;
  call->ask(root, {{"task.list", std::move(params)}, {"task.stats", {}}}, {}, [=](const Call::Parts& parts) {
    const object counts = parts[1]->as_object();
    std::vector<Desk::Part> questions;
    std::vector<TaskView> tasks;
    for (const value& record : parts[0]->as_array()) {
      tasks.push_back({.record = record.as_object()});
      if (const auto question = beyond_record(tasks.back().record)) questions.push_back(*question);
    }
    const auto finish = [=](std::vector<TaskView> all, const Call::Parts& answers) {
      const Desk::PartAnswer none = tl::unexpected(rpc::internal_error());
      std::size_t next = 0;
      for (TaskView& task : all) {
        const Desk::PartAnswer& answer = beyond_record(task.record) ? answers[next++] : none;
        const bool is_queued = state_of(task.record) == "queued";
        take_tail(task, is_queued ? none : answer, false);
        if (is_queued && answer) task.waiting = why_waiting(*answer);
      }
      then(all, counts);
    };
    if (questions.empty()) return finish(std::move(tasks), {});
    call->ask(root, std::move(questions), {.keeps_refusals = true},
              [finish, tasks = std::move(tasks)](const Call::Parts& answers) { finish(tasks, answers); });
  });
}

void run_task_list(const CallPointer& call, const Arguments& arguments) {
  const std::string root = call->home();
  if (root.empty()) return;
  const std::int64_t limit = arguments.number("limit", 20);
  object params{{"limit", limit}};
  if (const auto state = arguments.text("state")) params["state"] = *state;
  if (const auto cursor = arguments.text("cursor")) {
    const tl::expected<PagePlace, ToolError> place = read_cursor(*cursor, arguments.identity());
    if (!place) return call->fail(place.error());
    params["before"] = "task-" + std::to_string(place->item);
  }
  read_tasks(call, std::move(params), [=](const std::vector<TaskView>& tasks, const object& counts) {
    finish_list(call, arguments, tasks, counts, root, limit);
  });
}

void run_task_output(const CallPointer& call, const Arguments& arguments) {
  const TaskName name = task_named(*arguments.text("task_id"));
  const std::string root = call->home();
  if (root.empty()) return;
  const std::optional<std::string> cursor = arguments.text("cursor");
  const std::optional<std::int64_t> tail = arguments.number("tail_bytes");
  const std::optional<std::string> contains = arguments.text("contains");
  if (cursor && tail) return call->fail(bad_argument("'cursor' and 'tail_bytes' are both given", "one of them"));
  const std::optional<std::int64_t> offset = cursor ? parse_number(*cursor) : std::int64_t{0};
  if (!offset || *offset < 0) {
    return call->fail(bad_argument("'cursor' is no offset", "next of an earlier answer, or no cursor"));
  }
  if (contains) {
    if (contains->empty()) return call->fail(bad_argument("'contains' is empty", "a text that lines have in them"));
    const auto search =
        std::make_shared<OutputSearch>(*contains, static_cast<std::uint64_t>(*offset), arguments.max_bytes());
    return search_output(call, name, root, search, tail);
  }
  const auto limit = static_cast<std::int64_t>(arguments.max_bytes());
  object params{
      {"taskId", name.id}, {"limit", tail ? std::max<std::int64_t>(*tail, 1) : limit}, {"encoding", "base64"}};
  tail ? params["fromEnd"] = *tail : params["offset"] = *offset;
  call->ask(root, {{"task.get", name.params}, {"task.output", std::move(params)}, tail_of(name.id, 0)}, {},
            [=](const Call::Parts& parts) {
              const OutputPart whole = output_part(*parts[2]);
              if (static_cast<std::uint64_t>(*offset) > whole.next) return call->fail(beyond_end(whole.next));
              OutputPart part = output_part(*parts[1]);
              if (tail) part = without_torn_character(std::move(part));
              if (tail && *tail == 0) part.bytes.clear();
              call->finish(output_answer(parts[0]->as_object(), std::move(part), root, arguments.max_bytes()));
            });
}

void run_task_cancel(const CallPointer& call, const Arguments& arguments) {
  constexpr seconds until_gone{10};
  const TaskName name = task_named(*arguments.text("task_id"));
  const std::string root = call->home();
  if (root.empty()) return;
  call->ask(root, "task.get", name.params, {}, [=](const value& found) {
    const object& record = found.as_object();
    const std::string id(id_of(record));
    call->ask(root, {{"task.cancel", {{"taskId", id}}}}, {.keeps_refusals = true}, [=](const Call::Parts& parts) {
      const bool had_ended = !parts[0] && parts[0].error().code() == daemon_code::wrong_state;
      if (had_ended) return call->finish(cancel_answer(record, false, root));
      if (!parts[0]) return call->fail_refused(parts[0].error());
      tell_of_task(call, id);
      call->wait_for_end(id, until_gone, [=](const object& ended) { call->finish(cancel_answer(ended, true, root)); });
    });
  });
}

}  // namespace duet::app::mcp
