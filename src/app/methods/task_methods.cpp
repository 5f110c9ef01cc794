#include "app/methods/task_methods.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "app/methods/task_params.h"
#include "app/words/base64.h"
#include "duet/peer/connection.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/task_output.h"

namespace duet::app {
namespace {

using peer::Answer;
using peer::Method;
using peer::Reply;
using peer::Request;
using rpc::Param;
using rpc::Type;

constexpr std::array states{task::State::queued, task::State::running, task::State::completed, task::State::failed,
                            task::State::cancelled};
constexpr std::size_t most_listed = 10'000;
constexpr std::size_t most_list_bytes = std::size_t{16} << 20;
constexpr std::size_t usual_output = std::size_t{1} << 20;
constexpr std::size_t most_output = std::size_t{4} << 20;
constexpr std::size_t longest_character = 4;
constexpr std::int64_t chat_priority = 5;

// What the methods of one daemon share.
struct Room {
  task::Supervisor& supervisor;
  task::Store& store;
  // How many submits of each connection are on their way to the disk. They hold up no later request, so that they can
  // share a commit; but a request that asks for what was submitted before it has to find it.
  std::unordered_map<std::uint64_t, std::size_t> submitting = {};
};
using SharedRoom = std::shared_ptr<Room>;
// A std::function can be copied; a Reply cannot.
using SharedReply = std::shared_ptr<Reply>;
using Act = std::function<void(Room& room, const rpc::Params& params, const SharedReply& reply)>;

void act_or_refuse(const Act& act, Room& room, const rpc::Params& params, const SharedReply& reply) {
  try {
    act(room, params, reply);
  } catch (const rpc::Error& error) {
    reply->fail(error);
  }
}

// Completes a method that is handled after the submits that came before it.
Method in_order(const SharedRoom& room, Method method, Act act) {
  method.late_handler = [room, act = std::move(act), list = method.params](const Request& request, Reply reply) {
    const auto shared = std::make_shared<Reply>(std::move(reply));
    if (!room->submitting.contains(request.conversation.peer().connection)) {
      return act_or_refuse(act, *room, request.params, shared);
    }
    room->store.after_changes([room, act, list, shared, raw = std::string(request.params.raw())] {
      act_or_refuse(act, *room, rpc::Params(list, raw), shared);
    });
  };
  return method;
}

Param optional(std::string name, Type type, std::string summary) {
  return {.name = std::move(name), .type = type, .required = false, .summary = std::move(summary)};
}

Param task_id_param() { return {.name = "taskId", .type = Type::text, .summary = "The id of a task, as in task-7"}; }

// Submits a task for a client, and answers with its id, or says why not.
void submit_for(const SharedRoom& room, const Request& request, task::Submission submission, Reply reply,
                bool with_state) {
  const std::uint64_t client = request.conversation.peer().connection;
  const auto shared = std::make_shared<Reply>(std::move(reply));
  ++room->submitting[client];
  const auto is_over = [room, client] {
    const auto found = room->submitting.find(client);
    if (--found->second == 0) room->submitting.erase(found);
  };
  room->supervisor.submit(std::move(submission), [=](const tl::expected<task::Accepted, rpc::Error>& accepted) {
    is_over();
    if (!accepted) return shared->fail(accepted.error());
    rpc::ObjectText result;
    result.add("taskId", task::to_text(accepted->id));
    if (with_state) result.add("state", task::name_of(accepted->state));
    shared->ok(Answer::raw(result.take()));
  });
}

Method submit(const SharedRoom& room) {
  return {.name = "task.submit",
          .summary = "Queues a task. Answered once it is on disk, from when on it survives whatever happens",
          .params = {{.name = "prompt", .type = Type::text, .summary = "What the agent is to do"},
                     optional("agent", Type::text, "Who does it; else the default agent"),
                     optional("priority", Type::integer, "Higher runs first; 0 unless given"),
                     optional("key", Type::text, "The same key again is the same task, if all else is the same, too"),
                     optional("cwd", Type::text, "Where it runs; else in the project's folder"),
                     optional("env", Type::object, "Added to the environment of the daemon; its values are not shown"),
                     optional("timeoutSeconds", Type::number, "It is ended when it has run so long"),
                     optional("retries", Type::integer, "How often it is tried again after a failure"),
                     optional("after", Type::array, "Ids of tasks that have to succeed before")},
          .handler = {},
          .late_handler =
              [room](const Request& request, Reply reply) {
                submit_for(room, request, submission_of(request.params), std::move(reply), true);
              },
          .holds_later = false};
}

Method send_chat(const SharedRoom& room) {
  return {.name = "chat.send",
          .summary = "Queues a message as a task for the default agent",
          .params = {{.name = "message", .type = Type::text, .summary = "What the agent is told"},
                     optional("priority", Type::integer, "Higher runs first; 5 unless given")},
          .handler = {},
          .late_handler =
              [room](const Request& request, Reply reply) {
                task::Submission submission{.prompt = prompt_of(request.params, "message")};
                submission.priority = request.params.integer("priority").value_or(chat_priority);
                submission.metadata["source"] = "chat";
                submit_for(room, request, std::move(submission), std::move(reply), false);
              },
          .holds_later = false};
}

Method cancel() {
  return {.name = "task.cancel",
          .summary = "Ends a task, queued or running. Answered once that is certain; a running one takes some seconds",
          .params = {task_id_param()}};
}

void do_cancel(Room& room, const rpc::Params& params, const SharedReply& reply) {
  room.supervisor.cancel(task_id_of(params, "taskId"), [reply](const tl::expected<void, rpc::Error>& cancelled) {
    if (!cancelled) return reply->fail(cancelled.error());
    reply->ok(Answer::view(R"({"cancelled":true})"));
  });
}

Param state_param() {
  Param param = optional("state", Type::text, "Only tasks in this state");
  for (const task::State state : states) param.accepted.emplace_back(task::name_of(state));
  return param;
}

std::optional<task::State> state_of(const rpc::Params& params) {
  const std::optional<std::string> given = params.text("state");
  if (!given) return std::nullopt;
  return *std::ranges::find_if(states, [&](task::State state) { return task::name_of(state) == *given; });
}

Method list() {
  return {.name = "task.list",
          .summary =
              "Lists tasks, the newest first. Prompts and results are cut to 1 KiB; a page that would have more "
              "than 16 MiB is shorter than asked for",
          .params = {state_param(), optional("limit", Type::integer, "How many, up to 10000; 20 unless given"),
                     optional("before", Type::text, "Only tasks older than this one")},
          .returns = "array"};
}

void do_list(Room& room, const rpc::Params& params, const SharedReply& reply) {
  constexpr task::TaskId behind_all = std::numeric_limits<std::int64_t>::max();
  const task::TaskId before = params.has("before") ? task_id_of(params, "before") : behind_all;
  const std::size_t limit = count_of(params, "limit", 20, 1, most_listed);
  std::string list = "[";
  const auto read = room.store.read([&](task::StoreReader& tasks) {
    tasks.list(state_of(params), before, limit, [&list](const task::Task& task) {
      if (list.size() > 1) list += ',';
      rpc::append_value(list, task::record_of(task));
      return list.size() < most_list_bytes;
    });
  });
  if (!read) return reply->fail(read.error());
  reply->ok(Answer::raw(list += ']'));
}

Method get() { return {.name = "task.get", .summary = "Tells all about a task", .params = {task_id_param()}}; }

void do_get(Room& room, const rpc::Params& params, const SharedReply& reply) {
  const tl::expected<task::Task, rpc::Error> found = room.supervisor.find(task_id_of(params, "taskId"));
  if (!found) return reply->fail(found.error());
  reply->ok(task::record_of(*found));
}

Method stats() { return {.name = "task.stats", .summary = "Counts the tasks in each state", .params = {}}; }

void do_stats(Room& room, const rpc::Params& /*params*/, const SharedReply& reply) {
  const task::StateCounts& counts = room.supervisor.counts();
  boost::json::object result{{"total", std::accumulate(counts.begin(), counts.end(), std::int64_t{0})}};
  for (const task::State state : states) result[task::name_of(state)] = counts.at(static_cast<std::size_t>(state));
  reply->ok(result);
}

Method wait() {
  return {.name = "task.wait",
          .summary = "Tells all about a task when it has ended, or as it is when the time is up",
          .params = {task_id_param(), optional("timeoutSeconds", Type::number, "How long at most; else for ever")}};
}

void do_wait(Room& room, const rpc::Params& params, const SharedReply& reply) {
  task::Supervisor& supervisor = room.supervisor;
  const auto ticket = supervisor.wait(task_id_of(params, "taskId"), patience_of(params, "timeoutSeconds"),
                                      [reply](const tl::expected<task::Task, rpc::Error>& task) {
                                        if (!task) return reply->fail(task.error());
                                        reply->ok(task::record_of(*task));
                                      });
  if (ticket) reply->on_abandoned([&supervisor, ticket] { supervisor.stop_waiting(*ticket); });
}

// How much of a piece is shown as text: no character is cut, and at least one is shown if one is there.
std::size_t shown_bytes(const task::Supervisor::Output& output, std::size_t limit) {
  const std::string_view bytes = output.piece.bytes;
  if (output.done && bytes.size() <= limit) return bytes.size();
  const std::string_view most = bytes.substr(0, limit);
  const std::size_t whole = rpc::whole_characters(most).size();
  if (whole > 0 || most.empty()) return whole;
  if (const std::size_t first = rpc::utf8_length(bytes.data(), bytes.data() + bytes.size())) return first;
  // One that has only begun: what follows it, if anything does, is not its rest.
  const bool is_over = output.done || output.piece.next < output.piece.total;
  return is_over ? most.size() : 0;
}

Method output() {
  Param encoding = optional("encoding", Type::text, "base64 is exact; else bytes that are no UTF-8 are replaced");
  encoding.accepted = {"utf-8", "base64"};
  return {.name = "task.output",
          .summary = "Reads what a task has written to stdout and stderr, by offset",
          .params = {task_id_param(), optional("offset", Type::integer, "Where to begin; 0 unless given"),
                     optional("limit", Type::integer, "How many bytes at most: 1 MiB unless given, never over 4 MiB"),
                     std::move(encoding)}};
}

void do_output(Room& room, const rpc::Params& params, const SharedReply& reply) {
  const task::TaskId id = task_id_of(params, "taskId");
  const bool exact = params.text("encoding") == "base64";
  const std::uint64_t offset = count_of(params, "offset", 0, 0, std::numeric_limits<std::int64_t>::max());
  const std::size_t limit = count_of(params, "limit", usual_output, 1, most_output);
  const std::size_t most = exact ? limit : std::max(limit, longest_character);
  tl::expected<task::Supervisor::Output, rpc::Error> output = room.supervisor.output(id, offset, most);
  if (!output) return reply->fail(output.error());
  task::OutputPiece& piece = output->piece;
  const std::size_t shown = exact ? piece.bytes.size() : shown_bytes(*output, limit);
  const bool done = output->done && shown == piece.bytes.size();
  piece.bytes.resize(shown);

  std::string text = R"({"offset":)" + std::to_string(piece.offset) + R"(,"data":)";
  if (exact) {
    text.append("\"").append(to_base64(piece.bytes)).append("\"");
  } else {
    rpc::append_string(text, piece.bytes);
  }
  text += R"(,"next":)" + std::to_string(piece.offset + shown) + R"(,"done":)" + (done ? "true" : "false");
  if (piece.dropped) text += R"(,"dropped":)" + std::to_string(piece.dropped->to - piece.dropped->from);
  reply->ok(Answer::raw(text += '}'));
}

}  // namespace

void add_task_methods(peer::Methods& methods, task::Supervisor& supervisor, task::Store& store) {
  const SharedRoom room(new Room{supervisor, store});
  methods.add(submit(room));
  methods.add(in_order(room, cancel(), do_cancel));
  methods.add(in_order(room, list(), do_list));
  methods.add(in_order(room, get(), do_get));
  methods.add(in_order(room, stats(), do_stats));
  methods.add(in_order(room, wait(), do_wait));
  methods.add(in_order(room, output(), do_output));
  methods.add(send_chat(room));
}

}  // namespace duet::app
