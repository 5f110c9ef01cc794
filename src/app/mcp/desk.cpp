#include "app/mcp/desk.h"

#include <algorithm>
#include <utility>

#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using Cause = peer::Outcome::Cause;

Desk::Answer failed(ToolError error) { return tl::unexpected(std::move(error)); }

ToolError timed_out(const std::string& method) {
  return {.code = "timeout",
          .problem = "the daemon did not answer " + method + " in time",
          .remedy = "the same call again; what was begun goes on"};
}

}  // namespace

Desk::Desk(transport::Loop& loop, base::Log& log, DaemonLink::Rules rules)
    : loop_(loop), log_(log), rules_(std::move(rules)), silent_(nullptr, base::Level::error) {}

Desk::~Desk() {
  jobs_.clear();  // their callbacks are not called any more
  for (Line& line : lines_) line.is_gone = true;
}

DaemonLink& Desk::link(const std::string& root) {
  std::unique_ptr<DaemonLink>& link = links_[root];
  if (!link) link = std::make_unique<DaemonLink>(loop_, log_, root, rules_);
  return *link;
}

Desk::Ticket Desk::ask(Question question, Answered answered) {
  const Ticket ticket = ++last_;
  jobs_.emplace(ticket, Job{.ticket = ticket, .question = std::move(question), .answered = std::move(answered)});
  waiting_.push_back(ticket);
  sweep_later();
  return ticket;
}

bool Desk::may_begin(const Job& job) const {
  return at_once_ < most_at_once && (!job.question.is_about_code || about_code_ < most_about_code);
}

void Desk::pump() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const Ticket ticket = *next;
    if (!may_begin(jobs_.at(ticket))) {
      ++next;
      continue;
    }
    waiting_.erase(next);
    begin(ticket);
    next = waiting_.begin();  // an answer may have changed the list
  }
}

void Desk::begin(Ticket ticket) {
  Job& job = jobs_.at(ticket);
  ++at_once_;
  about_code_ += job.question.is_about_code ? 1 : 0;
  connect(job);
}

void Desk::connect(Job& job) {
  DaemonLink& daemon = link(job.question.root);
  if (Line* const line = idle_line(daemon)) return send(job, *line);
  const Ticket ticket = job.ticket;
  if (!job.question.may_start) {
    DaemonLink::Channel channel = daemon.try_connect();
    if (channel) return send(job, open_line(daemon, std::move(channel)));
    return finish(ticket, failed({.code = "no-daemon", .problem = "no daemon runs", .remedy = "task_run starts one"}));
  }
  daemon.connect([this, ticket, &daemon](tl::expected<DaemonLink::Channel, ToolError> channel) {
    const auto found = jobs_.find(ticket);
    if (found == jobs_.end()) return;  // cancelled meanwhile
    if (!channel) return finish(ticket, failed(channel.error()));
    send(found->second, open_line(daemon, std::move(*channel)));
  });
}

Desk::Line* Desk::idle_line(const DaemonLink& link) {
  const auto found = std::ranges::find_if(
      lines_, [&](const Line& line) { return line.link == &link && line.job == 0 && !line.is_gone; });
  return found != lines_.end() ? &*found : nullptr;
}

// A new connection hears of every event; this one wants to know only of the daemon's end.
Desk::Line& Desk::open_line(DaemonLink& link, DaemonLink::Channel channel) {
  if (lines_.size() >= most_at_once) close_idle_line();
  Line& line = lines_.emplace_back();
  line.link = &link;
  peer::ConnectionEvents events;
  events.on_closed = [this, &line](peer::Ending) {
    line.is_gone = true;
    sweep_later();
  };
  events.conversation.on_notification = [&link](std::string_view method, std::string_view params) {
    if (method == "event.daemonStopping") link.note_stopping(rpc::parse_value(params).as_object());
  };
  line.connection = std::make_unique<peer::Connection>(loop_, std::move(channel), peer::Protocol::json_lines_client(),
                                                       no_methods_, silent_, std::move(events));
  line.connection->open();
  const boost::json::object wish{{"kinds", boost::json::array{"daemonStopping"}}};
  line.connection->call("events.subscribe", rpc::Json(wish), base::Duration::max(), [](const peer::Outcome&) {});
  return line;
}

void Desk::close_idle_line() {
  const auto idle = std::ranges::find_if(lines_, [](const Line& line) { return line.job == 0 && !line.is_gone; });
  if (idle != lines_.end()) idle->connection->close();
}

void Desk::send(Job& job, Line& line) {
  const Ticket ticket = job.ticket;
  const int attempt = ++job.attempt;
  line.job = ticket;
  job.line = &line;
  job.calls.clear();
  job.answers.clear();
  const base::Duration patience = std::max(job.question.deadline - loop_.now(), base::Duration(0));
  for (const Part& part : job.question.parts) {
    const auto taken = [this, ticket, attempt](peer::Outcome outcome) { take(ticket, attempt, std::move(outcome)); };
    job.calls.push_back(line.connection->call(part.method, rpc::Json(part.params), patience, taken));
  }
}

void Desk::take(Ticket ticket, int attempt, peer::Outcome outcome) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || found->second.attempt != attempt) return;
  Job& job = found->second;
  switch (outcome.cause) {
    case Cause::answered:
      job.answers.emplace_back(rpc::parse_value(outcome.result));
      break;
    case Cause::refused:
      job.answers.emplace_back(tl::unexpected(*outcome.error));
      break;
    case Cause::timed_out:
      return finish(ticket, failed(timed_out(job.question.parts[job.answers.size()].method)));
    case Cause::disconnected:
      return take_lost(job);
    default:
      return finish(ticket, failed({.code = "internal",
                                    .problem = "the daemon's answer could not be read",
                                    .remedy = "a smaller question"}));
  }
  if (job.answers.size() < job.question.parts.size()) return;
  finish(ticket, std::move(job.answers));
}

void Desk::take_lost(Job& job) {
  constexpr int most_attempts = 2;
  job.line->is_gone = true;
  job.line->job = 0;
  job.line = nullptr;
  if (job.attempt < most_attempts && loop_.now() < job.question.deadline) return connect(job);
  finish(job.ticket,
         failed({.code = "no-daemon",
                 .problem = "the daemon of " + job.question.root + " ended during the call, and so did the next",
                 .remedy = "ask the user to look at 'duet-rpc daemon status'"}));
}

void Desk::finish(Ticket ticket, Answer answer) {
  const auto found = jobs_.find(ticket);
  Job job = std::move(found->second);
  jobs_.erase(found);
  if (job.line != nullptr) {
    job.line->job = 0;
    const auto left = static_cast<std::ptrdiff_t>(job.answers.size());
    for (auto call = job.calls.begin() + std::min(left, std::ssize(job.calls)); call != job.calls.end(); ++call) {
      if (!answer) job.line->connection->conversation().cancel(*call);
    }
  }
  --at_once_;
  about_code_ -= job.question.is_about_code ? 1 : 0;
  sweep_later();
  job.answered(std::move(answer));
}

void Desk::cancel(Ticket ticket) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end()) return;
  Job job = std::move(found->second);
  jobs_.erase(found);
  if (const auto place = std::ranges::find(waiting_, ticket); place != waiting_.end()) {
    waiting_.erase(place);
    return;
  }
  --at_once_;
  about_code_ -= job.question.is_about_code ? 1 : 0;
  if (job.line != nullptr) {
    job.line->job = 0;
    for (const peer::CallId call : job.calls) job.line->connection->conversation().cancel(call);
  }
  sweep_later();
}

void Desk::sweep_later() {
  if (!pumping_) pumping_ = loop_.deferred([this] { sweep(); });
}

void Desk::sweep() {
  lines_.remove_if([](const Line& line) { return line.is_gone && line.job == 0; });
  pump();
}

}  // namespace duet::app::mcp
