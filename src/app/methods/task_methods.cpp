#include "app/methods/task_methods.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>

#include "app/doors/roles.h"
#include "app/methods/ordered_methods.h"
#include "app/methods/queue_methods.h"
#include "app/methods/task_params.h"
#include "app/methods/task_results.h"
#include "app/words/base64.h"
#include "duet/peer/connection.h"
#include "duet/rpc/error.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/store_tables.h"
#include "task/task_output.h"

namespace duet::app {
namespace {

using peer::Methods;
using peer::Reply;
using peer::Request;
using rpc::JsonOf;

constexpr std::size_t most_listed = 10'000;
constexpr std::size_t most_list_bytes = std::size_t{16} << 20;
constexpr std::size_t usual_output = std::size_t{1} << 20;
constexpr std::size_t most_output = std::size_t{4} << 20;
constexpr std::size_t longest_character = 4;
constexpr std::int64_t chat_priority = 5;

using Sort = task::ListQuery::Sort;

using SharedContext = SharedTaskContext;
using Context = TaskContext;

using MaybeAccepted = tl::expected<task::Accepted, rpc::Error>;

struct Wait : TaskName {
  std::optional<double> timeoutSeconds;
};
BOOST_DESCRIBE_STRUCT(Wait, (TaskName), (timeoutSeconds))

struct ReadOutput : TaskName {
  std::int64_t offset = 0;
  std::int64_t limit = usual_output;
  Encoding encoding = Encoding::utf_8;
  Streams stream = Streams::both;
};
BOOST_DESCRIBE_STRUCT(ReadOutput, (TaskName), (offset, limit, encoding, stream))

struct List {
  std::optional<task::State> state;
  std::int64_t limit = 20;
  std::optional<std::string> before;
  std::optional<std::string> group;
  std::optional<std::string> agent;
  std::optional<std::map<std::string, std::string, std::less<>>> labels;
  std::optional<std::string> since;
  Sort sort = Sort::newest;
};
BOOST_DESCRIBE_STRUCT(List, (), (state, limit, before, group, agent, labels, since, sort))

bool is_plain(const List& wanted) {
  return !wanted.group && !wanted.agent && !wanted.labels && !wanted.since && wanted.sort == Sort::newest;
}

task::ListQuery query_of(const List& wanted) {
  task::ListQuery query{.state = wanted.state, .group = wanted.group, .agent = wanted.agent, .sort = wanted.sort};
  query.limit = count_of("limit", wanted.limit, 1, most_listed);
  if (wanted.before) query.from = task_id_of(*wanted.before);
  if (wanted.since) query.since = time_of("since", *wanted.since);
  if (wanted.labels) query.labels = *wanted.labels;
  if (wanted.before && wanted.sort != Sort::newest && wanted.sort != Sort::oldest) {
    throw rpc::invalid_params("before", "nothing, in a list that is not by age", "string");
  }
  return query;
}

struct Chat {
  std::string message;
  std::int64_t priority = chat_priority;
  std::optional<std::string> agent;
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string, std::less<>>> env;
};
BOOST_DESCRIBE_STRUCT(Chat, (), (message, priority, agent, cwd, env))

// Submits a task for a client; `answer` is called when it is on disk, or with why not.
template <typename Answer>
void submit_for(const SharedContext& context, const Request& request, task::Submission submission, Answer answer) {
  const peer::Peer& peer = request.conversation.peer();
  const std::uint64_t client = peer.connection;
  submission.by = asked_by(peer);
  ++context->submitting[client];
  auto submitted = [context, client, answer = std::move(answer)](const MaybeAccepted& accepted) {
    const auto found = context->submitting.find(client);
    if (--found->second == 0) context->submitting.erase(found);
    answer(accepted);
  };
  context->supervisor.submit(std::move(submission), std::move(submitted));
}

void add_submit(Methods& methods, const SharedContext& context) {
  const auto handler = [context](Submit submit, const Request& request, Reply<Submitted> reply) {
    submit_for(context, request, submission_of(std::move(submit)),
               [kept = shared(std::move(reply))](const MaybeAccepted& accepted) {
                 if (!accepted) return kept->fail(accepted.error());
                 kept->ok({task::to_text(accepted->id), accepted->state});
               });
  };
  methods
      .add("task.submit", "Queues a task. Answered once it is on disk, from when on it survives whatever happens",
           handler)
      .pipelined()
      .describe(&Submit::prompt, "What the agent is to do")
      .describe(&Submit::agent, "Who does it; else the default agent")
      .describe(&Submit::priority, "Higher runs first, within its group; else as its agent's settings say, or 0")
      .describe(&Submit::key, "The same key again is the same task, if all else is the same, too")
      .describe(&Submit::cwd, "Where it runs; else in the project's folder")
      .describe(&Submit::env, "Added to the environment of the daemon; its values are not shown")
      .describe(&Submit::timeoutSeconds, "It is ended when it has run so long")
      .describe(&Submit::retries,
                "How often it is tried again after a failure; else as its agent's settings say, or never")
      .describe(&Submit::after, "Ids of tasks that have to succeed before")
      .describe(&Submit::group, "The group it runs in; else that of its agent, or default")
      .describe(&Submit::delaySeconds, "It does not start before that much time has passed")
      .describe(&Submit::notBefore, "It does not start before this time, of ISO 8601 with its zone")
      .describe(&Submit::labels, "Names and values that people tell their tasks apart by")
      .describe(&Submit::memory, "Bytes that all its processes may have together, from 4 MiB on")
      .describe(&Submit::processes, "How many processes and threads it may have at once")
      .describe(&Submit::cpu, "How many cores' worth of time it may use, as in 1.5");
}

void add_send_chat(Methods& methods, const SharedContext& context) {
  const auto handler = [context](Chat chat, const Request& request, Reply<ChatSent> reply) {
    task::Submission submission{.prompt = prompt_of("message", std::move(chat.message)),
                                .agent = std::move(chat.agent)};
    submission.priority = chat.priority;
    if (chat.cwd) submission.cwd = std::move(*chat.cwd);
    if (chat.env) submission.env = std::move(*chat.env);
    submission.metadata["source"] = "chat";
    submit_for(context, request, std::move(submission),
               [kept = shared(std::move(reply))](const MaybeAccepted& accepted) {
                 if (!accepted) return kept->fail(accepted.error());
                 kept->ok({task::to_text(accepted->id)});
               });
  };
  methods.add("chat.send", "Queues a message as a task, for the default agent unless another is named", handler)
      .pipelined()
      .describe(&Chat::message, "What the agent is told")
      .describe(&Chat::priority, "Higher runs first; 5 unless given")
      .describe(&Chat::agent, "Who is told; else the default agent")
      .describe(&Chat::cwd, "Where it runs; else in the project's folder")
      .describe(&Chat::env, "Added to the environment of the daemon; its values are not shown");
}

void cancel(Context& context, const TaskName& task, const SharedReply<Cancelled>& reply) {
  context.supervisor.cancel(task_id_of(task.taskId), [reply](const tl::expected<void, rpc::Error>& cancelled) {
    cancelled ? reply->ok({true}) : reply->fail(cancelled.error());
  });
}

void list(Context& context, const List& wanted, const SharedReply<std::vector<TaskRecord>>& reply) {
  constexpr task::TaskId behind_all = std::numeric_limits<std::int64_t>::max();
  const task::TaskId before = wanted.before ? task_id_of(*wanted.before) : behind_all;
  const std::size_t limit = count_of("limit", wanted.limit, 1, most_listed);
  std::string list = "[";
  const auto add = [&list](const task::Task& task) {
    if (list.size() > 1) list += ',';
    rpc::append_value(list, task::record_of(task));
    return list.size() < most_list_bytes;
  };
  const task::ListQuery query = query_of(wanted);
  const auto read = context.store.read([&](task::StoreReader& tasks) {
    if (is_plain(wanted)) return tasks.list(wanted.state, before, limit, add);
    tasks.list(query, add);
  });
  if (!read) return reply->fail(read.error());
  reply->ok(JsonOf<std::vector<TaskRecord>>::trusted(list += ']'));
}

void get(Context& context, const TaskName& task, const SharedReply<TaskRecord>& reply) {
  const tl::expected<task::Task, rpc::Error> found = context.supervisor.find(task_id_of(task.taskId));
  if (!found) return reply->fail(found.error());
  reply->ok(JsonOf<TaskRecord>(task::record_of(*found)));
}

void stats(Context& context, const Nothing& /*params*/, const SharedReply<TaskCounts>& reply) {
  const task::StateCounts& counts = context.supervisor.counts();
  const auto count = [&](task::State state) { return counts.at(static_cast<std::size_t>(state)); };
  reply->ok({.total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}),
             .queued = count(task::State::queued),
             .running = count(task::State::running),
             .completed = count(task::State::completed),
             .failed = count(task::State::failed),
             .cancelled = count(task::State::cancelled)});
}

void wait(Context& context, const Wait& wanted, const SharedReply<TaskRecord>& reply) {
  task::Supervisor& supervisor = context.supervisor;
  const auto ticket = supervisor.wait(task_id_of(wanted.taskId), patience_of("timeoutSeconds", wanted.timeoutSeconds),
                                      [reply](const tl::expected<task::Task, rpc::Error>& task) {
                                        if (!task) return reply->fail(task.error());
                                        reply->ok(JsonOf<TaskRecord>(task::record_of(*task)));
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

std::optional<task::Stream> stream_of(Streams streams) {
  if (streams == Streams::both) return std::nullopt;
  return streams == Streams::out ? task::Stream::out : task::Stream::err;
}

void output(Context& context, const ReadOutput& wanted, const SharedReply<TaskOutput>& reply) {
  const task::TaskId id = task_id_of(wanted.taskId);
  const bool exact = wanted.encoding == Encoding::base64;
  const std::uint64_t offset = count_of("offset", wanted.offset, 0, std::numeric_limits<std::int64_t>::max());
  const std::size_t limit = count_of("limit", wanted.limit, 1, most_output);
  const std::size_t most = exact ? limit : std::max(limit, longest_character);
  tl::expected<task::Supervisor::Output, rpc::Error> output =
      context.supervisor.output(id, offset, most, stream_of(wanted.stream));
  if (!output) return reply->fail(output.error());
  task::OutputPiece& piece = output->piece;
  const std::size_t shown = exact ? piece.bytes.size() : shown_bytes(*output, limit);
  TaskOutput result{
      .offset = piece.offset, .next = piece.place_of(shown), .done = output->done && shown == piece.bytes.size()};
  if (piece.dropped) result.dropped = piece.dropped->to - piece.dropped->from;
  piece.bytes.resize(shown);
  result.data = exact ? to_base64(piece.bytes) : std::move(piece.bytes);
  reply->ok(result);
}

void add_questions(Methods& methods, const SharedContext& context) {
  add_in_order(methods, context, "task.list",
               "Lists tasks, the newest first. Prompts and results are cut to 1 KiB; a page that would have more than "
               "16 MiB is shorter than asked for",
               list)
      .needs(role::observe)
      .describe(&List::state, "Only tasks in this state")
      .describe(&List::limit, "How many, up to 10000; 20 unless given")
      .describe(&List::before, "Only tasks older than this one; newer ones where the oldest come first")
      .describe(&List::group, "Only tasks of this group")
      .describe(&List::agent, "Only tasks of this agent")
      .describe(&List::labels, "Only tasks that have all these labels")
      .describe(&List::since, "Only tasks created then or later, a time of ISO 8601 with its zone")
      .describe(
          &List::sort,
          "newest first unless given; oldest first; priority: by priority, then by age; or ended: only those that "
          "have, the last one first");
  add_in_order(methods, context, "task.get", "Tells all about a task", get)
      .needs(role::observe)
      .describe(&TaskName::taskId, task_id_summary);
  add_in_order(methods, context, "task.stats", "Counts the tasks in each state", stats).needs(role::observe);
  add_in_order(methods, context, "task.wait",
               "Tells all about a task when it has ended, or as it is when the time is up", wait)
      .needs(role::observe)
      .describe(&TaskName::taskId, task_id_summary)
      .describe(&Wait::timeoutSeconds, "How long at most; else for ever");
  add_in_order(methods, context, "task.output", "Reads what a task has written to stdout and stderr, by offset", output)
      .needs(role::observe)
      .describe(&TaskName::taskId, task_id_summary)
      .describe(&ReadOutput::offset, "Where to begin; 0 unless given")
      .describe(&ReadOutput::limit, "How many bytes at most: 1 MiB unless given, never over 4 MiB")
      .describe(&ReadOutput::encoding, "base64 is exact; else bytes that are no UTF-8 are replaced")
      .describe(&ReadOutput::stream, "Only what came from this one; offsets count both all the same");
}

}  // namespace

void add_task_methods(Methods& methods, task::Supervisor& supervisor, task::Store& store) {
  const SharedContext context(new Context{supervisor, store});
  add_submit(methods, context);
  add_in_order(methods, context, "task.cancel",
               "Ends a task, queued or running. Answered once that is certain; a running one takes some seconds",
               cancel)
      .needs(role::operate)
      .describe(&TaskName::taskId, task_id_summary);
  add_questions(methods, context);
  add_send_chat(methods, context);
  add_queue_methods(methods, context);
}

}  // namespace duet::app
