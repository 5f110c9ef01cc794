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
#include "app/methods/from_task.h"
#include "app/methods/ordered_methods.h"
#include "app/methods/queue_methods.h"
#include "app/methods/task_params.h"
#include "app/methods/task_results.h"
#include "duet/base/base64.h"
#include "duet/peer/connection.h"
#include "duet/rpc/error.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/refusal.h"
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
constexpr unsigned longest_chain = 5;  // of tasks that submit each other
constexpr std::size_t most_known_askers = 1024;

using Sort = task::ListQuery::Sort;

using SharedContext = SharedTaskContext;
using Context = TaskContext;

using MaybeAccepted = tl::expected<task::Accepted, rpc::Error>;

struct Wait : TaskName {
  std::optional<double> timeoutSeconds;
};
BOOST_DESCRIBE_STRUCT(Wait, (TaskName), (timeoutSeconds))

struct ReadOutput : TaskName {
  std::optional<std::int64_t> offset;
  std::int64_t limit = usual_output;
  Encoding encoding = Encoding::utf_8;
  Streams stream = Streams::both;
  std::optional<std::int64_t> fromEnd;
  std::optional<double> waitSeconds;
};
BOOST_DESCRIBE_STRUCT(ReadOutput, (TaskName), (offset, limit, encoding, stream, fromEnd, waitSeconds))

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

// The task that has started a client. Whoever is found to come from none while none runs is looked at again.
std::optional<task::TaskId> asker(TaskContext& context, const peer::Peer& peer) {
  auto known = context.asking.find(peer.connection);
  if (known == context.asking.end()) {
    if (!context.queue.has_runs()) return std::nullopt;
    if (context.asking.size() >= most_known_askers) context.asking.clear();
    known = context.asking.emplace(peer.connection, asking_task(peer, context.queue)).first;
  }
  return known->second;
}

// Or that too many led to it.
tl::expected<task::Cause, rpc::Error> cause_by(task::TaskId asking, const tl::expected<task::Task, rpc::Error>& task) {
  const unsigned depth = task ? task::chain_depth(task->metadata) : 0;
  if (depth >= longest_chain) return tl::unexpected(task::too_deep(asking, longest_chain));
  return task::Cause{asking, depth + 1};
}

// Submits a task for a client; `answer` is called when it is on disk, or with why not.
template <typename Answer>
void submit_for(const SharedContext& context, const Request& request, task::Submission submission, Answer answer,
                const task::Companion& companion = {}) {
  const peer::Peer& peer = request.conversation.peer();
  const std::uint64_t client = peer.connection;
  submission.by = asked_by(peer);
  ++context->submitting[client];
  auto submitted = [context, client, answer = std::move(answer)](const MaybeAccepted& accepted) {
    const auto found = context->submitting.find(client);
    if (--found->second == 0) context->submitting.erase(found);
    answer(accepted);
  };
  const std::optional<task::TaskId> asking = asker(*context, peer);
  if (!asking) return context->queue.submit(std::move(submission), std::move(submitted), companion);
  context->queue.find(*asking, [context, asking, submission = std::move(submission), submitted = std::move(submitted),
                                companion](const tl::expected<task::Task, rpc::Error>& task) mutable {
    const tl::expected<task::Cause, rpc::Error> cause = cause_by(*asking, task);
    if (!cause) return submitted(tl::unexpected(cause.error()));
    submission.cause = *cause;
    context->queue.submit(std::move(submission), std::move(submitted), companion);
  });
}

// One that had the key already may have no handle yet.
void answer_with_handle(Context& context, const task::Accepted& accepted, const SharedReply<Submitted>& reply) {
  context.queue.give_handle(accepted.id, [accepted, reply](const tl::expected<std::string, rpc::Error>& handle) {
    if (!handle) return reply->fail(handle.error());
    reply->ok({task::to_text(accepted.id), accepted.state, *handle});
  });
}

void add_submit(Methods& methods, const SharedContext& context) {
  const auto handler = [context](Submit submit, const Request& request, Reply<Submitted> reply) {
    const bool with_handle = submit.handle;
    submit_for(
        context, request, submission_of(std::move(submit)),
        [context, with_handle, kept = shared(std::move(reply))](const MaybeAccepted& accepted) {
          if (!accepted) return kept->fail(accepted.error());
          if (with_handle) return answer_with_handle(*context, *accepted, kept);
          kept->ok({task::to_text(accepted->id), accepted->state});
        },
        with_handle ? context->queue.handle_for_new_task() : task::Companion());
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
      .describe(&Submit::cpu, "How many cores' worth of time it may use, as in 1.5")
      .describe(
          &Submit::handle,
          "Answer with a handle, too: another id, which cannot be guessed. The task can be read for a day after its "
          "end then, whatever keep_tasks says")
      .describe(
          &Submit::onLost,
          "In a queue that machines share: what becomes of it if its worker is not heard of any more; else as the "
          "settings say")
      .describe(&Submit::needs, "In a queue that machines share: labels that its worker must have")
      .describe(&Submit::here, "It runs on this machine, and on no other");
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
  context.queue.cancel(task_id_of(task.taskId), [reply](const tl::expected<void, rpc::Error>& cancelled) {
    cancelled ? reply->ok({true}) : reply->fail(cancelled.error());
  });
}

void list(Context& context, const List& wanted, const SharedReply<std::vector<TaskRecord>>& reply) {
  const auto list = std::make_shared<std::string>("[");
  const auto add = [list](const task::Task& task) {
    if (list->size() > 1) *list += ',';
    rpc::append_value(*list, task::record_of(task));
    return list->size() < most_list_bytes;
  };
  context.queue.list(query_of(wanted), add, [list, reply](const std::optional<rpc::Error>& problem) {
    if (problem) return reply->fail(*problem);
    reply->ok(JsonOf<std::vector<TaskRecord>>::trusted(*list += ']'));
  });
}

struct Get {
  std::optional<std::string> taskId;
  std::optional<std::string> handle;
};
BOOST_DESCRIBE_STRUCT(Get, (), (taskId, handle))

void get(Context& context, const Get& task, const SharedReply<TaskRecord>& reply) {
  if (task.taskId.has_value() == task.handle.has_value()) {
    throw rpc::invalid_params("taskId", "the id of a task, or else its handle", task.taskId ? "both" : "nothing");
  }
  const auto answer = [reply](const tl::expected<task::Task, rpc::Error>& found) {
    if (!found) return reply->fail(found.error());
    reply->ok(JsonOf<TaskRecord>(task::record_of(*found)));
  };
  if (task.taskId) return context.queue.find(task_id_of(*task.taskId), answer);
  context.queue.find_handle(*task.handle, [&context, answer](const tl::expected<task::TaskId, rpc::Error>& id) {
    if (!id) return answer(tl::unexpected(id.error()));
    context.queue.find(*id, answer);
  });
}

void stats(Context& context, const Nothing& /*params*/, const SharedReply<TaskCounts>& reply) {
  context.queue.look([reply](const tl::expected<task::Queue::Standing, rpc::Error>& standing) {
    if (!standing) return reply->fail(standing.error());
    const task::StateCounts& counts = standing->counts;
    const auto count = [&](task::State state) { return counts.at(static_cast<std::size_t>(state)); };
    reply->ok({.total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}),
               .queued = count(task::State::queued),
               .running = count(task::State::running),
               .completed = count(task::State::completed),
               .failed = count(task::State::failed),
               .cancelled = count(task::State::cancelled)});
  });
}

void wait(Context& context, const Wait& wanted, const SharedReply<TaskRecord>& reply) {
  task::Queue& queue = context.queue;
  const auto ticket = queue.wait(task_id_of(wanted.taskId), patience_of("timeoutSeconds", wanted.timeoutSeconds),
                                 [reply](const tl::expected<task::Task, rpc::Error>& task) {
                                   if (!task) return reply->fail(task.error());
                                   reply->ok(JsonOf<TaskRecord>(task::record_of(*task)));
                                 });
  if (ticket) reply->on_abandoned([&queue, ticket] { queue.stop_waiting(*ticket); });
}

// How much of a piece is shown as text: no character is cut, and at least one is shown if one is there.
std::size_t shown_bytes(const task::Queue::Output& output, std::size_t limit) {
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

using MaybeOutput = tl::expected<task::Queue::Output, rpc::Error>;

TaskOutput shown_output(task::Queue::Output output, std::size_t limit, bool exact) {
  task::OutputPiece& piece = output.piece;
  const std::size_t shown = exact ? piece.bytes.size() : shown_bytes(output, limit);
  TaskOutput result{
      .offset = piece.offset, .next = piece.place_of(shown), .done = output.done && shown == piece.bytes.size()};
  if (piece.dropped) result.dropped = piece.dropped->to - piece.dropped->from;
  piece.bytes.resize(shown);
  result.data = exact ? base::to_base64(piece.bytes) : std::move(piece.bytes);
  return result;
}

// Where the first whole character of these bytes begins.
std::uint64_t first_character(const task::OutputPiece& piece, std::uint64_t offset) {
  if (piece.dropped) return offset;
  const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; };
  const auto begins = std::find_if_not(piece.bytes.begin(), piece.bytes.end(), is_inside);
  return begins == piece.bytes.end() ? offset : offset + static_cast<std::uint64_t>(begins - piece.bytes.begin());
}

// One who asks for output: reads it, and waits for more if there is none and he may.
class OutputReading : public std::enable_shared_from_this<OutputReading> {
 public:
  OutputReading(task::Queue& queue, task::Queue::OutputQuestion question, bool exact, SharedReply<TaskOutput> reply)
      : queue_(queue), question_(question), limit_(question.limit), exact_(exact), reply_(std::move(reply)) {
    if (!exact_) question_.limit = std::max(limit_, longest_character);
  }

  void begin(std::optional<std::uint64_t> from_end, base::Duration patience) {
    patience_ = patience;
    if (!from_end) return read_first();
    queue_.read_output({.id = question_.id}, [self = shared_from_this(), from_end](const MaybeOutput& whole) {
      if (!whole) return self->reply_->fail(whole.error());
      const std::uint64_t total = whole->piece.total;
      self->begin_at(total - std::min(total, *from_end));
    });
  }

 private:
  // As text it begins with a whole character.
  void begin_at(std::uint64_t offset) {
    question_.offset = offset;
    if (exact_ || offset == 0) return read_first();
    queue_.read_output({.id = question_.id, .offset = offset, .limit = longest_character},
                       [self = shared_from_this()](const MaybeOutput& first) {
                         if (!first) return self->reply_->fail(first.error());
                         self->question_.offset = first_character(first->piece, self->question_.offset);
                         self->read_first();
                       });
  }

  void read_first() {
    const bool may_wait = patience_ > base::Duration::zero();
    read(!may_wait, [self = shared_from_this()] { self->wait(); });
  }

  void wait() {
    const auto self = shared_from_this();
    ticket_ = queue_.await_output(question_.id, patience_, [self](bool is_last) { return self->look(is_last); });
    if (ticket_) reply_->on_abandoned([&queue = queue_, ticket = *ticket_] { queue.stop_awaiting_output(ticket); });
  }

  // There may be more. One read at a time; what comes meanwhile is looked at behind it.
  bool look(bool is_last) {
    is_last_ = is_last_ || is_last;
    looks_again_ = true;
    if (!reading_) read_again();
    return answered_;
  }
  void read_again() {
    looks_again_ = false;
    read(is_last_, [self = shared_from_this()] {
      if (self->looks_again_) self->read_again();
    });
  }

  // Answers, or calls `otherwise` if there is nothing to tell yet.
  void read(bool whatever, const std::function<void()>& otherwise) {
    reading_ = true;
    queue_.read_output(question_, [self = shared_from_this(), whatever, otherwise](const MaybeOutput& output) {
      self->reading_ = false;
      if (self->answered_) return;
      if (!self->answer(output, whatever)) return otherwise();
      if (self->ticket_) self->queue_.stop_awaiting_output(*self->ticket_);
    });
  }
  bool answer(const MaybeOutput& output, bool whatever) {
    if (!output) return answered_ = true, reply_->fail(output.error()), true;
    const TaskOutput shown = shown_output(*output, limit_, exact_);
    if (!whatever && shown.data.empty() && !shown.done && !shown.dropped) return false;
    answered_ = true;
    reply_->ok(shown);
    return true;
  }

  task::Queue& queue_;
  task::Queue::OutputQuestion question_;
  std::size_t limit_;
  bool exact_;
  SharedReply<TaskOutput> reply_;
  base::Duration patience_ = {};
  std::optional<task::Queue::Ticket> ticket_;
  bool reading_ = false;
  bool looks_again_ = false;
  bool is_last_ = false;
  bool answered_ = false;
};

void output(Context& context, const ReadOutput& wanted, const SharedReply<TaskOutput>& reply) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (wanted.offset && wanted.fromEnd) throw rpc::invalid_params("fromEnd", "nothing beside offset", "number");
  const task::Queue::OutputQuestion asked{.id = task_id_of(wanted.taskId),
                                          .offset = count_of("offset", wanted.offset.value_or(0), 0, most),
                                          .limit = count_of("limit", wanted.limit, 1, most_output),
                                          .stream = stream_of(wanted.stream)};
  const std::optional<base::Duration> patience = patience_of("waitSeconds", wanted.waitSeconds);
  std::optional<std::uint64_t> from_end;
  if (wanted.fromEnd) from_end = count_of("fromEnd", *wanted.fromEnd, 0, most);
  std::make_shared<OutputReading>(context.queue, asked, wanted.encoding == Encoding::base64, reply)
      ->begin(from_end, patience.value_or(base::Duration::zero()));
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
  add_in_order(methods, context, "task.get", "Tells all about a task, by its id or its handle", get)
      .needs(role::observe)
      .describe(&Get::taskId, task_id_summary)
      .describe(&Get::handle, "The handle that its submit was answered with");
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
      .describe(&ReadOutput::stream, "Only what came from this one; offsets count both all the same")
      .describe(&ReadOutput::fromEnd, "Begin so many bytes before the end, instead of at an offset")
      .describe(&ReadOutput::waitSeconds,
                "If nothing is there yet and more may come, wait so long for it; else answer at once");
}

}  // namespace

void add_task_methods(Methods& methods, task::Queue& queue) {
  const SharedContext context(new Context{queue});
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
