#include "task/postgres/report.h"

#include <algorithm>
#include <functional>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/base/base64.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"
#include "process/launch.h"
#include "task/failure_text.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;

std::int64_t milliseconds(base::Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

Argument starts_of(const std::vector<Report::Start>& starts) {
  if (starts.empty()) return {};
  json::array told;
  for (const Report::Start& start : starts) {
    told.push_back(
        json::object{{"task", start.run.task}, {"fence", start.fence}, {"pid", start.started.pid}, {"ago", start.ago}});
  }
  return rpc::to_text(told);
}

json::array ranges_of(const std::vector<OutputRange>& ranges) {
  json::array list;
  for (const OutputRange& range : ranges) list.push_back(json::array{range.from, range.to});
  return list;
}

// A portion without pieces says of the whole that it is all there.
Argument outputs_of(const std::vector<Report::Output>& outputs) {
  if (outputs.empty()) return {};
  json::array told;
  for (const Report::Output& output : outputs) {
    const OutputSender::Portion& portion = output.portion;
    json::object common{{"task", output.run.task},
                        {"fence", output.fence},
                        {"attempt", output.run.attempt},
                        {"total", portion.total},
                        {"dropped", ranges_of(portion.dropped)},
                        {"last", false}};
    for (const OutputSender::Piece& piece : portion.pieces) {
      json::object each = common;
      each["offset"] = piece.offset;
      each["bytes"] = base::to_base64(piece.bytes);
      each["marks"] = piece.marks;
      told.push_back(std::move(each));
    }
    if (portion.pieces.empty()) {
      common["offset"] = portion.total;
      common["bytes"] = "";
      common["marks"] = "";
      told.push_back(std::move(common));
    }
    if (portion.last) told.back().as_object()["last"] = true;
  }
  return rpc::to_text(told);
}

template <typename Member>
std::string column(const std::vector<End>& ends, Member member) {
  std::vector<Argument> values;
  values.reserve(ends.size());
  for (const End& end : ends) values.push_back(member(end));
  return array_of(values);
}

Argument usage_argument(const End& end, std::int64_t (*member)(const Usage&)) {
  return end.usage ? argument_of(member(*end.usage)) : Argument();
}

// Without the braces.
std::string members_of(rpc::ObjectText& text) {
  const std::string object = text.take();
  return object.substr(1, object.size() - 2);
}

}  // namespace

std::int64_t ago_of(const base::Clock& clock, base::UtcTime time) {
  return std::max<std::int64_t>(milliseconds(clock.utc() - time), 0);
}

void tell_outcome(End& end, const Outcome& outcome, const base::Clock& clock) {
  end.ok = outcome.kind == Outcome::Kind::exited && outcome.code == 0 && !outcome.timed_out;
  if (outcome.kind == Outcome::Kind::exited) end.code = outcome.code;
  if (outcome.kind == Outcome::Kind::signalled) end.signal = process::signal_name(outcome.signal);
  if (!end.ok) end.failure = failure_of(outcome);
  end.started = outcome.started;
  if (outcome.started) end.started_ago = ago_of(clock, outcome.started->at);
  end.ended_ago = ago_of(clock, outcome.ended_at);
  end.usage = outcome.usage;
  if (outcome.started) end.result = outcome.result;
}

std::vector<Argument> arguments_of(const Report& report) {
  const std::vector<End>& ends = report.ends;
  const auto failure = [](const End& end, auto member) { return end.failure ? member(*end.failure) : Argument(); };
  return {
      starts_of(report.starts),
      column(ends, [](const End& end) { return argument_of(end.run.task); }),
      column(ends, [](const End& end) { return argument_of(end.fence); }),
      column(ends, [](const End& end) { return argument_of(end.ok); }),
      column(ends, [](const End& end) { return argument_of(end.code); }),
      column(ends, [](const End& end) { return Argument(end.signal); }),
      column(ends,
             [&](const End& end) {
               return failure(end, [](const Failure& why) { return argument_of(static_cast<int>(why.reason)); });
             }),
      column(ends,
             [&](const End& end) { return failure(end, [](const Failure& why) { return Argument(why.message); }); }),
      column(ends, [](const End& end) { return end.started ? argument_of(end.started->pid) : Argument(); }),
      column(ends, [](const End& end) { return end.started ? argument_of(end.started_ago) : Argument(); }),
      column(ends, [](const End& end) { return argument_of(end.ended_ago); }),
      column(ends,
             [](const End& end) {
               return usage_argument(end,
                                     [](const Usage& used) { return static_cast<std::int64_t>(used.cpu.count()); });
             }),
      column(ends,
             [](const End& end) {
               return usage_argument(end, [](const Usage& used) { return static_cast<std::int64_t>(used.max_memory); });
             }),
      column(ends,
             [](const End& end) {
               return usage_argument(end,
                                     [](const Usage& used) { return static_cast<std::int64_t>(used.output_bytes); });
             }),
      column(ends, [](const End& end) { return argument_of(milliseconds(end.retry)); }),
      column(ends, [](const End& end) { return end.hold ? argument_of(milliseconds(*end.hold)) : Argument(); }),
      column(ends, [](const End& end) { return end.hold ? Argument(end.hold_text) : Argument(); }),
      column(ends, [](const End& end) { return argument_of(end.flags); }),
      column(ends, [](const End& end) { return end.result ? Argument(bytes_of(*end.result)) : Argument(); }),
      outputs_of(report.outputs),
  };
}

std::string claim_text(const ClaimedTask& task) {
  rpc::ObjectText text;
  text.add("agent", task.agent).add("group", task.group).add("priority", task.priority);
  text.add("retries", task.retries).add("onLost", static_cast<int>(task.on_lost)).add("body", task.body);
  if (!task.needs.empty()) text.add("needs", task.needs);
  if (!task.submitter.empty()) text.add("submitter", task.submitter);
  if (task.has_env) text.add_json("hasEnv", "true");
  return members_of(text);
}

std::string request_text(const Submission& asked) {
  rpc::ObjectText text;
  text.add("prompt", prompt_text(asked.prompt)).add("metadata", shown_metadata_text(asked));
  if (!asked.key.empty()) text.add("key", asked.key);
  if (!asked.labels.empty()) text.add("labels", rpc::to_text(to_json(asked.labels)));
  return members_of(text);
}

}  // namespace duet::task::postgres
